/** Judgments that the server refused: shown with their reason until the person has dealt with them. */
import { button, make, modal } from "../dom.js";
import { counted, RELEVANCE_NAMES } from "../words.js";

const named = (relevance) => (relevance ? RELEVANCE_NAMES[relevance].toLowerCase() : "no label");

class Refused {
  constructor(studio) {
    this.studio = studio;
    /** By client id: {record, result}. */
    this.items = new Map();
    this.dialog = studio.root.querySelector("[data-refused]");
    this.list = this.dialog.querySelector("[data-refused-list]");
    this.openDialog = modal(this.dialog);
    const all = this.dialog.querySelector("[data-refused-all]");
    all.addEventListener("click", () => this.dismiss([...this.items.keys()]));
    const { outbox } = studio;
    outbox.addEventListener("refused", ({ detail }) => this.#refused(detail));
    outbox.addEventListener("dismissed", ({ detail }) => this.#gone(detail.client_ids));
    studio.on("ready", () => this.#render());
  }

  #refused({ record, result }) {
    this.items.set(record.client_id, { record, result });
    this.#render();
  }

  dismiss(clientIds) {
    this.studio.outbox.dismiss(clientIds);
  }

  #gone(clientIds) {
    for (const clientId of clientIds) this.items.delete(clientId);
    this.#render();
  }

  #what({ record, result }) {
    const rank = this.studio.store.rankOf(record.image);
    const where = rank ? this.studio.source.where(rank) : `image ${record.image}`;
    const what = record.relevance ? `“${RELEVANCE_NAMES[record.relevance]}”` : "Removing the label";
    return { act: `${what} at ${where}`, reason: result.detail };
  }

  #render() {
    const { notices } = this.studio;
    const { size } = this.items;
    if (!size) {
      notices.hide("refused");
      if (this.dialog.open) this.dialog.close();
      return;
    }
    const [first] = this.items.values();
    const { act, reason } = this.#what(first);
    notices.show("refused", {
      kind: "error",
      text: size === 1 ? `${act} was not stored: ${reason}` : `${counted(size, "judgment")} were not stored.`,
      actions: [{ label: size === 1 ? "Show it" : "Show them", run: () => this.#open() }],
    });
    if (this.dialog.open) this.#fill();
  }

  #open() {
    this.#fill();
    this.openDialog();
  }

  #fill() {
    this.list.replaceChildren(...[...this.items].map(([clientId, item]) => this.#item(clientId, item)));
  }

  #item(clientId, item) {
    const { record, result } = item;
    const { act, reason } = this.#what(item);
    const rank = this.studio.store.rankOf(record.image);
    const img = make("img", { alt: rank ? `Candidate ${rank}` : "", width: 80, height: 80 });
    if (rank) {
      this.studio.store.details(rank).then(
        (details) => {
          if (details) img.src = details.thumbnail_url;
        },
        () => {},
      );
    }
    const conflict = result.code === "conflict" && !this.studio.closed;
    const show = () => {
      this.dialog.close();
      this.studio.go(rank);
    };
    return make(
      "li",
      {},
      rank ? img : make("span", { class: "no-image" }),
      make(
        "div",
        { class: "refused-what" },
        make("p", {}, make("strong", { text: `${act} was not stored` })),
        make("p", { class: "small", text: reason }),
        result.code === "conflict"
          ? make("p", { class: "small muted", text: `Stored label: ${named(result.current)}.` })
          : null,
        make(
          "div",
          { class: "row" },
          conflict ? button("Use mine", () => this.#insist(clientId, item), { class: "button primary compact" }) : null,
          rank ? button("Show image", show) : null,
          button(conflict ? "Keep the stored label" : "Dismiss", () => this.dismiss([clientId])),
        ),
      ),
    );
  }

  /** Judges again, with the stored label known. */
  #insist(clientId, { record, result }) {
    const mark = { ...record, from: result.current ?? null };
    if (this.studio.judge([mark], { seconds: 0, fromDialog: true })) this.dismiss([clientId]);
    else this.studio.sayWhyNot();
  }
}

/** @param {Studio} studio */
export function mountRefused(studio) {
  new Refused(studio);
}

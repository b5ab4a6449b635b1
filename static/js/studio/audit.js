/** What the labeling page shows of an audit besides its images: the certificate, and whether more is drawn. */
import { counted, number } from "../words.js";

/** One by one so many drawn images wait: each counts as relevant until it is judged. */
const AHEAD = 5;

/** Draws, and shows the first image to judge. */
export function draw(studio) {
  Object.assign(studio.source, { drawing: true, paused: "" });
  return studio.start();
}

/** Says where a certificate for the query alone takes more draws than make sense. */
export function reach({ met, out_of_reach: out }) {
  if (met || !out) return "";
  return "For this query alone that takes too many draws. A release’s certificate is about all its queries together and needs few draws of each.";
}

/** As one text in which no number is apart from its percent sign. */
export function sentences(...texts) {
  return texts.filter(Boolean).join(" ").replaceAll(" %", "\u00a0%");
}

const percent = (share) => `${Math.floor(100 * share + 1e-9)} %`;

/** Reads an audit again when judgments are stored, and goes on to what was drawn meanwhile. */
export class AuditReader {
  /** @param {Studio} studio its source is an AuditSource or a BlindSource */
  constructor(studio) {
    this.studio = studio;
    this.store = studio.store;
    this.reading = null;
    this.again = false;
    studio.outbox.addEventListener("answer", () => this.read());
    studio.on("state", ({ state }) => state === "end" && studio.outbox.drained());
    studio.source.ahead = () => (studio.view === "grid" ? studio.views.grid.size : AHEAD);
    studio.on("view", (view) => view === "grid" && this.read());
  }

  /** Once at a time, and goes on where everything had been judged. */
  async read() {
    if (this.reading) {
      this.again = true;
      return;
    }
    const { studio, store } = this;
    const { size } = store;
    this.reading = store.load();
    try {
      await this.reading;
    } catch {
      // Without a connection what is drawn is judged; the next answer reads it again.
      return;
    } finally {
      this.reading = null;
    }
    if (store.size > size) store.dispatchEvent(new Event("list"));
    if (this.again) {
      this.again = false;
      await this.read();
      return;
    }
    if (studio.state === "end" && store.next(0, { unlabeled: true })) await studio.toNextUnlabeled();
  }
}

class Audit extends AuditReader {
  constructor(studio) {
    super(studio);
    this.relevant = 0;
    this.pauseButton = studio.root.querySelector("[data-audit-pause]");
    this.bound = studio.root.querySelector("[data-bound]");
  }

  wire() {
    const { studio } = this;
    studio.on("labels", () => this.#judged());
    studio.on("progress", () => this.#render());
    studio.on("state", ({ state }) => {
      // What there is to do then, the end says too.
      if (state === "end") studio.notices.hide("hit");
      this.#render();
    });
    this.pauseButton.addEventListener("click", () => {
      studio.source.drawing = false;
      this.#render();
      studio.say("Nothing more is drawn. Judge what is drawn already.");
    });
  }

  /** After a hit the ranking is the cheaper way to find more. */
  #judged() {
    const { studio } = this;
    const { source } = studio;
    const hit = source.relevant > this.relevant && source.drawing;
    this.relevant = source.relevant;
    if (!hit) return;
    source.drawing = false;
    source.paused = "An image that was drawn is relevant: look for more like it in the ranking before you draw more.";
    const { notices } = studio;
    notices.show("hit", {
      text: "This relevant image was missed in the ranking. Judge what is drawn, then look for more in the ranking.",
      actions: [
        { label: "To the ranking", run: () => this.#leave() },
        {
          label: "Draw on",
          run: () => {
            notices.hide("hit");
            draw(studio);
          },
        },
      ],
    });
  }

  async #leave() {
    this.studio.say("Saving your judgments …");
    await this.studio.outbox.drained();
    window.location.assign(this.studio.source.given.ranking);
  }

  #render() {
    const { outline } = this.store;
    if (!outline) return;
    const { now, then, to_judge: waiting } = outline;
    const show = (name, text) => {
      this.studio.root.querySelector(`[data-audit-show="${name}"]`).textContent = text;
    };
    show("recall", now.recall_at_least === null ? "–" : percent(now.recall_at_least));
    show("to-judge", number(waiting));
    show("hits", number(outline.hits - waiting));
    show("drawn", number(outline.drawn));
    show("pool", outline.pool);
    show("found", number(outline.found));
    show("unjudged", counted(outline.unjudged, "image"));
    const text = (name, words) => {
      const node = this.studio.root.querySelector(`[data-audit-${name}]`);
      node.textContent = words;
      node.hidden = !words;
    };
    const are = waiting === 1 ? "image is" : "images are";
    text("pending", waiting ? `${number(waiting)} drawn ${are} to be judged. If none of them is relevant:` : "");
    text("sentence", sentences(then.sentence));
    text("reach", reach(then));
    this.pauseButton.hidden = !this.studio.source.drawing;
    const recall = now.recall_at_least ?? 0;
    this.bound.setAttribute("aria-valuenow", String(Math.floor(100 * recall)));
    this.bound.toggleAttribute("data-met", now.met);
    this.bound.style.setProperty("--now", recall);
    this.bound.style.setProperty("--then", then.recall_at_least ?? 0);
    this.bound.style.setProperty("--target", outline.target);
  }
}

/** @param {Studio} studio */
export function mount(studio) {
  new Audit(studio).wire();
}

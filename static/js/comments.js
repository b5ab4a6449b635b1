/**
 * The comments on a query or on one of its images: reading, writing and resolving them. On the query's page, its own
 * thread and a dialog for those of its images; the labeling page has the same dialog.
 */
import { api, uuid } from "./api.js";
import { make, modal, showState } from "./dom.js";
import { ago, counted, moment, trouble } from "./words.js";

const CONNECTION_NEEDED = "Comments, unlike labels, can't be saved without it.";

export class Thread {
  /**
   * @param {HTMLElement} root holds the parts of templates/labeling/_comments.html
   * @param {string} address the API's, of the query
   * @param {(found: object) => void} [seen] is told each answer of the API
   */
  constructor(root, address, seen = () => {}) {
    this.address = `${address}comments/`;
    this.seen = seen;
    const part = (name) => root.querySelector(`[data-comments-${name}]`);
    [this.list, this.state, this.text, this.send, this.resolve, this.resolved, this.retry] = [
      "list",
      "state",
      "text",
      "send",
      "resolve",
      "resolved",
      "retry",
    ].map(part);
    /** Texts that aren't sent yet, by image. */
    this.drafts = new Map();
    this.image = null;
    /** Whether something is being saved. */
    this.busy = false;
    /** Counts the requests: an earlier one's answer shows nothing any more. */
    this.asked = 0;
    this.send.addEventListener("click", () => this.#add());
    this.resolve.addEventListener("click", () => this.#resolve());
    this.retry.addEventListener("click", () => this.load());
    this.text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.#add();
    });
  }

  /** Shows the thread of an image; of the query itself for null. */
  open(image) {
    this.drafts.set(this.image, this.text.value);
    this.image = image;
    this.text.value = this.drafts.get(image) ?? "";
    this.list.replaceChildren();
    this.resolved.textContent = "";
    this.resolve.hidden = true;
    return this.load();
  }

  load() {
    showState(this.state, "Loading …");
    const which = this.image === null ? "" : `?image=${this.image}`;
    return this.#ask(which, {}, "The comments can't be loaded without it.");
  }

  async #add() {
    const text = this.text.value.trim();
    if (!text || this.busy) {
      this.text.focus();
      return;
    }
    // The same id until it is stored: a repeat counts once.
    if (this.sent?.text !== text || this.sent.image !== this.image) {
      this.sent = { image: this.image, text, client_id: uuid() };
    }
    showState(this.state, "Saving …");
    const { image } = this.sent;
    if (!(await this.#ask("", { method: "POST", body: this.sent }, CONNECTION_NEEDED))) return;
    this.sent = null;
    this.drafts.delete(image);
    if (this.image === image) this.text.value = "";
  }

  async #resolve() {
    if (this.busy) return;
    const body = { image: this.image, resolved: !this.found.resolved_at };
    await this.#ask("resolve/", { method: "POST", body }, CONNECTION_NEEDED);
  }

  /** Asks the API for the thread as it is then, and shows it; whether that worked. */
  async #ask(path, options, what) {
    this.asked += 1;
    const { asked } = this;
    const saving = Boolean(options.method);
    this.busy = saving || this.busy;
    this.retry.hidden = true;
    try {
      const found = await api(this.address + path, options);
      this.seen(found);
      if (asked === this.asked) this.#render(found);
      return true;
    } catch (error) {
      if (asked !== this.asked) return false;
      showState(this.state, trouble(error, what), true);
      this.retry.hidden = saving;
      return false;
    } finally {
      if (saving) this.busy = false;
    }
  }

  #render(found) {
    this.found = found;
    this.list.replaceChildren(...found.results.map(item));
    if (found.resolved_at) {
      this.resolved.textContent = `Resolved by ${found.resolved_by}, ${moment(new Date(found.resolved_at))}`;
    } else this.resolved.textContent = "";
    this.resolve.hidden = found.hidden || found.results.length === 0;
    this.resolve.textContent = found.resolved_at ? "Reopen" : "Resolve";
    const count = found.results.length;
    let said = count ? counted(count, "comment") : "No comment yet.";
    if (found.hidden) said = "What others wrote appears once your own judgment of this image is saved.";
    showState(this.state, said);
  }
}

function item({ author, own, text, made_at: madeAt }) {
  const date = new Date(madeAt);
  return make(
    "li",
    {},
    make(
      "p",
      { class: "small" },
      make("strong", { text: own ? `${author} (you)` : author }),
      " ",
      make("time", { class: "muted", datetime: madeAt, title: moment(date), text: ago(date) }),
    ),
    make("p", { class: "comment-text", dir: "auto", text }),
  );
}

/** The query's page. */
const section = document.querySelector("[data-query-comments]");
if (section) {
  const address = section.dataset.queryComments;
  new Thread(section, address).load();
  const dialog = document.querySelector("[data-comments]");
  const thread = new Thread(dialog, address);
  const open = modal(dialog);
  const show = (button) => {
    dialog.querySelector("[data-comments-about]").textContent = button.dataset.about;
    thread.open(Number(button.dataset.openComments));
    open(thread.text);
  };
  section.addEventListener("click", (event) => {
    const button = event.target.closest("[data-open-comments]");
    if (button) show(button);
  });
  // A mention's address names the image.
  const named = section.querySelector(`[data-open-comments="${Number(window.location.hash.split("-")[1])}"]`);
  if (named) show(named);
}

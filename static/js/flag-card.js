/** One image on the reviewer's page of flags: how it looks in each state, and what can be done with it. */

/** What a button says, by action. */
export const LABELS = { withdraw: "Withdraw", clear: "Clear", restore: "Restore", undo: "Undo" };

const PRIVATE = new Set(["person", "personal_data"]);
const DAY = { day: "numeric", month: "short", timeZone: "UTC" };
const TIME = { hour: "2-digit", minute: "2-digit", timeZone: "UTC" };

/**
 * A moment in UTC, as on the other pages: "21 Nov, 16:27", with the year if it isn't this one.
 * @param {string} iso @param {Date} [now] @returns {string}
 */
export function moment(iso, now = new Date()) {
  const at = new Date(iso);
  const day = at.getUTCFullYear() === now.getUTCFullYear() ? DAY : { ...DAY, year: "numeric" };
  return `${at.toLocaleDateString("en-GB", day)}, ${at.toLocaleTimeString("en-GB", TIME)}`;
}

/**
 * Replaces the buttons of `root` by those of the actions, keeping the ones that stay.
 * @param {HTMLElement} root @param {string[]} actions @param {boolean} busy
 */
export function paintActions(root, actions, busy) {
  const present = [...root.children].map((button) => button.dataset.act);
  if (present.join() !== actions.join()) {
    root.replaceChildren(
      ...actions.map((name) => {
        const button = document.createElement("button");
        button.type = "button";
        button.className = name === "withdraw" ? "button danger" : "button";
        button.dataset.act = name;
        button.textContent = LABELS[name];
        return button;
      }),
    );
  }
  for (const button of root.children) button.disabled = busy;
}

/**
 * A card. `state` is open, withdrawn, cleared or restored; `item` is the API's image with its flags.
 */
export class FlagCard {
  /** @param {HTMLTemplateElement} template @param {object} item @param {"open"|"withdrawn"} page */
  constructor(template, item, page) {
    this.element = template.content.firstElementChild.cloneNode(true);
    this.page = page;
    this.busy = false;
    this.problem = "";
    this.result = "";
    this.undoable = false;
    this.cleared = [];
    this.article = this.element.querySelector("article");
    const find = (name) => this.element.querySelector(`[data-${name}]`);
    this.parts = Object.fromEntries(
      ["open", "title", "species", "withdrawal", "flags", "note", "result", "actions", "problem"].map((name) => [
        name,
        find(name),
      ]),
    );
    this.article.dataset.image = item.image;
    this.update(item);
  }

  /** Takes what the server says of the image now. @param {object} item */
  update(item) {
    this.item = item;
    this.state = this.page;
    this.result = "";
    this.flags = item.flags;
    this.paint();
  }

  get image() {
    return this.item.image;
  }

  get title() {
    return `Image ${this.image}`;
  }

  get species() {
    const species = this.item.species;
    return species ? species.common_name || species.scientific_name : "";
  }

  get note() {
    return this.parts.note.value.trim();
  }

  /** The actions that are possible now, in the order of their buttons. @returns {string[]} */
  get actions() {
    if (this.state === "open") return ["withdraw", "clear"];
    if (this.state === "withdrawn" && this.page === "withdrawn") return ["restore"];
    return this.undoable ? ["undo"] : [];
  }

  /** Whether it waits for what this page is for. */
  get waiting() {
    return this.state === this.page;
  }

  paint() {
    const { open, title, species, withdrawal, flags, note, result, actions, problem } = this.parts;
    const kinds = [...new Set(this.flags.map((flag) => flag.label.toLowerCase()))].join(", ");
    this.article.dataset.state = this.state;
    this.article.setAttribute("aria-label", kinds ? `${this.title}: ${kinds}` : this.title);
    this.article.setAttribute("aria-busy", String(this.busy));
    open.setAttribute("aria-label", `Enlarge image ${this.image}`);
    const picture = open.querySelector("img");
    if (picture.getAttribute("src") !== this.item.thumbnail_url) picture.src = this.item.thumbnail_url;
    title.textContent = this.title;
    species.textContent = this.species;
    withdrawal.hidden = !this.item.withdrawal;
    withdrawal.textContent = this.item.withdrawal ? told("Withdrawn by", this.item.withdrawal) : "";
    flags.replaceChildren(...this.flags.map(flagLine));
    note.hidden = this.state !== "open";
    note.disabled = this.busy;
    note.setAttribute("aria-label", `Note for the withdrawal of image ${this.image}`);
    result.textContent = this.result;
    problem.textContent = this.problem;
    paintActions(actions, this.actions, this.busy);
  }
}

function told(start, { withdrawn_by: by, withdrawn_at: at, note }) {
  const text = `${start} ${by}, ${moment(at)}`;
  return note ? `${text}: ${note}` : text;
}

function flagLine(flag) {
  const line = document.createElement("li");
  const badge = document.createElement("span");
  badge.className = PRIVATE.has(flag.kind) ? "badge rejected" : "badge submitted";
  badge.textContent = flag.label;
  const who = document.createElement("span");
  who.className = "small muted";
  who.textContent = `${flag.raised_by}, ${moment(flag.raised_at)}`;
  line.append(badge, " ", who);
  if (flag.note) {
    const note = document.createElement("p");
    note.className = "flag-words small";
    note.textContent = flag.note;
    line.append(note);
  }
  return line;
}

/** The reviewer's page of flags: withdraw, clear, restore and undo, each stored before it is shown. */
import { api } from "./api.js";
import { columnsOf, make, modal } from "./dom.js";
import { keysOfEvent } from "./studio/keys.js";
import { speciesName, TIME_ZONE } from "./words.js";

const DONE = { withdraw: "withdrawn", clear: "cleared", restore: "restored", undo: "undone" };
const KEYS = { w: "withdraw", c: "clear", r: "restore", u: "undo" };
const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

class FlagReview {
  /** @param {HTMLElement} root @param {{state: string, count: number, limit: number, results: object[]}} page */
  constructor(root, page) {
    this.state = page.state;
    this.limit = page.limit;
    this.template = document.querySelector("template[data-card]");
    this.list = root.querySelector("[data-cards]");
    this.status = root.querySelector("[data-status]");
    this.more = root.querySelector("[data-more]");
    this.cards = [];
    this.current = null;
    this.viewer = new FlagViewer(document.querySelector("[data-viewer]"), {
      act: (name) => this.act(this.current, name),
      step: (by) => this.step(by),
      closed: (card) => this.go(card),
    });
    this.add(page);
    this.list.addEventListener("click", (event) => this.clicked(event));
    this.list.addEventListener("focusin", (event) => this.select(this.cardOf(event.target)));
    this.more.addEventListener("click", () => this.load());
    document.addEventListener("keydown", (event) => this.pressed(event));
    if (matchMedia("(hover: hover)").matches) this.cards[0]?.article.focus({ preventScroll: true });
  }

  /** Shows what a page of the API holds; an image that is here already is brought up to date. */
  add({ count, results }) {
    for (const item of results) {
      const known = this.cards.find((card) => card.image === item.image);
      if (known) {
        if (!known.busy) known.update(item);
      } else {
        const card = new FlagCard(this.template, item, this.state);
        this.cards.push(card);
        this.list.append(card.element);
      }
    }
    if (!this.current && this.cards.length) this.select(this.cards[0]);
    this.more.hidden = count <= this.waiting().length;
  }

  waiting() {
    return this.cards.filter((card) => card.waiting);
  }

  cardOf(element) {
    const article = element.closest("article");
    return this.cards.find((card) => card.article === article) ?? null;
  }

  /** One card at a time can be reached by Tab; arrow keys lead to the others. */
  select(card) {
    if (!card) return;
    if (this.current) this.current.article.tabIndex = -1;
    this.current = card;
    card.article.tabIndex = 0;
  }

  /** Goes to a card: in the large view if that is open, else by focus. */
  go(card) {
    if (!card) return;
    this.select(card);
    if (this.viewer.open) {
      this.viewer.show(card);
      return;
    }
    card.article.focus({ preventScroll: true });
    card.article.scrollIntoView({ block: "nearest" });
  }

  step(by) {
    this.go(this.cards[this.cards.indexOf(this.current) + by]);
  }

  async load() {
    const button = this.more.querySelector("button");
    button.disabled = true;
    try {
      const offset = this.waiting().length;
      this.add(await api(`/api/flags/?state=${this.state}&limit=${this.limit}&offset=${offset}`));
      this.status.textContent = "";
    } catch (error) {
      this.status.textContent = `No more could be loaded: ${error.message}`;
    }
    button.disabled = false;
  }

  clicked(event) {
    const card = this.cardOf(event.target);
    const button = event.target.closest("button");
    if (!card || !button) return;
    this.select(card);
    if (button.dataset.act) this.act(card, button.dataset.act);
    else this.viewer.show(card);
  }

  pressed(event) {
    if (!this.current) return;
    const keys = keysOfEvent(event);
    const move = MOVES[keys[0]];
    // A held key keeps moving, but decides once.
    if (event.repeat && !move) return;
    if (event.target.matches("input")) {
      if (keys[0] === "Escape" && !this.viewer.open) this.current.article.focus();
      return;
    }
    const within = this.viewer.open || this.list.contains(event.target);
    const [act] = keys.flatMap((key) => KEYS[key] ?? []);
    if (move && (within || event.target === document.body)) this.move(...move);
    else if (!within) return;
    else if (act) this.act(this.current, act);
    else if (keys.includes("n")) this.write();
    else if (keys[0] === "Enter" && event.target === this.current.article) this.viewer.show(this.current);
    else return;
    event.preventDefault();
  }

  write() {
    const note = (this.viewer.open ? this.viewer : this.current).parts.note;
    if (!note.hidden) note.focus();
  }

  move(across, down) {
    if (document.activeElement === document.body && !this.viewer.open) {
      this.go(this.current);
      return;
    }
    const columns = this.viewer.open ? 1 : columnsOf(this.list.children);
    this.step(across + down * columns);
  }

  /**
   * Does one action if the card's state allows it, and moves to the next card that waits.
   * @param {FlagCard} card @param {"withdraw"|"clear"|"restore"|"undo"} name
   */
  async act(card, name) {
    if (!card || card.busy || !card.actions.includes(name)) return;
    const before = card.state;
    const held = card.article.contains(document.activeElement);
    card.busy = true;
    card.problem = "";
    this.repaint(card);
    if (name !== "undo") this.goOn(card, held);
    try {
      await this[name](card);
      this.status.textContent = card.problem ? "" : `${card.title}: ${DONE[name]}.`;
    } catch (error) {
      card.problem = `Not ${DONE[name]}: ${error.message}`;
      this.status.textContent = "";
    }
    card.busy = false;
    this.repaint(card);
    this.count(before, card.state);
    if (!this.waiting().length && !this.more.hidden) await this.load();
  }

  /** Moves to the next card that waits, behind the card or from the start; else stays. */
  goOn(card, held) {
    const from = this.cards.indexOf(card);
    const order = [...this.cards.slice(from + 1), ...this.cards.slice(0, from)];
    const next = order.find((other) => other.waiting && !other.busy);
    if (this.viewer.open || held) this.go(next ?? card);
  }

  repaint(card) {
    const held = card.article.contains(document.activeElement);
    card.paint();
    if (held && !card.article.contains(document.activeElement)) card.article.focus({ preventScroll: true });
    if (this.viewer.open && this.current === card) this.viewer.show(card);
  }

  async withdraw(card) {
    const item = await this.post(card, "withdraw", { note: card.note });
    this.decided(card, item, "withdrawn", "Withdrawn from the corpus.");
  }

  async restore(card) {
    const item = await this.post(card, "restore", {});
    card.last = card.item.withdrawal;
    this.decided(card, item, "restored", "Back in the corpus.");
  }

  async clear(card) {
    const answer = await this.post(card, "clear-flags", { flags: card.flags.map((flag) => flag.id) });
    if (answer.withdrawal) {
      this.decided(card, answer, "withdrawn", "Somebody else has withdrawn it.", false);
    } else if (answer.flags.length) {
      card.update(answer);
      card.problem = "Somebody has flagged it again: please check.";
    } else {
      card.cleared = answer.cleared;
      const mine = answer.cleared.length > 0;
      this.decided(
        card,
        answer,
        "cleared",
        mine ? "Cleared: it stays in the corpus." : "Somebody else has cleared it.",
        mine,
      );
    }
  }

  /** Takes the last decision back; the flags that it closed are open again. */
  async undo(card) {
    if (card.state === "restored") {
      const item = await this.post(card, "withdraw", { note: card.last.note });
      this.decided(card, item, "withdrawn", "");
      return;
    }
    const item =
      card.state === "cleared"
        ? await this.post(card, "reopen-flags", { flags: card.cleared })
        : await this.post(card, "restore", { reopen: true });
    if (item.flags.length) card.update(item);
    else this.decided(card, item, "cleared", "Somebody else has decided on it.", false);
  }

  decided(card, item, state, result, undoable = true) {
    card.item = item;
    card.undoable = undoable;
    if (item.flags.length) card.flags = item.flags;
    card.state = state;
    card.result = result;
  }

  post(card, path, body) {
    return api(`/api/images/${card.image}/${path}/`, { method: "POST", body });
  }

  /** Keeps the numbers on the tabs and in the header up as a card goes from one state to another. */
  count(from, to) {
    for (const name of ["open", "withdrawn"]) {
      const shown = document.querySelector(`[data-count="${name}"]`);
      const by = Number(to === name) - Number(from === name);
      shown.textContent = String(Math.max(0, Number(shown.textContent) + by));
    }
    const open = document.querySelector('[data-count="open"]').textContent;
    const header = document.querySelector("[data-flags-open]");
    header.textContent = open;
    header.hidden = open === "0";
  }
}

/** What a button says, by action. */
const LABELS = { withdraw: "Withdraw", clear: "Clear", restore: "Restore", undo: "Undo" };

const PRIVATE = new Set(["person", "personal_data"]);
const DAY = { day: "numeric", month: "short", timeZone: TIME_ZONE };
const TIME = { hour: "2-digit", minute: "2-digit", timeZone: TIME_ZONE };
const YEAR = { year: "numeric", timeZone: TIME_ZONE };

/**
 * A moment in the person's time zone: "21 Nov, 16:27", with the year if it isn't this one.
 * @param {string} iso @param {Date} [now] @returns {string}
 */
function moment(iso, now = new Date()) {
  const at = new Date(iso);
  const years = [at, now].map((one) => one.toLocaleDateString("en-GB", YEAR));
  const day = years[0] === years[1] ? DAY : { ...DAY, ...YEAR };
  return `${at.toLocaleDateString("en-GB", day)}, ${at.toLocaleTimeString("en-GB", TIME)}`;
}

/**
 * Replaces the buttons of `root` by those of the actions, keeping the ones that stay.
 * @param {HTMLElement} root @param {string[]} actions @param {boolean} busy
 */
function paintActions(root, actions, busy) {
  const present = [...root.children].map((button) => button.dataset.act);
  if (present.join() !== actions.join()) {
    const styleOf = (name) => (name === "withdraw" ? "button danger" : "button");
    root.replaceChildren(
      ...actions.map((name) =>
        make("button", { type: "button", class: styleOf(name), "data-act": name, text: LABELS[name] }),
      ),
    );
  }
  for (const button of root.children) button.disabled = busy;
}

/**
 * A card. `state` is open, withdrawn, cleared or restored; `item` is the API's image with its flags.
 */
class FlagCard {
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
    for (const link of this.element.querySelectorAll("[data-address]"))
      link.href = link.dataset.address.replace("/0/", `/${item.image}/`);
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
    return speciesName(this.item.species);
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
    const image = open.querySelector("img");
    if (image.getAttribute("src") !== this.item.thumbnail_url) image.src = this.item.thumbnail_url;
    title.textContent = this.title;
    species.textContent = this.species;
    withdrawal.hidden = !this.item.withdrawal;
    withdrawal.textContent = this.item.withdrawal ? withdrawalText(this.item.withdrawal) : "";
    flags.replaceChildren(...this.flags.map(flagLine));
    note.hidden = this.state !== "open";
    note.disabled = this.busy;
    note.setAttribute("aria-label", `Note for the withdrawal of image ${this.image}`);
    result.textContent = this.result;
    problem.textContent = this.problem;
    paintActions(actions, this.actions, this.busy);
  }
}

function withdrawalText({ withdrawn_by: by, withdrawn_at: at, note }) {
  const text = `Withdrawn by ${by}, ${moment(at)}`;
  return note ? `${text}: ${note}` : text;
}

function flagLine(flag) {
  const style = PRIVATE.has(flag.kind) ? "rejected" : "submitted";
  return make(
    "li",
    {},
    make("span", { class: `badge ${style}`, text: flag.label }),
    " ",
    make("span", { class: "small muted", text: `${flag.raised_by}, ${moment(flag.raised_at)}` }),
    flag.note ? make("p", { class: "flag-words small", dir: "auto", text: flag.note }) : null,
  );
}

/** The large view of a flagged image, with the same actions and keys as its card. */
class FlagViewer {
  /**
   * @param {HTMLDialogElement} dialog
   * @param {{act: (name: string) => void, step: (by: number) => void, closed: (card: FlagCard) => void}} does
   */
  constructor(dialog, does) {
    this.dialog = dialog;
    this.openDialog = modal(dialog);
    this.card = null;
    const find = (name) => dialog.querySelector(`[data-${name}]`);
    this.parts = Object.fromEntries(
      ["title", "image", "missing", "about", "problem", "note", "actions"].map((name) => [name, find(name)]),
    );
    dialog.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button?.dataset.act) does.act(button.dataset.act);
      else if (button?.dataset.step) does.step(Number(button.dataset.step));
    });
    // The browser gives the focus back to where it was when the dialog opened.
    dialog.addEventListener("close", () => does.closed(this.card));
    this.parts.note.addEventListener("input", () => {
      this.card.parts.note.value = this.parts.note.value;
    });
    this.parts.image.addEventListener("error", () => this.#missing(true));
    this.parts.image.addEventListener("load", () => this.#missing(false));
  }

  get open() {
    return this.dialog.open;
  }

  /** Shows a card's image, or the present state of the card that is shown. */
  show(card) {
    const { title, image, about, problem, note, actions } = this.parts;
    if (this.card !== card) {
      this.card = card;
      this.#missing(false);
      image.src = card.item.url;
      image.width = card.item.width;
      image.height = card.item.height;
      image.alt = card.species ? `${card.title}, ${card.species}` : card.title;
    }
    title.textContent = [card.title, card.species].filter(Boolean).join(" · ");
    const flags = card.flags.map((flag) => (flag.note ? `${flag.label} (${flag.note})` : flag.label));
    about.textContent = card.result || flags.join(" · ");
    problem.textContent = card.problem;
    note.value = card.parts.note.value;
    note.disabled = card.state !== "open" || card.busy;
    const held = actions.contains(document.activeElement);
    paintActions(actions, card.actions, card.busy);
    if (!this.dialog.open) this.openDialog(title);
    else if (held && !actions.contains(document.activeElement)) title.focus();
  }

  #missing(missing) {
    this.parts.missing.hidden = !missing;
    this.parts.image.hidden = missing;
  }
}

const root = document.querySelector("[data-flag-review]");
new FlagReview(root, JSON.parse(document.getElementById("flag-page").textContent));

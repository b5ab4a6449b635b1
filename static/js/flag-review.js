/** The reviewer's page of flags: withdraw, clear, restore and undo, each stored before it is shown. */
import { api } from "./api.js";
import { FlagCard } from "./flag-card.js";
import { FlagViewer } from "./flag-viewer.js";

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
    if (event.ctrlKey || event.metaKey || event.altKey || !this.current) return;
    // A key that is held moves on, but decides once.
    if (event.repeat && !MOVES[event.key]) return;
    if (event.target.matches("input")) {
      if (event.key === "Escape" && !this.viewer.open) this.current.article.focus();
      return;
    }
    const within = this.viewer.open || this.list.contains(event.target);
    const move = MOVES[event.key];
    if (move && (within || event.target === document.body)) this.move(...move);
    else if (!within) return;
    else if (KEYS[event.key.toLowerCase()]) this.act(this.current, KEYS[event.key.toLowerCase()]);
    else if (event.key.toLowerCase() === "n") this.write();
    else if (event.key === "Enter" && event.target === this.current.article) this.viewer.show(this.current);
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
    const top = this.cards[0].element.offsetTop;
    const columns = this.cards.filter((card) => card.element.offsetTop === top).length;
    this.step(this.viewer.open ? across + down : across + down * columns);
  }

  /**
   * Does one action if the card's state allows it, and goes on to the next card that waits.
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
    this.decided(card, item, "withdrawn", "Out of the corpus.");
  }

  async restore(card) {
    const item = await this.post(card, "restore", {});
    card.last = card.item.withdrawal;
    this.decided(card, item, "restored", "Back in the corpus.");
  }

  async clear(card) {
    const answer = await this.post(card, "clear-flags", { flags: card.flags.map((flag) => flag.id) });
    if (answer.withdrawal) {
      this.decided(card, answer, "withdrawn", "Somebody withdrew it meanwhile.", false);
    } else if (answer.flags.length) {
      card.update(answer);
      card.problem = "Somebody flagged it meanwhile: look again.";
    } else {
      card.cleared = answer.cleared;
      const mine = answer.cleared.length > 0;
      this.decided(card, answer, "cleared", mine ? "Cleared: it stays." : "Somebody cleared it meanwhile.", mine);
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
    else this.decided(card, item, "cleared", "Somebody decided about it meanwhile.", false);
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

const root = document.querySelector("[data-flag-review]");
new FlagReview(root, JSON.parse(document.getElementById("flag-page").textContent));

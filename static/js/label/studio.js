/**
 * The labelling studio: what the views and panels of the page share, and the one way to judge.
 *
 * It owns the place (which rank, which view) and the judging rules; pictures and labels are the store's, saving is
 * the outbox's, and what stands on the screen is the views' and panels'.
 */
import { uuid } from "../api.js";
import { Changes } from "./changes.js";
import { ActiveClock } from "./clock.js";
import { Keymap } from "./keymap.js";
import { Notices } from "./notices.js";
import { Outbox } from "./outbox.js";
import { Preferences } from "./preferences.js";
import { CandidateStore } from "./store.js";
import { UndoStack } from "./undo.js";
import { inWords } from "./words.js";

const VIEWS = ["single", "grid"];
const LIST_ASKED_EVERY = 1000;

export class Studio {
  /**
   * @param {HTMLElement} root the page's frame
   * @param {{user: {id: number, role: string, names_hidden: boolean}, keymap: object[], preferences: object}} given
   *   what the server put into the page
   */
  constructor(root, { user, keymap, preferences }) {
    this.root = root;
    this.api = root.dataset.api;
    this.user = { id: user.id, role: user.role };
    this.namesHidden = user.names_hidden;
    const query = Number(root.dataset.query);
    this.preferences = new Preferences(preferences?.view ?? {});
    this.keymap = new Keymap(keymap || [], preferences?.keys ?? {});
    this.store = new CandidateStore(this.api);
    this.outbox = new Outbox({ user: user.id, query, url: `${this.api}judgments/` });
    this.undoStack = new UndoStack({ user: user.id, query });
    this.clock = new ActiveClock();
    this.notices = new Notices(root.querySelector("[data-notices]"));
    this.views = {};
    this.view = VIEWS.includes(this.preferences.get("view")) ? this.preferences.get("view") : "single";
    this.rank = null;
    this.state = "loading";
    this.closed = "";
    this.actions = new Map();
    this.listeners = new Map();
    this.live = root.querySelector("[data-live]");
    for (const event of ["labels", "list", "matching"]) {
      this.store.addEventListener(event, ({ detail }) => this.emit(event, detail));
    }
    this.on("labels", () => this.emit("progress", this.store.progress));
    this.on("list", () => this.emit("progress", this.store.progress));
  }

  /** Calls `listener(detail)` on "rank", "view", "labels", "progress", "list", "matching", "state", "ready", "changes". */
  on(event, listener) {
    if (!this.listeners.has(event)) this.listeners.set(event, new Set());
    this.listeners.get(event).add(listener);
  }

  emit(event, detail) {
    this.listeners.get(event)?.forEach((listener) => listener(detail));
  }

  /** Binds an action of the keymap to what it does. */
  action(name, run) {
    this.actions.set(name, run);
  }

  /** Does the named action; false when nothing is bound to it. */
  run(name, event) {
    const run = this.actions.get(name);
    if (!run) return false;
    run(event);
    return true;
  }

  /** The keys of an action as people read them, e.g. ["R", "1"]. */
  keysOf(name) {
    return this.keymap.shown(name);
  }

  /** Whether a dialog is open, so that keys and judgments belong to it. */
  get blocked() {
    return Boolean(document.querySelector("dialog[open]"));
  }

  /** Details of the candidate at the present rank, as far as they are known; else null. */
  get current() {
    return (this.rank && this.store.peek(this.rank)) || null;
  }

  /** Says something to screen readers. */
  announce(text) {
    this.live.textContent = text;
  }

  /** Loads the list and shows the first candidate without a label; comes back by itself while the list is made. */
  async start() {
    try {
      await this.store.load();
    } catch (error) {
      this.#setState("failed", { error });
      return;
    }
    const { list } = this.store;
    if (list.state === "building") {
      this.#setState("building", { list });
      setTimeout(() => this.start(), LIST_ASKED_EVERY);
      return;
    }
    if (list.state !== "ready" || !this.store.size) {
      this.#setState("empty", { list });
      return;
    }
    this.emit("progress", this.store.progress);
    this.emit("ready");
    this.setView(this.view);
    await this.toNextUnlabelled(this.rank ?? 1);
  }

  #setState(state, detail = {}) {
    this.state = state;
    this.root.dataset.state = state;
    this.emit("state", { state, ...detail });
  }

  /** Shows the list one by one ("single") or by pages ("grid"), at the same place. */
  setView(view) {
    if (view !== this.view) {
      this.views[this.view]?.leave();
      this.preferences.set("view", view);
    }
    this.view = view;
    this.root.dataset.view = view;
    this.views[view]?.enter(this.rank ?? 1);
    this.emit("view", view);
  }

  /** Shows the candidate at `rank`; past the list's end, what there is to do then. */
  async go(rank) {
    if (!rank || rank > this.store.size) {
      this.#end();
      return;
    }
    this.rank = Math.max(1, rank);
    if (this.state !== "ready") this.#setState("ready");
    this.views[this.view]?.show(this.rank);
    this.emit("rank", this.rank);
    const known = this.store.peek(this.rank);
    if (known) return;
    await this.store.details(this.rank);
    if (this.rank === rank) this.emit("rank", this.rank);
  }

  /** Goes to the first candidate from `from` on without a label, else to the first of all. */
  async toNextUnlabelled(from = 1) {
    const rank =
      this.store.next(from - 1, { unlabelled: true }) ?? this.store.next(0, { unlabelled: true });
    await this.go(rank);
  }

  #end() {
    this.rank = this.store.size + 1;
    this.#setState("end");
    this.emit("rank", this.rank);
  }

  /**
   * Judges images: the only way there is. Marks are `{image, relevance, from?}`; `from` says what stands for an
   * image outside the list. False when judging is not possible now.
   */
  judge(marks, { source = "list", seconds, fromDialog = false } = {}) {
    if (this.closed || (this.blocked && !fromDialog)) return false;
    const changes = marks.map((mark) => this.#change(mark)).filter((change) => this.#changes(change, source));
    if (!changes.length) return true;
    this.#record(changes, source, seconds ?? this.clock.take());
    this.undoStack.push({ marks: changes, source });
    return true;
  }

  #change({ image, relevance, from }) {
    const entry = this.store.entry(this.store.rankOf(image));
    return {
      image,
      from: entry ? entry.relevance : from,
      fromSource: entry?.source ?? null,
      to: relevance,
    };
  }

  /** A label given again changes nothing, unless it is now given in the list's order. */
  #changes({ from, fromSource, to }, source) {
    return from !== to || (source === "list" && ["search", "similar"].includes(fromSource));
  }

  #record(changes, source, seconds) {
    const each = Math.round((seconds * 1000) / changes.length) / 1000;
    this.outbox.add(
      changes.map(({ image, from, to }) => ({
        image,
        relevance: to,
        client_id: uuid(),
        seconds: each,
        source,
        ...(from === undefined ? {} : { expected: from }),
      })),
    );
    this.store.applyMany(changes.map(({ image, to }) => ({ image, relevance: to, source })));
  }

  /** Takes the last act back, and shows the place where it was. */
  async undo() {
    await this.#restep(() => this.undoStack.undo(), true);
  }

  /** Does again what was taken back. */
  async redo() {
    await this.#restep(() => this.undoStack.redo(), false);
  }

  async #restep(take, back) {
    if (this.closed || this.blocked) return;
    const step = await take();
    if (!step) {
      this.announce(back ? "There is nothing to undo." : "There is nothing to redo.");
      return;
    }
    const changes = step.marks.map(({ image, from, to }) => {
      const entry = this.store.entry(this.store.rankOf(image));
      return { image, from: entry ? entry.relevance : back ? to : from, to: (back ? from : to) ?? null };
    });
    this.#record(changes, step.source, this.clock.take());
    const [{ image, to }] = changes;
    const rank = this.store.rankOf(image);
    const what = changes.length === 1 ? `rank ${rank ?? "–"}: ${inWords(to)}` : `${changes.length} images`;
    this.announce(`${back ? "Undone" : "Done again"}, ${what}`);
    if (rank) await this.go(rank);
  }
}

/**
 * The labeling studio: what the views and panels of the page share, and the only way to judge.
 *
 * It owns the place (which rank, which view) and the judging rules; the store holds images and labels,
 * the outbox saves, and views and panels draw.
 */
import { api } from "../api.js";
import { Outbox } from "../saving/outbox.js";
import { UndoStack } from "../saving/undo.js";
import { AuditSource, BlindSource } from "./audit-source.js";
import { Changes } from "./changes.js";
import { ActiveClock } from "./clock.js";
import { Keymap } from "./keys.js";
import { LearnedSource } from "./learned-source.js";
import { ListSource } from "./list-source.js";
import { Notices } from "./messages.js";
import { ReviewSource } from "./review-source.js";
import { OUTSIDE_LIST, SOURCES } from "./stopping.js";
import { CandidateStore } from "./store.js";

const VIEWS = ["single", "grid"];
/** By the kind that the server gives. */
const SOURCE_CLASSES = {
  list: ListSource,
  learned: LearnedSource,
  review: ReviewSource,
  audit: AuditSource,
  blind: BlindSource,
};
const LIST_ASKED_EVERY = 1000;
const HINT_STAYS = 2500;
/** Browsers let a page change its address only so often, the strictest 100 times in 30 seconds. */
const MOST_ADDRESSES = 80;
const ADDRESSES_IN = 30_000;
/** The most active seconds that the server accepts for one judgment. */
const MOST_SECONDS = 3600;
/** A label given elsewhere counts for the streak only once it is given in the list's order too. */
const IN_ORDER = new Set(["list", "learned"]);
const isElsewhere = (source) => OUTSIDE_LIST.has(SOURCES[source]);

/** The change that redoes what a step did to an image, or with `back` undoes it; it is sent as it was given then. */
function replay({ image, from, fromSource, fromGrade, fromReason, to, grade, reason, ...provenance }, back) {
  if (!back) return { image, from, to, grade, reason, ...provenance };
  const before = isElsewhere(fromSource) ? { source: fromSource } : provenance;
  return { image, from: to, to: from, grade: fromGrade, reason: fromReason, ...before };
}

export class Studio {
  /**
   * @param {HTMLElement} root the page's frame
   * @param {object} page what labeling/views.py tells the page, of the source at least its `kind`
   */
  constructor(root, page) {
    const { user, query, preferences, source } = page;
    this.root = root;
    this.page = page;
    this.api = page.api;
    this.user = user;
    this.preferences = new Preferences(user.id, preferences.view);
    this.keymap = new Keymap(page.keymap, preferences.keys);
    this.keymap.graded = page.least_relevant_grade !== null;
    /** Whether images are reviewed. */
    this.review = source.kind === "review";
    /** Whether the list is labeled in the order that learns. */
    this.learned = source.kind === "learned";
    /** Whether images are judged blindly. */
    this.blind = source.kind === "blind";
    /** Whether drawn images are labeled: the query's audit, or blindly. */
    this.audit = source.kind === "audit" || this.blind;
    /** Whether the candidate list is labeled. */
    this.listed = !this.review && !this.audit;
    /** Whether the page has the grid. */
    this.gridded = !this.review;
    this.store = new CandidateStore(this.api, SOURCE_CLASSES[source.kind], source);
    this.source = this.store.source;
    this.outbox = new Outbox({ user: user.id, query, url: `${this.api}judgments/` });
    this.undoStack = new UndoStack({ user: user.id, query });
    this.changes = new Changes(this.store, this.outbox);
    this.clock = new ActiveClock();
    this.notices = new Notices(root.querySelector("[data-notices]"));
    this.views = {};
    const view = this.preferences.get("view");
    this.view = VIEWS.includes(view) && this.gridded ? view : "single";
    this.rank = null;
    /** When the address was changed, within the last ADDRESSES_IN. */
    this.addressed = [];
    this.state = "loading";
    this.closed = "";
    /** Active seconds so far of images that were left without a label. */
    this.spent = new Map();
    this.actions = new Map();
    this.listeners = new Map();
    this.live = root.querySelector("[data-live]");
    this.hint = root.querySelector("[data-hint]");
    for (const event of ["labels", "list", "matching", "order"]) {
      this.store.addEventListener(event, ({ detail }) => this.emit(event, detail));
    }
    for (const event of ["labels", "list"]) this.on(event, () => this.emit("progress", this.store.progress));
  }

  /**
   * Calls `listener(detail)` on "rank", "view", "labels", "progress", "list", "matching", "order", "state", "closed", "panel"
   * and "ready".
   */
  on(event, listener) {
    if (!this.listeners.has(event)) this.listeners.set(event, new Set());
    this.listeners.get(event).add(listener);
  }

  emit(event, detail) {
    for (const listener of this.listeners.get(event) ?? []) listener(detail);
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

  /** Says something to everybody, briefly, over the image's lower edge. */
  say(text) {
    this.announce(text);
    this.hint.textContent = text;
    this.hint.classList.add("on");
    clearTimeout(this.hintTimer);
    this.hintTimer = setTimeout(() => this.hint.classList.remove("on"), HINT_STAYS);
  }

  /** Says why nothing can be judged now. */
  sayWhyNot() {
    if (this.closed) this.say(`Not labeled: ${this.closed}`);
  }

  /** Shows a panel of the side column: "reference" or another of its tabs. */
  openPanel(name) {
    this.emit("panel", name);
  }

  /** Loads the list and shows the first candidate without a label; retries while the list is being made. */
  async start() {
    try {
      await this.store.load();
    } catch (error) {
      this.#setState("failed", { error });
      return;
    }
    const { list } = this.store;
    const state = this.listed ? list.state : "ready";
    if (state === "building") {
      this.#setState("building", { list });
      setTimeout(() => this.start(), LIST_ASKED_EVERY);
      return;
    }
    if (state !== "ready" || !this.store.size) {
      this.#setState("empty", { list });
      return;
    }
    this.emit("progress", this.store.progress);
    this.emit("ready");
    this.setView(this.view);
    if (this.rank === null) await this.#begin();
    else await this.toNextUnlabeled(this.rank);
  }

  /** Goes to the rank that the address names, or the nearest; without one to the first image without a label. */
  async #begin() {
    const named = !this.listed ? "" : (new URLSearchParams(window.location.search).get("rank") ?? "");
    const rank = named && this.store.nearest(Math.round(Number(named)));
    if (rank) await this.go(rank);
    else await this.toNextUnlabeled();
    if (!named || rank === Number(named)) return;
    const here = rank ? `rank ${rank}, the nearest` : "the first image without a label";
    this.notices.show("rank", {
      kind: "warning",
      text: `The list shows no image at rank “${named.slice(0, 20)}”; this is ${here}.`,
      actions: [{ label: "OK", run: () => this.notices.hide("rank") }],
    });
  }

  /** Has the address name the place (of the grid the first of the page), so that it can be copied. */
  #writeAddress() {
    if (!this.listed) return;
    clearTimeout(this.addressTimer);
    const now = performance.now();
    this.addressed = this.addressed.filter((at) => at > now - ADDRESSES_IN);
    if (this.addressed.length >= MOST_ADDRESSES) {
      this.addressTimer = setTimeout(() => this.#writeAddress(), this.addressed[0] + ADDRESSES_IN - now);
      return;
    }
    this.addressed.push(now);
    const address = new URL(window.location.href);
    const [first] = this.view === "grid" ? this.views.grid.ranks : [];
    if (this.state === "ready") address.searchParams.set("rank", first ?? this.rank);
    else address.searchParams.delete("rank");
    window.history.replaceState(null, "", address);
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
    if (this.rank !== null) this.#writeAddress();
    this.emit("view", view);
  }

  /** Shows the candidate at `rank`; past the list's end, what there is to do then. */
  async go(rank) {
    if (!rank || rank > this.store.size) {
      this.#end();
      return;
    }
    if (this.store.entry(rank).withdrawn) {
      this.say("That image was withdrawn, so it isn't shown.");
      return;
    }
    if (rank !== this.rank) this.#leave();
    this.rank = rank;
    if (this.state !== "ready") this.#setState("ready");
    this.views[this.view]?.show(this.rank);
    this.#writeAddress();
    this.emit("rank", this.rank);
    if (this.store.peek(this.rank)) return;
    try {
      await this.store.details(this.rank);
    } catch {
      // Without a connection the view says that there is no image.
      return;
    }
    if (this.rank === rank) this.emit("rank", this.rank);
  }

  /** Goes to the first candidate from `from` on without a label, else to the first of all. */
  async toNextUnlabeled(from = 0) {
    const [rank] = this.store.visibleRanks(from, 1, { unlabeled: true });
    await this.go(rank ?? this.store.next(0, { unlabeled: true }));
  }

  /** Time spent on an image that is left unlabeled counts once it is labeled. */
  #leave() {
    const image = this.store.entry(this.rank)?.image;
    if (image && this.view === "single" && this.state === "ready") {
      this.spent.set(image, (this.spent.get(image) ?? 0) + this.clock.take());
    }
  }

  /** The active seconds of an act: since the last one, or since the place was last changed. */
  #secondsOf(changes) {
    const seconds = changes.reduce((sum, { image }) => sum + (this.spent.get(image) ?? 0), this.clock.take());
    for (const { image } of changes) this.spent.delete(image);
    return seconds;
  }

  #end() {
    this.#leave();
    this.rank = this.store.size + 1;
    this.views[this.view]?.hide();
    this.#setState("end");
    this.#writeAddress();
    this.emit("rank", this.rank);
  }

  /**
   * Judges images. Marks are `{image, relevance, grade?, reason?, from?, source?, revision?, place?}`; `from` is the
   * present label of an image outside the list, `source` (with revision and place) where the image was met if not in
   * the order of the page. False when judging is not possible now.
   */
  judge(marks, { seconds, fromDialog = false } = {}) {
    if (this.closed || (this.blocked && !fromDialog)) return false;
    const changes = marks
      .map((mark) => this.#change(mark))
      .filter(
        ({ image, from, fromSource, fromGrade, to, grade, reason, source }) =>
          from !== to ||
          (grade !== null && (grade !== fromGrade || reason !== "")) ||
          (IN_ORDER.has(source) && isElsewhere(fromSource)) ||
          (to !== null && this.store.needsLabel(this.store.rankOf(image))),
      );
    if (!changes.length) return true;
    this.#record(changes, seconds ?? this.#secondsOf(changes));
    this.undoStack.push({ marks: changes });
    return true;
  }

  #change({ image, relevance, grade = null, reason = "", from = null, ...met }) {
    const entry = this.store.entry(this.store.rankOf(image));
    const { source, revision, place } = met.source ? met : this.source.provenance(entry.rank);
    return {
      image,
      from: entry ? entry.relevance : from,
      fromSource: entry?.source ?? null,
      fromGrade: this.store.gradeOf(image),
      fromReason: this.store.reasonOf(image),
      to: relevance,
      grade,
      reason,
      source,
      ...(revision ? { revision, place } : {}),
    };
  }

  #record(changes, seconds) {
    const each = Math.min(MOST_SECONDS, Math.round((seconds * 1000) / changes.length) / 1000);
    this.outbox.add(
      changes.map(({ image, from, to, grade, reason, source, revision, place }) => ({
        image,
        relevance: to,
        seconds: each,
        source,
        ...(revision ? { revision, place } : {}),
        ...(typeof grade === "number" ? { grade, reason: reason ?? "" } : {}),
        expected: from,
      })),
    );
    this.store.applyMany(changes.map(({ to, ...change }) => ({ ...change, relevance: to })));
  }

  /** Undoes the last step, and shows its place. */
  async undo() {
    await this.#restep(() => this.undoStack.undo(), true);
  }

  /** Redoes the last undone step. */
  async redo() {
    await this.#restep(() => this.undoStack.redo(), false);
  }

  async #restep(take, back) {
    if (this.closed || this.blocked) {
      this.sayWhyNot();
      return;
    }
    const step = await take();
    if (!step) {
      this.announce(back ? "There is nothing to undo." : "There is nothing to redo.");
      return;
    }
    const wanted = step.marks.map((mark) => replay(mark, back));
    const changes = wanted.filter(({ image, from }) => this.#standsStill(image, from));
    const rank = this.store.rankOf(wanted[0].image);
    const place = rank ? this.source.where(rank) : "an image outside the list";
    const what = wanted.length === 1 ? place : `${changes.length} of ${wanted.length} images`;
    if (changes.length) this.#record(changes, this.clock.take());
    if (changes.length) this.say(`${back ? "Undone" : "Done again"}: ${what}`);
    else this.say(`Left as it is, since it was changed elsewhere: ${what}`);
    if (rank) await this.go(rank);
  }

  /** Whether an image still has the label that a step gave it; a later change elsewhere is left alone. */
  #standsStill(image, relevance) {
    const entry = this.store.entry(this.store.rankOf(image));
    return !entry || entry.relevance === (relevance ?? null);
  }

  /** Extends the list, and continues where it ended. */
  async extend() {
    const place = this.learned ? 0 : this.store.size + 1;
    await api(`${this.api}extend/`, { method: "POST", body: {} });
    await this.store.load();
    this.notices.hide("list");
    await this.toNextUnlabeled(place);
  }
}

/** A person's preferences on this page, stored on the server for every browser. */

const ADDRESS = "/api/preferences/labeling/";
const QUIET = 600;
/** A page that is loaded within so many milliseconds may have been made before the server had the last ones. */
const SAVED_WITHIN = 10_000;

class Preferences {
  /**
   * @param {number} user
   * @param {Object<string, *>} view what the server had when the page was made
   */
  constructor(user, view) {
    this.key = `preferences of ${user}`;
    this.view = { ...view, ...this.#left() };
    this.timer = 0;
    window.addEventListener("pagehide", () => this.#flush());
  }

  /** What this tab's page before this one sent last, if that was just now. */
  #left() {
    try {
      const { at, view } = JSON.parse(sessionStorage.getItem(this.key));
      return Date.now() - at < SAVED_WITHIN ? view : {};
    } catch {
      return {};
    }
  }

  get(name, fallback = null) {
    return this.view[name] ?? fallback;
  }

  /** Sets a value here, and shortly after on the server. */
  set(name, value) {
    if (this.view[name] === value) return;
    this.view[name] = value;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#flush(), QUIET);
  }

  #flush() {
    if (!this.timer) return;
    clearTimeout(this.timer);
    this.timer = 0;
    try {
      sessionStorage.setItem(this.key, JSON.stringify({ at: Date.now(), view: this.view }));
    } catch {
      // Without it a page that is loaded again at once may have the preferences of before.
    }
    // A failure loses no work: preferences stay in use here and are sent with the next change.
    api(ADDRESS, { method: "PUT", body: { view: this.view }, keepalive: true }).catch(() => {});
  }
}

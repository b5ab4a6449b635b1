/** Asks the server now and then what has changed on the query elsewhere: on another device, or by others. */
import { api } from "../api.js";

/** The most acts of judging that one answer tells of. */
const MOST_ACTS = 1000;
const VISIBLE_EVERY = 5000;
const HIDDEN_EVERY = 15_000;

/**
 * Keeps the store up to date: labels made on other devices and in other tabs, answers and refusals, withdrawn and
 * flagged images, a new list, the query's state.
 *
 * Events: "others" when `others` changed, "own" (detail `{marks}`) when labels came from elsewhere, "failed" and
 * "recovered" when asking stops and begins to work.
 */
export class Changes extends EventTarget {
  /**
   * @param {import("./store.js").CandidateStore} store loaded
   * @param {import("./outbox.js").Outbox} outbox
   */
  constructor(store, outbox) {
    super();
    this.store = store;
    this.outbox = outbox;
    /** Who has judged for the query in the last day: `[{annotator, judged, last}]`. */
    this.others = [];
    this.failing = false;
    this.stopped = true;
    this.#follow();
  }

  /** Begins to ask; `stop()` ends it. */
  start() {
    if (!this.stopped) return;
    this.stopped = false;
    this.#again();
  }

  stop() {
    this.stopped = true;
    clearTimeout(this.timer);
  }

  /** Asks now. Never rejects. */
  async ask() {
    clearTimeout(this.timer);
    try {
      await this.#ask();
      this.#setFailing(false);
    } catch {
      this.#setFailing(true);
    }
    if (!this.stopped) this.#again();
  }

  #again() {
    const pause = document.visibilityState === "visible" ? VISIBLE_EVERY : HIDDEN_EVERY;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), pause);
  }

  #follow() {
    const { store, outbox } = this;
    outbox.addEventListener("remote", ({ detail }) => {
      store.applyMany(detail.marks);
      this.#fire("own", detail);
    });
    outbox.addEventListener("answer", ({ detail }) => {
      if (detail.progress) store.timing = detail.progress;
    });
    outbox.addEventListener("state", () => {
      store.unsavedSeconds = outbox.unsavedSeconds;
    });
    outbox.addEventListener("refused", ({ detail: { record, stands } }) => {
      if (stands !== undefined) store.set(record.image, stands, record.source);
    });
    document.addEventListener("visibilitychange", () => {
      if (!this.stopped && document.visibilityState === "visible") this.ask();
    });
    window.addEventListener("online", () => !this.stopped && this.ask());
  }

  async #ask() {
    const { store, outbox } = this;
    const since = store.acts;
    const waitingBefore = await outbox.pending();
    const changes = await this.#fetch();
    const waiting = new Set([...waitingBefore, ...(await outbox.pending())].map(({ image }) => image));
    store.setQuery(changes.query);
    const { id, size } = changes.list;
    if (id !== store.list.id || size !== store.list.size) {
      await store.load();
      return;
    }
    const settled = changes.own.filter(({ image }) => !waiting.has(image) && !store.changedSince(image, since));
    const marks = settled.filter((mark) => this.#differs(mark));
    store.applyMany(marks);
    if (marks.length) this.#fire("own", { marks });
    store.setWithdrawn(changes.withdrawn);
    store.setFlaggedRanks(changes.flagged);
    // What was judged here meanwhile may be older or newer than what the server told: asked again.
    if (settled.length === changes.own.length) store.cursor = changes.cursor;
    if (JSON.stringify(changes.others) !== JSON.stringify(this.others)) {
      this.others = changes.others;
      this.#fire("others");
    }
  }

  /** All that is new; of an image that was judged several times, the last act. */
  async #fetch() {
    const own = new Map();
    let { cursor } = this.store;
    for (;;) {
      const changes = await api(`${this.store.api}changes/?cursor=${cursor}`);
      for (const act of changes.own) own.set(act.image, act);
      if (changes.cursor - cursor < MOST_ACTS) return { ...changes, own: [...own.values()] };
      cursor = changes.cursor;
    }
  }

  #differs({ image, relevance, source }) {
    const entry = this.store.entry(this.store.rankOf(image));
    return entry !== null && (entry.relevance !== relevance || (relevance !== null && entry.source !== source));
  }

  #setFailing(failing) {
    if (failing === this.failing) return;
    this.failing = failing;
    this.#fire(failing ? "failed" : "recovered");
  }

  #fire(kind, detail) {
    this.dispatchEvent(new CustomEvent(kind, { detail }));
  }
}

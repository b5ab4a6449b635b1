/** What happens elsewhere while one labels: polled from the server, and what the page makes of it. */
import { api } from "../api.js";
import { counted, number } from "../words.js";

/** The most acts of judging in one answer. */
const MOST_ACTS = 1000;
const VISIBLE_EVERY = 10_000;
const HIDDEN_EVERY = 30_000;
/** At least so many times as long as the answer took lie between two. */
const MIN_PAUSE_RATIO = 20;

/**
 * Keeps the store up to date: labels made on other devices and in other tabs, answers and refusals, withdrawn and
 * flagged images, a new list, the query's state.
 *
 * Events: "others" when `others` changed, "comments" with each answer, "own" (detail `{marks}`) when labels came from elsewhere.
 */
export class Changes extends EventTarget {
  /**
   * @param {CandidateStore} store loaded
   * @param {Outbox} outbox
   */
  constructor(store, outbox) {
    super();
    this.store = store;
    this.outbox = outbox;
    /** Who has judged for the query in the last day: `[{annotator, judged, last}]`. */
    this.others = [];
    /** How many comments images have, of those that one may read: `[{image, comments}]`. */
    this.comments = [];
    this.failing = false;
    this.stopped = true;
    this.#follow();
  }

  /** Starts polling; `stop()` ends it. */
  start() {
    if (!this.stopped) return;
    this.stopped = false;
    this.#again();
  }

  stop() {
    this.stopped = true;
    clearTimeout(this.timer);
  }

  /** Polls now. Never rejects. */
  async poll() {
    clearTimeout(this.timer);
    const began = performance.now();
    try {
      await this.#poll();
      this.failing = false;
    } catch {
      this.failing = true;
    }
    if (!this.stopped) this.#again(MIN_PAUSE_RATIO * (performance.now() - began));
  }

  #again(rest = 0) {
    const visible = document.visibilityState === "visible";
    const pause = visible ? Math.min(Math.max(VISIBLE_EVERY, rest), HIDDEN_EVERY) : HIDDEN_EVERY;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.poll(), pause);
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
      if (!this.stopped && document.visibilityState === "visible") this.poll();
    });
    window.addEventListener("online", () => !this.stopped && this.poll());
  }

  async #poll() {
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
    await store.source.follow(changes);
    // What was judged here meanwhile may be older or newer than the server's answer: the next poll reads it again.
    if (settled.length === changes.own.length) store.cursor = changes.cursor;
    if (JSON.stringify(changes.others) !== JSON.stringify(this.others)) {
      this.others = changes.others;
      this.#fire("others");
    }
    this.comments = changes.comments;
    this.#fire("comments");
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

  #differs({ image, relevance, source, grade }) {
    const entry = this.store.entry(this.store.rankOf(image));
    if (entry === null) return false;
    if (grade !== this.store.gradeOf(image)) return true;
    // A label that was given in the order that learns keeps this source, whatever corrects it.
    return entry.relevance !== relevance || (relevance !== null && ![source, "learned"].includes(entry.source));
  }

  #fire(kind, detail) {
    this.dispatchEvent(new CustomEvent(kind, { detail }));
  }
}

const CLOSED = {
  open: "You have handed in your part of this query.",
  draft: "The query is a draft again and can't be labeled.",
  submitted: "The query was handed in and can't be labeled now.",
  complete: "The query was completed and can no longer be labeled.",
  rejected: "The query was rejected and can no longer be labeled.",
};

function watchQuery(studio) {
  const { store, notices } = studio;
  const render = () => {
    const { state, can_label: open } = store.query;
    studio.closed = open ? "" : (CLOSED[state] ?? "The query can't be labeled now.");
    studio.emit("closed", studio.closed);
    if (open) {
      notices.hide("closed");
      return;
    }
    notices.show("closed", {
      kind: "warning",
      text: `${studio.closed} Your judgments are kept.`,
      actions: [{ label: "All queries", run: () => window.location.assign("/") }],
    });
  };
  store.addEventListener("query", render);
  studio.on("ready", render);
}

/** Keeps the image on the screen, or the nearest place, when the list is another one. */
function watchList(studio) {
  const { store, notices } = studio;
  let image = null;
  studio.on("rank", (rank) => {
    image = store.entry(rank)?.image ?? null;
  });
  studio.on("list", () => {
    if (!["ready", "end"].includes(studio.state)) return;
    if (store.list.state !== "ready") {
      studio.start();
      return;
    }
    const rank = image === null ? null : store.rankOf(image);
    if (rank) studio.go(rank);
    else studio.toNextUnlabeled(Math.min(studio.rank, store.size));
    notices.show("list", {
      text: `The candidate list has changed: it has ${counted(store.size, "candidate")} now.`,
      actions: [{ label: "OK", run: () => notices.hide("list") }],
    });
  });
}

/** Goes on from an image that is not shown any more. */
function watchVisible(studio) {
  const { store } = studio;
  const move = (why) => {
    if (studio.state !== "ready" || store.visible(studio.rank)) return;
    const rank = store.next(studio.rank, { unlabeled: true }) ?? store.next(studio.rank) ?? store.next(0);
    studio.go(rank ?? store.size + 1);
    if (why) studio.say(why);
  };
  store.addEventListener("withdrawn", () => move("That image was withdrawn and needs no label."));
  studio.on("matching", () => move(""));
}

function watchOthers(studio) {
  const node = studio.root.querySelector("[data-others]");
  studio.changes.addEventListener("others", () => {
    const people = studio.changes.others;
    node.textContent = people
      .map(({ annotator, judged }) => `${annotator} labeled ${number(judged)}`)
      .join(", ")
      .replace(/$/, people.length ? " here today" : "");
    node.title = node.textContent;
  });
  studio.changes.addEventListener("own", ({ detail: { marks } }) => {
    studio.say(`${counted(marks.length, "label")} came from another tab or device.`);
  });
}

/** @param {Studio} studio */
export function mountWatch(studio) {
  watchQuery(studio);
  if (studio.listed) watchList(studio);
  watchVisible(studio);
  watchOthers(studio);
  studio.on("ready", () => studio.changes.start());
}

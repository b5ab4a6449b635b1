/**
 * The images of the page as it knows them: label and place of every rank at once (from the outline), and decoded
 * images of what is near. Its source says which images they are, in which order they come and how judgments are sent.
 *
 * Labels are those of the person at this page, with what still waits to be sent.
 */
import { senderFor } from "../saving/sender.js";
import { ImageCache } from "./images.js";
import { LETTERS, OUTSIDE_LIST, SOURCES, UNLABELED } from "./stopping.js";

const MOST_IMAGES = 64;
const MOST_THUMBNAILS = 320;

const inverted = (words) => Object.fromEntries(Object.entries(words).map(([word, letter]) => [letter, word]));
const RELEVANCE_OF = inverted(LETTERS);
const SOURCE_OF = inverted(SOURCES);
/** Sources by which images are met blindly. */
const BLIND = new Set([SOURCES.second, SOURCES.run, SOURCES.reader, SOURCES.picked]);

/**
 * Whether a correction keeps where the image was met, as labeling/judging/writer.py has it. What was met blindly
 * stays so.
 */
function keepsSource(before, source) {
  const outside = !OUTSIDE_LIST.has(before) && OUTSIDE_LIST.has(source);
  return outside || before === SOURCES.learned || BLIND.has(before) || BLIND.has(source);
}

/** The ranks that are in one of two sets but not in both. */
function difference(before, after) {
  return [...new Set([...after, ...before])].filter((rank) => before.has(rank) !== after.has(rank));
}

/** @typedef {{rank: number, image: number, score: number, relevance: string|null, source: string|null,
 *   withdrawn: boolean, flagged: boolean}} Entry */

/**
 * Events: "labels" (detail `{images}`: whose label or flag changed), "list" (another list, or a longer one),
 * "matching" (the filter), "withdrawn" and "flagged" (detail `{ranks}`: those that are now or are no more), "query"
 * (detail `{state, can_label}`), "order" (another order of what comes),
 * "image" (detail `{rank, kind}`: one that had failed was loaded after all).
 */
export class CandidateStore extends EventTarget {
  /**
   * @param {string} apiBase the query's address, e.g. "/api/queries/7/"
   * @param {typeof Source} SourceClass
   * @param {object} [given] what labeling/views.py tells of the source
   */
  constructor(apiBase, SourceClass, given) {
    super();
    this.api = apiBase;
    this.annotator = null;
    this.query = null;
    /** What the API said last of the images, in short; null before the first answer. */
    this.outline = null;
    this.cursor = 0;
    this.matching = null;
    /** Counts the changes of labels; `touched` has the count at each image's last one. */
    this.acts = 0;
    this.touched = new Map();
    this.timing = { seconds_per_image: null, active_seconds: 0 };
    /** Active seconds of judgments that the server has not counted yet. */
    this.unsavedSeconds = 0;
    this.loaded = Promise.resolve();
    this.#take({ images: [], scores: [], relevance: "", sources: "", withdrawn: [], flagged: [] });
    this.source = new SourceClass(this, given);
    const address = (field) => async (rank) => (await this.details(rank))?.[field] ?? null;
    /** The decoded images by rank. */
    this.caches = {
      image: new ImageCache(address("url"), MOST_IMAGES),
      thumbnail: new ImageCache(address("thumbnail_url"), MOST_THUMBNAILS),
    };
    for (const [kind, cache] of Object.entries(this.caches)) {
      cache.addEventListener("image", ({ detail }) => this.#fire("image", { ...detail, kind }));
    }
  }

  /** The candidate list's state, size and so on, as the API gives it; null before the first answer. */
  get list() {
    return this.outline?.list ?? null;
  }

  /** The number of ranks, withdrawn ones included. */
  get size() {
    return this.images.length;
  }

  /**
   * Reads the outline, and puts on top of it what waits in the browser: one call after the other, so that no older
   * answer replaces a newer one. Again later: fires "list" if there is another list or a longer one. Rejects where
   * somebody else is logged in by now, whose labels don't belong here.
   */
  load() {
    this.loaded = this.loaded.catch(() => {}).then(() => this.#load());
    return this.loaded;
  }

  async #load() {
    const before = await this.#waiting(this.#person());
    const outline = await this.source.read();
    if (outline.annotator !== (this.#person() || outline.annotator)) {
      throw new Error("Somebody else has logged in in this browser. Log in as yourself to go on here.");
    }
    const after = await this.#waiting(outline.annotator);
    const { list } = this;
    this.annotator = outline.annotator;
    this.outline = outline;
    this.cursor = outline.cursor;
    this.timing = outline.progress ?? this.timing;
    this.#take(outline);
    this.#cover(before, after);
    this.setQuery(outline.query);
    if (list === null) return;
    if (list.id !== outline.list.id) {
      this.matching = null;
      for (const cache of Object.values(this.caches)) cache.clear();
    }
    if (list.id !== outline.list.id || list.size !== outline.list.size) this.#fire("list");
    this.#fire("labels", { images: [...this.images] });
  }

  /** The person whose page this is: from the page, after the first outline from that. */
  #person() {
    return this.annotator ?? Number(document.querySelector('meta[name="user-id"]')?.content ?? 0);
  }

  async #waiting(user) {
    const query = Number(this.api.match(/\/queries\/(\d+)\//)[1]);
    if (!user) return { waiting: [], refused: new Set() };
    const { queue } = senderFor(user);
    const [waiting, refused] = await Promise.all([queue.waitingFor(user, query), queue.refused(user, query)]);
    return { waiting, refused: new Set(refused.map((judgment) => judgment.client_id)) };
  }

  /** The outline may have been read just before or after a judgment was stored: what waited on either side counts. */
  #cover(before, after) {
    const judgments = new Map();
    for (const record of [...before.waiting, ...after.waiting]) judgments.set(record.client_id, record);
    for (const [clientId, judgment] of judgments) {
      if (!after.refused.has(clientId)) this.#put(judgment);
    }
  }

  #take(outline) {
    this.images = outline.images;
    this.scores = outline.scores;
    this.relevance = [...outline.relevance];
    this.sources = [...outline.sources];
    this.grades = new Map();
    [...(outline.grades ?? "")].forEach((digit, place) => {
      if (digit !== UNLABELED) this.grades.set(this.images[place], Number(digit));
    });
    /** Reasons of the grades that were given on this page. */
    this.reasons = new Map();
    this.withdrawn = new Set(outline.withdrawn);
    this.flagged = new Set(outline.flagged);
    this.ranks = new Map(this.images.map((image, place) => [image, place + 1]));
    /** How the list stands by the stop rules; null until it is counted again. */
    this.state = null;
  }

  /** How far the work is, as the source counts it; computed here, so it is right before the server has answered. */
  get progress() {
    return this.source.progress;
  }

  /** @returns {Entry|null} */
  entry(rank) {
    const place = rank - 1;
    if (!(place in this.images)) return null;
    return {
      rank,
      image: this.images[place],
      score: this.scores[place],
      relevance: RELEVANCE_OF[this.relevance[place]] ?? null,
      source: SOURCE_OF[this.sources[place]] ?? null,
      withdrawn: this.withdrawn.has(rank),
      flagged: this.flagged.has(rank),
    };
  }

  /** The rank of an image, or null where the list doesn't have it. */
  rankOf(image) {
    return this.ranks.get(image) ?? null;
  }

  /** Whether the image there is still to be judged. */
  needsLabel(rank) {
    return this.source.needsLabel(rank);
  }

  /** Resolves to the API's details of the image there, or to null where there is none. */
  details(rank) {
    return this.source.details.at(rank);
  }

  /** The same if it is known already. */
  peek(rank) {
    return this.source.details.peek(rank);
  }

  /** Changes a label here; the outbox saves it. */
  set(image, relevance, source = "list") {
    this.applyMany([{ image, relevance, source }]);
  }

  /** The grade of an image, from 0 to 3; null for none. */
  gradeOf(image) {
    return this.grades.get(image) ?? null;
  }

  /** Why an image has its grade; "" for no reason. */
  reasonOf(image) {
    const known = this.peek(this.rankOf(image));
    return this.reasons.get(image) ?? (known && known.grade === this.gradeOf(image) ? known.reason : "");
  }

  /** @param {{image: number, relevance: string|null, source?: string, grade?: number|null, reason?: string}[]} marks */
  applyMany(marks) {
    if (!marks.length) return;
    for (const mark of marks) this.#put(mark);
    this.#fire("labels", { images: marks.map(({ image }) => image) });
  }

  #put({ image, relevance, source = "list", grade, reason }) {
    this.acts += 1;
    this.touched.set(image, this.acts);
    if (typeof grade === "number") this.grades.set(image, grade);
    else this.grades.delete(image);
    if (reason === undefined) this.reasons.delete(image);
    else this.reasons.set(image, reason);
    const rank = this.rankOf(image);
    if (rank === null) return;
    const before = this.sources[rank - 1];
    this.relevance[rank - 1] = LETTERS[relevance] ?? UNLABELED;
    if (relevance === null) this.sources[rank - 1] = UNLABELED;
    else if (before === UNLABELED || !keepsSource(before, SOURCES[source])) this.sources[rank - 1] = SOURCES[source];
    this.state = null;
  }

  /** Whether a label changed after `acts` had the value `since`. */
  changedSince(image, since) {
    return (this.touched.get(image) ?? 0) > since;
  }

  visible(rank) {
    return (
      rank >= 1 &&
      rank <= this.size &&
      !this.withdrawn.has(rank) &&
      !this.source.hides(rank) &&
      (this.matching === null || this.matching.has(rank))
    );
  }

  /** The first visible rank after `rank`, or null. */
  next(rank, { unlabeled = false } = {}) {
    return this.after(rank, 1, { unlabeled })[0] ?? null;
  }

  /** The last visible rank before `rank`, or null. */
  previous(rank) {
    for (let place = Math.min(this.source.placeOf(rank) - 1, this.size); place >= 1; place -= 1) {
      const before = this.source.rankAt(place);
      if (this.visible(before)) return before;
    }
    return null;
  }

  /** The visible rank next to `rank`, or itself; null without any. */
  nearest(rank) {
    if (this.visible(rank)) return rank;
    const [before, after] = [this.previous(rank), this.next(rank)];
    if (before === null || after === null) return before ?? after;
    return after - rank < rank - before ? after : before;
  }

  /** The first `count` visible ranks from `from` on; 0 is before the first. */
  visibleRanks(from, count, options) {
    return this.#visibleAt(this.source.placeOf(from), count, options);
  }

  /** The first `count` visible ranks behind `rank`. */
  after(rank, count, options) {
    return this.#visibleAt(this.source.placeOf(rank) + 1, count, options);
  }

  #visibleAt(start, count, { unlabeled = false } = {}) {
    const ranks = [];
    for (let place = Math.max(1, start); place <= this.size && ranks.length < count; place += 1) {
      const rank = this.source.rankAt(place);
      if (this.visible(rank) && !(unlabeled && !this.needsLabel(rank))) ranks.push(rank);
    }
    return ranks;
  }

  /** Narrows what is visible to these ranks; null shows all. What the stop rules count stays the same. */
  setMatching(ranks) {
    this.matching = ranks === null ? null : new Set(ranks);
    this.#fire("matching");
  }

  /** @param {number[]} ranks all that are withdrawn */
  setWithdrawn(ranks) {
    const changed = difference(this.withdrawn, new Set(ranks));
    if (!changed.length) return;
    this.withdrawn = new Set(ranks);
    this.state = null;
    this.#fire("withdrawn", { ranks: changed });
    this.tell(changed);
  }

  /** @param {number[]} ranks all that have an open flag */
  setFlagged(ranks) {
    const changed = difference(this.flagged, new Set(ranks));
    if (!changed.length) return;
    this.flagged = new Set(ranks);
    this.tell(changed);
    this.#fire("flagged", { ranks: changed });
  }

  /** Notes the open flags of one image. */
  setFlags(image, kinds) {
    const rank = this.rankOf(image);
    if (rank === null) return;
    if (kinds.length) this.flagged.add(rank);
    else this.flagged.delete(rank);
    const details = this.peek(rank);
    if (details) details.flags = [...kinds];
    this.tell([rank]);
  }

  /** Fires "labels" for the images of these ranks. */
  tell(ranks) {
    this.#fire("labels", { images: ranks.map((rank) => this.images[rank - 1]) });
  }

  /** @param {{state: string, can_label: boolean}} query */
  setQuery(query) {
    const before = this.query;
    this.query = { ...query, can_label: this.source.canLabel(query) };
    if (before && (before.state !== query.state || before.can_label !== this.query.can_label)) {
      this.#fire("query", this.query);
    }
  }

  #fire(kind, detail) {
    this.dispatchEvent(new CustomEvent(kind, { detail }));
  }
}

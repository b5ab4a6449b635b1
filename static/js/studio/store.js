/**
 * The candidate list as the page knows it: labels, progress and place of every rank at once (from the outline),
 * details and decoded images of what is near.
 *
 * Labels are those of the person at this page, with what still waits to be sent. Progress is computed here, so it is
 * right before the server has answered.
 */
import { api } from "../api.js";
import { senderFor } from "../saving/sender.js";
import { ImageCache } from "./images.js";
import { OUTSIDE_LIST, LETTERS, SOURCES, stopState } from "./stopping.js";

const MOST_IMAGES = 64;
const MOST_THUMBNAILS = 320;

const inverted = (words) => Object.fromEntries(Object.entries(words).map(([word, letter]) => [letter, word]));
const RELEVANCE_OF = inverted(LETTERS);
const SOURCE_OF = inverted(SOURCES);
const NOTHING = "-";
/** Sources by which images are met blindly. */
const BLIND = new Set([SOURCES.second, SOURCES.run]);

/**
 * Whether a correction keeps where the image was met, as labeling/judging/writer.py has it. What was met blindly
 * stays so.
 */
function keepsSource(before, source) {
  const outside = !OUTSIDE_LIST.has(before) && OUTSIDE_LIST.has(source);
  return outside || before === SOURCES.learned || BLIND.has(before) || BLIND.has(source);
}

/** @typedef {{rank: number, image: number, score: number, relevance: string|null, source: string|null,
 *   withdrawn: boolean, flagged: boolean}} Entry */

/**
 * Events: "labels" (detail `{images}`: whose label or flag changed), "list" (another list, or a longer one),
 * "matching" (the filter), "withdrawn" (detail `{ranks}`: all that are), "query" (detail `{state, can_label}`),
 * "image" (detail `{rank, kind}`: one that had failed was loaded after all).
 */
export class CandidateStore extends EventTarget {
  /** @param {string} apiBase the query's address, e.g. "/api/queries/7/" */
  constructor(apiBase) {
    super();
    this.api = apiBase;
    this.annotator = null;
    this.query = null;
    this.list = null;
    this.cursor = 0;
    this.required = 100;
    this.minimum = 0;
    /** The rule that allows to hand in, and how it stood, as the API gave it last. */
    this.handIn = null;
    this.matching = null;
    /** Counts the changes of labels; `touched` has the count at each image's last one. */
    this.acts = 0;
    this.touched = new Map();
    this.timing = { seconds_per_image: null, active_seconds: 0 };
    /** Active seconds of judgments that the server has not counted yet. */
    this.unsavedSeconds = 0;
    this.#take({ images: [], scores: [], relevance: "", sources: "", withdrawn: [], flagged: [] });
    const upcoming = (rank, count) => this.visibleRanks(rank, count);
    this.known = new CandidateDetails(
      `${apiBase}candidates/`,
      () => ({ size: this.size, upcoming: this.matching || this.reordered ? upcoming : null }),
      (candidate) => {
        candidate.relevance = this.entry(candidate.rank)?.relevance ?? null;
      },
    );
    const address = (field) => async (rank) => (await this.known.at(rank))?.[field] ?? null;
    this.caches = {
      image: new ImageCache(address("url"), MOST_IMAGES),
      thumbnail: new ImageCache(address("thumbnail_url"), MOST_THUMBNAILS),
    };
    for (const [kind, cache] of Object.entries(this.caches)) {
      cache.addEventListener("image", ({ detail }) => this.#fire("image", { ...detail, kind }));
    }
  }

  /** The number of ranks, withdrawn ones included. */
  get size() {
    return this.images.length;
  }

  /**
   * Reads the list's outline, and puts on top of it what waits in the browser. Again later: fires "list" if there is
   * another list or a longer one. Rejects where somebody else is logged in by now, whose labels don't belong here.
   */
  async load() {
    const before = await this.#waiting(this.#person());
    const outline = await this.outline();
    if (outline.annotator !== (this.#person() || outline.annotator)) {
      throw new Error("Somebody else has logged in in this browser. Log in as yourself to go on here.");
    }
    const after = await this.#waiting(outline.annotator);
    const list = this.list;
    this.annotator = outline.annotator;
    this.list = outline.list;
    this.cursor = outline.cursor;
    this.readRules(outline);
    this.#take(outline);
    this.#cover(before, after);
    this.setQuery(outline.query);
    if (list === null) return;
    this.known.clear();
    if (list.id !== outline.list.id) {
      this.matching = null;
      for (const cache of Object.values(this.caches)) cache.clear();
    }
    if (list.id !== outline.list.id || list.size !== outline.list.size) this.#fire("list");
    this.#fire("labels", { images: [...this.images] });
  }

  /** Resolves to the list in short, as the API gives it. */
  outline() {
    return api(`${this.api}outline/`);
  }

  /** Notes what the stop rules ask for. */
  readRules({ progress, minimum_labels, hand_in }) {
    this.handIn = hand_in;
    this.required = progress.stop.required;
    this.minimum = minimum_labels;
    this.timing = progress;
  }

  /** The person whose page this is: from the page, after the first outline from that. */
  #person() {
    return this.annotator ?? Number(document.querySelector('meta[name="user-id"]')?.content ?? 0);
  }

  async #waiting(user) {
    const query = Number(this.api.match(/\/queries\/(\d+)\//)[1]);
    if (!user) return { waiting: [], refused: new Set() };
    const { queue } = senderFor(user);
    const [waiting, refused] = await Promise.all([
      queue.waitingFor(user, query),
      queue.refused(user, query),
    ]);
    return { waiting, refused: new Set(refused.map((one) => one.client_id)) };
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
      if (digit !== NOTHING) this.grades.set(this.images[place], Number(digit));
    });
    /** Reasons of the grades that were given on this page. */
    this.reasons = new Map();
    this.withdrawn = new Set(outline.withdrawn);
    this.flagged = new Set(outline.flagged);
    this.ranks = new Map(this.images.map((image, place) => [image, place + 1]));
    this.state = null;
  }

  /** Progress in the form of the API. */
  get progress() {
    this.state ??= stopState(this.relevance, this.sources, {
      withdrawn: this.withdrawn,
      complete: Boolean(this.list?.complete),
      required: this.required,
      minimum: this.minimum,
    });
    const { length, rule, met, streak_met, exhausted, required, minimum, minimum_met, ...counts } = this.state;
    return {
      ...counts,
      candidates: length,
      seconds_per_image: this.timing.seconds_per_image,
      active_seconds: (this.timing.active_seconds ?? 0) + this.unsavedSeconds,
      stop: { rule, met, streak_met, exhausted, required, minimum, minimum_met },
    };
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

  /** The rank in the query's list of what stands at a place; null outside the list. */
  listRank(rank) {
    return rank;
  }

  /** How a place is called: "rank 17". */
  where(rank) {
    return `rank ${rank}`;
  }

  /** What the grid calls the places: "Ranks". */
  get kind() {
    return this.reordered ? "Places" : "Ranks";
  }

  /** Whether the page shows the list in another order than its own. */
  get reordered() {
    return false;
  }

  /** The place, from 1, of a rank in the order in which the page shows the list. */
  placeOf(rank) {
    return rank;
  }

  /** The rank at a place. */
  rankAt(place) {
    return place;
  }

  /** How a judgment given there in the list's order is sent beside its source, which may be another than "list". */
  metAt() {
    return {};
  }

  /** With which source a judgment there is sent. */
  sourceAt() {
    return "list";
  }

  /** Whether the image there is still to be judged. */
  needsLabel(rank) {
    return this.relevance[rank - 1] === NOTHING;
  }

  /** Resolves to the API's candidate, or to null where there is none. */
  details(rank) {
    return this.known.at(rank);
  }

  /** The same if it is known already. */
  peek(rank) {
    return this.known.peek(rank);
  }

  /** Resolves to the decoded image; rejects where it can't be loaded, and tries by itself again. */
  image(rank) {
    return this.caches.image.get(rank);
  }

  imageNow(rank) {
    return this.caches.image.now(rank);
  }

  thumbnail(rank) {
    return this.caches.thumbnail.get(rank);
  }

  thumbnailNow(rank) {
    return this.caches.thumbnail.now(rank);
  }

  /** Decodes ahead, in this order; a new call replaces the last one of the same kind. */
  prefetch(ranks, kind) {
    this.caches[kind].prefetch(ranks);
  }

  /** Has the browser keep the files of these ranks' images, behind what is decoded ahead. */
  fetchAhead(ranks) {
    this.caches.image.fetchAhead(ranks);
  }

  /** Releases all images but these; thumbnails are small and are evicted by count. */
  release(keepRanks) {
    this.caches.image.release(keepRanks);
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
    const known = this.known.peek(this.rankOf(image));
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
    this.relevance[rank - 1] = LETTERS[relevance] ?? NOTHING;
    if (relevance === null) this.sources[rank - 1] = NOTHING;
    else if (before === NOTHING || !keepsSource(before, SOURCES[source])) this.sources[rank - 1] = SOURCES[source];
    this.state = null;
    const details = this.known.peek(rank);
    if (details) details.relevance = relevance;
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
      (this.matching === null || this.matching.has(rank))
    );
  }

  /** The first visible rank after `rank`, or null. */
  next(rank, { unlabeled = false } = {}) {
    return this.after(rank, 1, { unlabeled })[0] ?? null;
  }

  /** The last visible rank before `rank`, or null. */
  previous(rank) {
    for (let place = Math.min(this.placeOf(rank) - 1, this.size); place >= 1; place -= 1) {
      const found = this.rankAt(place);
      if (this.visible(found)) return found;
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
    return this.#visibleAt(this.placeOf(from), count, options);
  }

  /** The first `count` visible ranks behind `rank`. */
  after(rank, count, options) {
    return this.#visibleAt(this.placeOf(rank) + 1, count, options);
  }

  #visibleAt(start, count, { unlabeled = false } = {}) {
    const found = [];
    for (let place = Math.max(1, start); place <= this.size && found.length < count; place += 1) {
      const rank = this.rankAt(place);
      if (this.visible(rank) && !(unlabeled && !this.needsLabel(rank))) found.push(rank);
    }
    return found;
  }

  /** Narrows what is visible to these ranks; null shows all. What the stop rules count stays the same. */
  setMatching(ranks) {
    this.matching = ranks === null ? null : new Set(ranks);
    this.#fire("matching");
  }

  /** Takes in what the API's `changes` says of images. @param {{withdrawn: number[], flagged: number[]}} changes */
  async follow({ withdrawn, flagged }) {
    this.setWithdrawn(withdrawn);
    this.setFlaggedRanks(flagged);
  }

  /** @param {number[]} ranks all that are withdrawn */
  setWithdrawn(ranks) {
    if (ranks.length === this.withdrawn.size && ranks.every((rank) => this.withdrawn.has(rank))) return;
    const changed = [...ranks, ...this.withdrawn];
    this.withdrawn = new Set(ranks);
    this.state = null;
    changed.forEach((rank) => this.known.forget(rank));
    this.#fire("withdrawn", { ranks });
    this.#fire("labels", { images: changed.map((rank) => this.images[rank - 1]) });
  }

  /** @param {number[]} ranks all that have an open flag */
  setFlaggedRanks(ranks) {
    const wanted = new Set(ranks);
    const changed = [...new Set([...ranks, ...this.flagged])].filter(
      (rank) => wanted.has(rank) !== this.flagged.has(rank),
    );
    if (!changed.length) return;
    this.flagged = wanted;
    const fire = () => this.#fire("labels", { images: changed.map((rank) => this.images[rank - 1]) });
    fire();
    this.known.refresh(changed).then(fire, () => {});
  }

  /** Notes the open flags of one image. */
  setFlagged(image, kinds) {
    const rank = this.rankOf(image);
    if (rank === null) return;
    if (kinds.length) this.flagged.add(rank);
    else this.flagged.delete(rank);
    const details = this.known.peek(rank);
    if (details) details.flags = [...kinds];
    this.#fire("labels", { images: [image] });
  }

  /** @param {{state: string, can_label: boolean}} query */
  setQuery(query) {
    const before = this.query;
    this.query = query;
    if (before && (before.state !== query.state || before.can_label !== query.can_label)) {
      this.#fire("query", query);
    }
  }

  #fire(kind, detail) {
    this.dispatchEvent(new CustomEvent(kind, { detail }));
  }
}

/** The API's details of each candidate, fetched by pages of the list or, within a filter, by ranks. */

const PAGE = 100;

class CandidateDetails {
  /**
   * @param {string} url the query's candidates address
   * @param {() => {size: number, upcoming: ((rank: number, count: number) => number[])|null}} place the list's size,
   *   and within a filter which ranks come next
   * @param {(candidate: object) => void} arrived called with each candidate before it is known
   */
  constructor(url, place, arrived) {
    this.url = url;
    this.place = place;
    this.arrived = arrived;
    this.clear();
  }

  clear() {
    this.known = new Map();
    this.loading = new Map();
    this.pages = new Set();
  }

  /** Forgets one candidate, so that it is fetched again when needed. */
  forget(rank) {
    this.known.delete(rank);
  }

  /** Fetches those of these ranks that are known once more; they stay known meanwhile. */
  async refresh(ranks) {
    const known = ranks.filter((rank) => this.known.get(rank));
    for (let start = 0; start < known.length; start += PAGE) {
      await this.#ranks(known.slice(start, start + PAGE));
    }
  }

  peek(rank) {
    return this.known.get(rank) ?? undefined;
  }

  /** Resolves to the candidate, or to null where the list has none (or it is withdrawn). */
  async at(rank) {
    return (await this.of([rank]))[0];
  }

  /** Resolves to the candidates of these ranks in this order, null where there is none. */
  async of(ranks) {
    const { size } = this.place();
    const missing = ranks.filter((rank) => rank >= 1 && rank <= size && !this.known.has(rank));
    await Promise.all(this.#requests(missing));
    return ranks.map((rank) => this.known.get(rank) ?? null);
  }

  #requests(missing) {
    const waits = new Set();
    const apart = [];
    const { upcoming } = this.place();
    for (const rank of missing) {
      const page = Math.floor((rank - 1) / PAGE) * PAGE + 1;
      if (this.loading.has(rank)) waits.add(this.loading.get(rank));
      else if (!upcoming && !this.pages.has(page)) waits.add(this.#page(page));
      else apart.push(rank);
    }
    if (apart.length) {
      const more = upcoming ? upcoming(apart[0], PAGE) : [];
      const wanted = [...new Set([...apart, ...more])].filter((rank) => !this.known.has(rank));
      for (let start = 0; start < wanted.length; start += PAGE) {
        waits.add(this.#ranks(wanted.slice(start, start + PAGE)));
      }
    }
    return waits;
  }

  #page(start) {
    const ranks = Array.from({ length: PAGE }, (_, place) => start + place);
    const { pages } = this;
    return this.#fetch(`${this.url}?start_rank=${start}&limit=${PAGE}`, ranks, () => pages.add(start));
  }

  #ranks(ranks) {
    return this.#fetch(`${this.url}?ranks=${ranks.join(",")}`, ranks, () => {});
  }

  #fetch(address, ranks, done) {
    const { known, loading } = this;
    const request = api(address).then((answer) => {
      const found = new Map(answer.results.map((candidate) => [candidate.rank, candidate]));
      found.forEach(this.arrived);
      for (const rank of ranks) known.set(rank, found.get(rank) ?? null);
      done();
    });
    const settled = () => ranks.forEach((rank) => loading.delete(rank));
    request.then(settled, settled);
    for (const rank of ranks) loading.set(rank, request);
    return request;
  }
}

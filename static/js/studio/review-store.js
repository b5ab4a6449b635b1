/**
 * The images of a review in place of the candidate list: what the views and panels call a rank is here a place in the
 * review. An image keeps its place as long as the page is open; those that come later are added at the end.
 */
import { api } from "../api.js";
import { LETTERS, SOURCES } from "./stopping.js";
import { CandidateStore } from "./store.js";

export class ReviewStore extends CandidateStore {
  /**
   * @param {string} apiBase the query's address
   * @param {string} address the review's
   */
  constructor(apiBase, address) {
    super(apiBase);
    this.address = address;
    /** What the API said last. */
    this.found = null;
    /** Its images, by place. */
    this.items = [];
    /** Whether votes wait for one's own. */
    this.blind = true;
    /** The number of acts when they were read. */
    this.readAt = 0;
    const peek = (rank) => this.items[rank - 1];
    this.loaded = Promise.resolve();
    // All details come with the review.
    this.known = { peek, at: async (rank) => peek(rank) ?? null, clear() {}, forget() {} };
  }

  /** One after the other, so that no older answer replaces a newer one. */
  load() {
    this.loaded = this.loaded.catch(() => {}).then(() => super.load());
    return this.loaded;
  }

  read() {
    return api(this.address);
  }

  async outline() {
    const readAt = this.acts;
    const found = await this.read();
    const now = new Map(found.results.map((item) => [item.image, item]));
    const known = new Set(this.items.map(({ image }) => image));
    const stay = this.items.map((item) => now.get(item.image) ?? this.gone(item));
    this.items = [...stay, ...found.results.filter(({ image }) => !known.has(image))];
    this.readAt = readAt;
    this.found = found;
    return {
      ...found,
      images: this.items.map(({ image }) => image),
      scores: this.items.map(({ score }) => score ?? null),
      relevance: this.items.map(({ relevance }) => LETTERS[relevance] ?? "-").join(""),
      grades: this.items.map(({ grade }) => grade ?? "-").join(""),
      sources: this.items.map((item) => SOURCES[this.sourceOf(item)] ?? "-").join(""),
      withdrawn: [...this.withdrawn],
      flagged: this.items.flatMap(({ flags }, place) => (flags.length ? [place + 1] : [])),
    };
  }

  /** An image that is no longer among them: nobody is in doubt about it any more. */
  gone(item) {
    return { ...item, votes: [] };
  }

  /** Where one's own judgment of an item was made. */
  sourceOf({ source }) {
    return source;
  }

  readRules() {}

  listRank(rank) {
    return this.items[rank - 1]?.rank ?? null;
  }

  where(rank) {
    return `image ${rank} of ${this.size}`;
  }

  /** An image outside the list was found in a search, or by an earlier list. */
  sourceAt(rank) {
    return this.listRank(rank) === null ? "search" : "list";
  }

  /** Everybody's judgment of the image there, the latest last, with one's own as it is here. */
  votes(rank) {
    const { image, votes } = this.items[rank - 1];
    if (!this.changedSince(image, this.readAt)) return votes;
    const { relevance } = this.entry(rank);
    const others = votes.filter(({ annotator }) => annotator !== this.annotator);
    return relevance ? [...others, { annotator: this.annotator, relevance, decides: true }] : others;
  }

  /** Whether the votes there can be seen: after one's own, or where one asked for them. */
  votesShown(rank) {
    return !this.blind || this.entry(rank).relevance !== null;
  }

  /** Whether a reviewer has decided the image there, or nobody is in doubt: as labeling/judging/consensus.py. */
  decided(rank) {
    const votes = this.votes(rank);
    const last = votes.filter(({ decides }) => decides).at(-1);
    if (last) return last.relevance !== "unsure";
    return votes.every(({ relevance }) => relevance !== "unsure" && relevance === votes[0].relevance);
  }

  /** Who is unsure goes on; the image stays undecided. */
  needsLabel(rank) {
    const entry = this.entry(rank);
    if (entry === null || this.decided(rank)) return false;
    return entry.relevance !== "unsure" || !this.changedSince(entry.image, 0);
  }

  /** What the page shows of it. */
  get progress() {
    const places = this.visibleRanks(1, this.size);
    const judged = places.filter((rank) => this.decided(rank)).length;
    return { candidates: places.length, judged, remaining: places.length - judged };
  }

  /** Reads the review again where others have judged, images were withdrawn or flagged, or more were judged. */
  async follow(changes) {
    const seen = JSON.stringify([changes.others, changes.withdrawn, changes.flagged]);
    const more = changes.own.some(({ image }) => this.rankOf(image) === null);
    if (more || seen !== this.seen) await this.load();
    this.seen = seen;
    const withdrawn = new Set(changes.withdrawn);
    this.setWithdrawn(this.items.flatMap(({ rank }, place) => (withdrawn.has(rank) ? [place + 1] : [])));
  }
}

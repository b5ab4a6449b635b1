/**
 * The drawn images of an audit in place of the candidate list: what the views and panels call a rank is here a place
 * among them. An image keeps its place as long as the page is open; those that are drawn later are added at the end.
 */
import { api } from "../api.js";
import { ReviewStore } from "./review-store.js";
import { LETTERS, SOURCES } from "./stopping.js";

export class AuditStore extends ReviewStore {
  constructor(apiBase, address) {
    super(apiBase, address);
    /** What the API said last. */
    this.found = null;
    /** Whether reading draws what is missing to AHEAD. */
    this.drawing = false;
    /** Why it stopped, for people. */
    this.paused = "";
    /** How many drawn images are to wait. */
    this.ahead = () => 1;
  }

  read() {
    if (!this.drawing) return api(this.address);
    const { to_judge: waiting, then } = this.found;
    const count = Math.min(this.ahead(), waiting + (then.more_without_hit ?? Infinity)) || 1;
    return api(`${this.address}draws/`, { method: "POST", body: { count } });
  }

  async outline() {
    const found = await this.read();
    const now = new Map(found.results.map((item) => [item.image, item]));
    const known = new Set(this.items.map(({ image }) => image));
    // Judged by others, longer ago, or withdrawn.
    const gone = (item) => ({ ...item, relevance: this.entry(this.rankOf(item.image)).relevance, to_judge: false });
    const stay = this.items.map((item) => now.get(item.image) ?? gone(item));
    this.items = [...stay, ...found.results.filter(({ image }) => !known.has(image))];
    this.found = found;
    if (found.then?.met) this.drawing = false;
    return {
      ...found,
      images: this.items.map(({ image }) => image),
      scores: this.items.map(() => null),
      relevance: this.items.map(({ relevance }) => LETTERS[relevance] ?? "-").join(""),
      sources: SOURCES[this.sourceAt()].repeat(this.items.length),
      withdrawn: [],
      flagged: this.items.flatMap(({ flags }, place) => (flags.length ? [place + 1] : [])),
    };
  }

  listRank() {
    return null;
  }

  where(rank) {
    return `drawn image ${rank}`;
  }

  get kind() {
    return "Drawn images";
  }

  sourceAt() {
    return "audit";
  }

  /** One's own label suffices until the server says that somebody else has judged it. */
  needsLabel(rank) {
    const entry = this.entry(rank);
    if (entry === null || entry.relevance !== null) return false;
    return this.items[rank - 1].to_judge || this.changedSince(entry.image, 0);
  }

  /** How many of the shown draws are judged relevant. */
  get relevant() {
    return this.relevance.filter((letter) => letter === LETTERS.relevant).length;
  }

  /** The page shows the certificate instead. */
  get progress() {
    return {};
  }

  /** Reads the audit again where others have judged, or images were withdrawn. */
  async follow(changes) {
    const seen = JSON.stringify([changes.others, changes.withdrawn, changes.flagged]);
    if (this.seen !== undefined && seen !== this.seen) await this.load();
    this.seen = seen;
  }
}

/**
 * The drawn images of an audit in place of the candidate list: what the views and panels call a rank is here a place
 * among them. An image keeps its place as long as the page is open; those that are drawn later are added at the end.
 */
import { api } from "../api.js";
import { ReviewStore } from "./review-store.js";
import { LETTERS } from "./stopping.js";

export class AuditStore extends ReviewStore {
  constructor(apiBase, address) {
    super(apiBase, address);
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
    const outline = await super.outline();
    if (this.found.then?.met) this.drawing = false;
    return outline;
  }

  /** An image that others or oneself judged longer ago, or that was withdrawn. */
  gone(item) {
    const { relevance } = this.entry(this.rankOf(item.image));
    return { ...item, relevance, grade: this.gradeOf(item.image), to_judge: false };
  }

  sourceOf() {
    return this.sourceAt();
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

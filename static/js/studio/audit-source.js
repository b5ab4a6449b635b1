/** Images that were drawn for a person, in place of the candidate list: an audit's, or those of a blind queue. */
import { api } from "../api.js";
import { ItemsSource } from "./items-source.js";
import { LETTERS } from "./stopping.js";

class DrawnSource extends ItemsSource {
  placesName = "Drawn images";
  /** How many drawn images are to wait. */
  ahead = () => 1;

  /** Resolves to the images after as many were drawn as are missing to `count` that wait. */
  draw(count) {
    return api(`${this.given.address}draws/`, { method: "POST", body: { count } });
  }

  /** Others or oneself judged it longer ago, or it was withdrawn. */
  keep(item) {
    const { relevance } = this.store.entry(this.store.rankOf(item.image));
    return { ...item, relevance, grade: this.store.gradeOf(item.image), to_judge: false };
  }

  where(rank) {
    return `drawn image ${rank}`;
  }

  /** Not told, so that nobody judges by it. */
  listRank() {
    return null;
  }

  provenance() {
    return { source: this.given.judged_as };
  }

  /** One's own label suffices until the server says that somebody else has judged it. */
  needsLabel(rank) {
    const entry = this.store.entry(rank);
    if (entry === null || entry.relevance !== null) return false;
    return this.items[rank - 1].to_judge || this.store.changedSince(entry.image, 0);
  }

  isDone(rank) {
    return !this.needsLabel(rank);
  }

  /** Where others have judged, or images were withdrawn, since the page was opened. */
  isStale(elsewhere) {
    return this.elsewhere !== null && elsewhere !== this.elsewhere;
  }
}

/** A query's audit, which draws when the page says so. */
export class AuditSource extends DrawnSource {
  /** Whether reading draws what is missing to `ahead`. */
  drawing = false;
  /** Why it stopped, for people. */
  paused = "";
  /** Whether nothing was left to draw, where others have judged what oneself hasn't. */
  exhausted = false;

  async ask() {
    const answer = await this.#ask();
    this.exhausted = this.drawing && !answer.to_judge;
    if (answer.then.met) this.drawing = false;
    return answer;
  }

  #ask() {
    if (!this.drawing) return super.ask();
    const { to_judge: waiting, then } = this.store.outline;
    return this.draw(Math.min(this.ahead(), waiting + (then.more_without_hit ?? Infinity)) || 1);
  }

  /** How many of the shown draws are judged relevant. */
  get relevant() {
    return this.store.relevance.filter((letter) => letter === LETTERS.relevant).length;
  }
}

/**
 * Images of a query that are shown without what is known of them, in their order, until none is left: what a release's
 * audit drew, labels of others for a second opinion, or what runs request.
 */
export class BlindSource extends DrawnSource {
  ask() {
    return this.draw(this.ahead());
  }

  /** Unlike other labeling they go on also after one's hand-in. */
  canLabel({ state }) {
    return this.given.offered_in.includes(state);
  }
}

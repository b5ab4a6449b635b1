/** The images of a review in place of the candidate list. */
import { ItemsSource } from "./items-source.js";

export class ReviewSource extends ItemsSource {
  /** Whether votes wait for one's own. */
  blind = true;

  /** Nobody is in doubt about it any more. */
  keep(item) {
    return { ...item, votes: [] };
  }

  where(rank) {
    return `image ${rank} of ${this.store.size}`;
  }

  listRank(rank) {
    return this.items[rank - 1]?.rank ?? null;
  }

  /** An image outside the list was found in a search, or by an earlier list. */
  provenance(rank) {
    return { source: this.listRank(rank) === null ? "search" : "list" };
  }

  /** Everybody's judgment of the image there, the latest last, with one's own as it is here. */
  votes(rank) {
    const { store } = this;
    const { image, votes } = this.items[rank - 1];
    if (!store.changedSince(image, this.readAt)) return votes;
    const { relevance } = store.entry(rank);
    const others = votes.filter(({ annotator }) => annotator !== store.annotator);
    return relevance ? [...others, { annotator: store.annotator, relevance, decides: true }] : others;
  }

  /** Whether the votes there can be seen: after one's own, or where one asked for them. */
  votesShown(rank) {
    return !this.blind || this.store.entry(rank).relevance !== null;
  }

  /** Whether a reviewer has decided the image there, or nobody is in doubt: as labeling/judging/consensus.py. */
  isDone(rank) {
    const votes = this.votes(rank);
    const last = votes.filter(({ decides }) => decides).at(-1);
    if (last) return last.relevance !== "unsure";
    return votes.every(({ relevance }) => relevance !== "unsure" && relevance === votes[0].relevance);
  }

  /** Who is unsure goes on; the image stays undecided. */
  needsLabel(rank) {
    const entry = this.store.entry(rank);
    if (entry === null || this.isDone(rank)) return false;
    return entry.relevance !== "unsure" || !this.store.changedSince(entry.image, 0);
  }

  /** Where others have judged, images were withdrawn or flagged, or one has judged an image that is not among them. */
  isStale(elsewhere, { own }) {
    return elsewhere !== this.elsewhere || own.some(({ image }) => this.store.rankOf(image) === null);
  }

  async follow(changes) {
    await super.follow(changes);
    const withdrawn = new Set(changes.withdrawn);
    this.store.setWithdrawn(this.items.flatMap(({ rank }, index) => (withdrawn.has(rank) ? [index + 1] : [])));
  }
}

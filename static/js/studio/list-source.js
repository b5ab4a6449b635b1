/** The query's frozen candidate list, rank by rank. */
import { api } from "../api.js";
import { CandidateDetails } from "./details.js";
import { Source } from "./source.js";
import { stopState, UNLABELED } from "./stopping.js";

export class ListSource extends Source {
  placesName = "Ranks";

  constructor(store, given) {
    super(store, given);
    this.details = new CandidateDetails(store);
    store.addEventListener("withdrawn", ({ detail: { ranks } }) => this.details.forget(ranks));
    store.addEventListener("flagged", ({ detail: { ranks } }) => {
      this.details.refresh(ranks).then(
        () => store.tell(ranks),
        () => {},
      );
    });
  }

  async read() {
    const outline = await api(`${this.store.api}outline/`);
    this.details.clear();
    return outline;
  }

  where(rank) {
    return `rank ${rank}`;
  }

  listRank(rank) {
    return rank;
  }

  provenance() {
    return { source: "list" };
  }

  needsLabel(rank) {
    return this.store.relevance[rank - 1] === UNLABELED;
  }

  /** In the form of the API. */
  get progress() {
    const { store } = this;
    store.state ??= stopState(store.relevance, store.sources, {
      withdrawn: store.withdrawn,
      complete: Boolean(store.list?.complete),
      required: store.outline?.progress.stop.required ?? 100,
      minimum: store.outline?.minimum_labels ?? 0,
    });
    const { length, rule, met, streak_met, exhausted, required, minimum, minimum_met, ...counts } = store.state;
    return {
      ...counts,
      candidates: length,
      seconds_per_image: store.timing.seconds_per_image,
      active_seconds: (store.timing.active_seconds ?? 0) + store.unsavedSeconds,
      stop: { rule, met, streak_met, exhausted, required, minimum, minimum_met },
    };
  }

  async follow({ withdrawn, flagged }) {
    this.store.setWithdrawn(withdrawn);
    this.store.setFlagged(flagged);
  }
}

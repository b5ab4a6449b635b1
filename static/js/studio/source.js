/**
 * Where the images of a labeling page come from: what every source has in common.
 *
 * A source has besides what is here:
 * - `read()`: resolves to the images in short, in the form of the API's outline;
 * - `details`: `at(rank)` resolves to the details of the image there, or to null; `peek(rank)` gives them if they are
 *   known;
 * - `placesName`: what the grid calls the places, e.g. "Ranks"; a review, which has no grid, has none;
 * - `where(rank)`: what people call one, e.g. "rank 17";
 * - `listRank(rank)`: the rank in the query's list of what stands there, or null;
 * - `provenance(rank)`: how a judgment that is given there is sent, `{source, revision?, place?}`;
 * - `needsLabel(rank)`: whether the image there is still to be judged;
 * - `progress`: how far the work is;
 * - `follow(changes)`: takes in what the API's `changes` says of images.
 */
export class Source {
  /** Whether the page shows the images in another order than that of their ranks. */
  reordered = false;

  /**
   * @param {CandidateStore} store what the page knows of the images
   * @param {object} given what labeling/views.py tells of the source
   */
  constructor(store, given) {
    this.store = store;
    this.given = given;
  }

  /** The place, from 1, of a rank in the order in which the page shows the images. */
  placeOf(rank) {
    return rank;
  }

  /** The rank at a place. */
  rankAt(place) {
    return place;
  }

  /** Whether the image there doesn't come up, although it is in the list. */
  hides() {
    return false;
  }

  /** Whether the person may judge in the present state of the query, as the API gives it. */
  canLabel(query) {
    return query.can_label;
  }
}

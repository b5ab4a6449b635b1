/**
 * What is marked in the grid and not yet submitted, by image. It outlives paging back and forth, a change of view and
 * a reload of the tab.
 *
 * @typedef {{rank: number, image: number, relevance: string|null}} Entry a candidate with its standing label
 */
export class Marks {
  #drafts = new Map();
  #key;

  /** @param {string} key under which this tab keeps them */
  constructor(key) {
    this.#key = key;
    try {
      this.#drafts = new Map(JSON.parse(sessionStorage.getItem(key) ?? "[]"));
    } catch {
      this.#drafts = new Map();
    }
  }

  get size() {
    return this.#drafts.size;
  }

  /** The images that are marked otherwise than they are labeled. */
  get images() {
    return [...this.#drafts.keys()];
  }

  /** What a tile shows: its mark, else its label, else null. */
  shown({ image, relevance }) {
    return this.#drafts.get(image) ?? relevance;
  }

  /** What submitting would make of it. */
  outcome(entry) {
    return this.shown(entry) ?? "not_relevant";
  }

  isDraft({ image }) {
    return this.#drafts.has(image);
  }

  /** Mark it; what stands already, and null, take the mark away. */
  set({ image, relevance }, mark) {
    if (mark === null || mark === relevance) this.#drafts.delete(image);
    else this.#drafts.set(image, mark);
    this.#keep();
  }

  /** What a click with this brush makes of a tile: the brush's mark, or if it has that, none. */
  toggled(entry, brush) {
    if (this.shown(entry) !== brush) return brush;
    return entry.relevance === null ? null : "not_relevant";
  }

  /** A mark that has become the label is no draft any more. */
  settle(entries) {
    for (const { image, relevance } of entries) {
      if (this.#drafts.get(image) === relevance) this.#drafts.delete(image);
    }
    this.#keep();
  }

  /** The judgments that submitting these tiles makes: each that becomes another than what stands. */
  judgments(entries) {
    return entries
      .filter((entry) => this.outcome(entry) !== entry.relevance)
      .map((entry) => ({ image: entry.image, relevance: this.outcome(entry) }));
  }

  #keep() {
    try {
      sessionStorage.setItem(this.#key, JSON.stringify([...this.#drafts]));
    } catch {
      // A full or forbidden storage only means that a reload forgets them.
    }
  }
}

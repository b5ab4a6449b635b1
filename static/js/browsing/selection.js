/** The selected images, by id, whatever the grid shows of them. */

/** Events: "change". */
export class Selection extends EventTarget {
  constructor() {
    super();
    this.ids = new Set();
    /** The position from which a range goes. */
    this.anchor = null;
  }

  get size() {
    return this.ids.size;
  }

  has(id) {
    return this.ids.has(id);
  }

  toggle(id, position) {
    if (!this.ids.delete(id)) this.ids.add(id);
    this.anchor = position;
    this.#changed();
  }

  /** Adds many at once; `position` is where the range ended that they are of. */
  add(ids) {
    for (const id of ids) this.ids.add(id);
    this.#changed();
  }

  /** Takes out what is no longer there, such as withdrawn images. */
  remove(ids) {
    for (const id of ids) this.ids.delete(id);
    this.#changed();
  }

  clear() {
    this.anchor = null;
    this.ids.clear();
    this.#changed();
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}

/** The first and the last position of a range, whichever way it goes. */
export function rangeOf(anchor, position) {
  return [Math.min(anchor ?? position, position), Math.max(anchor ?? position, position)];
}

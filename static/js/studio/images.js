/** Images by rank, decoded before they are shown; what is far from the present rank is released. */
const AT_A_TIME = 4;
const RETRIED_EVERY = 5000;
/** After a file far ahead the page rests so many times as long as it took: a busy server has others to answer first. */
const MIN_PAUSE_RATIO = 5;

/**
 * Events: "image" (detail `{rank}`) when one that had failed was loaded after all.
 */
export class ImageCache extends EventTarget {
  /**
   * @param {(rank: number) => Promise<string|null>} address where the image of a rank is
   * @param {number} most images kept
   */
  constructor(address, most) {
    super();
    this.address = address;
    this.most = most;
    /** Oldest use first: {element, ready: Promise<HTMLImageElement>, decoded: boolean} by rank. */
    this.entries = new Map();
    this.failed = new Set();
    this.ahead = [];
    this.far = [];
    this.warm = new Set();
    this.running = 0;
    this.resting = false;
    window.addEventListener("online", () => this.retry());
  }

  /** Resolves to the decoded element of a rank; rejects where it can't be loaded, and tries by itself again. */
  get(rank) {
    return this.#entry(rank, "high").ready;
  }

  /** The same if it is decoded already, else null. */
  now(rank) {
    const entry = this.entries.get(rank);
    return entry?.decoded ? entry.element : null;
  }

  /** Decodes the images of these ranks, a few at a time in this order; replaces earlier calls. */
  prefetch(ranks) {
    this.ahead = ranks.filter((rank) => !this.entries.has(rank));
    this.#next();
  }

  /**
   * Has the browser keep the files of these ranks too, behind what is decoded ahead, so that they can be shown without
   * a connection.
   */
  fetchAhead(ranks) {
    this.far = ranks.filter((rank) => !this.warm.has(rank));
    this.#next();
  }

  /** Lets all others go. */
  release(keep) {
    const wanted = new Set(keep);
    for (const rank of [...this.entries.keys()]) if (!wanted.has(rank)) this.#drop(rank);
    for (const rank of [...this.failed]) if (!wanted.has(rank)) this.failed.delete(rank);
    this.ahead = this.ahead.filter((rank) => wanted.has(rank));
  }

  /** Loads again what failed and is still wanted. */
  retry() {
    clearTimeout(this.timer);
    this.timer = undefined;
    for (const rank of this.failed) this.get(rank);
  }

  clear() {
    this.release([]);
    this.far = [];
    this.warm.clear();
  }

  #entry(rank, priority) {
    const known = this.entries.get(rank);
    if (known) {
      this.entries.delete(rank);
      this.entries.set(rank, known);
      return known;
    }
    const element = new Image();
    element.draggable = false;
    element.decoding = "async";
    element.fetchPriority = priority;
    const entry = { element, decoded: false, dropped: false, ready: null };
    entry.ready = this.#load(rank, entry);
    entry.ready.then(
      () => {
        if (this.failed.delete(rank)) this.dispatchEvent(new CustomEvent("image", { detail: { rank } }));
      },
      () => this.#fail(rank, entry),
    );
    this.entries.set(rank, entry);
    for (const old of this.entries.keys()) {
      if (this.entries.size <= this.most) break;
      this.#drop(old);
    }
    return entry;
  }

  async #load(rank, entry) {
    const address = await this.address(rank);
    if (address === null) throw new Error(`There is no image at rank ${rank}.`);
    if (entry.dropped) throw new Error("It isn't wanted any more.");
    entry.element.src = address;
    await entry.element.decode();
    entry.decoded = true;
    this.warm.add(rank);
    return entry.element;
  }

  #fail(rank, entry) {
    if (entry.dropped) return;
    this.entries.delete(rank);
    this.failed.add(rank);
    this.timer ??= setTimeout(() => this.retry(), RETRIED_EVERY);
  }

  #drop(rank) {
    const entry = this.entries.get(rank);
    this.entries.delete(rank);
    if (!entry || entry.element.isConnected) return;
    entry.dropped = true;
    // Cancels a request that would delay those that are wanted now.
    if (!entry.decoded) entry.element.removeAttribute("src");
  }

  #next() {
    while (this.running < AT_A_TIME && this.ahead.length) {
      const rank = this.ahead.shift();
      if (this.entries.has(rank)) continue;
      this.running += 1;
      const done = () => {
        this.running -= 1;
        this.#next();
      };
      this.#entry(rank, "low").ready.then(done, done);
    }
    if (!this.running && !this.resting && this.far.length) this.#fetchOne(this.far.shift());
  }

  async #fetchOne(rank) {
    const began = performance.now();
    this.running += 1;
    try {
      const address = await this.address(rank);
      if (address !== null && !this.warm.has(rank)) {
        const answer = await fetch(address, { priority: "low" });
        await answer.blob();
        if (answer.ok) this.warm.add(rank);
      }
    } catch {
      // Offline; it is requested again with the next step.
    }
    this.running -= 1;
    this.resting = true;
    setTimeout(
      () => {
        this.resting = false;
        this.#next();
      },
      MIN_PAUSE_RATIO * (performance.now() - began),
    );
    this.#next();
  }
}

/** The images that match an address, by position: their ids in stretches, and what is shown of those in sight. */
import { api } from "../api.js";

export const STRETCH = 500;
const ALL_AT_ONCE = 5000;
const TILES_AT_ONCE = 100;
const MOST_TILES = 5000;
const REQUESTS = 2;

/** The address of the matches' API for the parameters of the page's address. */
export function matchesAddress(parameters, more) {
  return `/api/images/matches/?${new URLSearchParams([...parameters, ...Object.entries(more)])}`;
}

/** Events: "change", when more of what was wanted is there. */
export class Matches extends EventTarget {
  /**
   * @param {URLSearchParams} parameters
   * @param {object} first the API's answer for the first stretch
   * @param {number} most how many positions there are at most
   */
  constructor(parameters, first, most) {
    super();
    this.parameters = parameters;
    this.answer = first;
    this.most = most;
    this.stretches = new Map();
    this.tiles = new Map();
    this.asked = new Set();
    this.running = 0;
    this.isStopped = false;
    /** The end of what is known, and of all once it is seen. */
    this.known = 0;
    this.end = null;
    /** The number of all matches, once it is counted. */
    this.total = first.ranked?.total ?? null;
    this.#take(0, first);
  }

  /** The number of positions, as far as it is known. */
  get length() {
    if (this.end !== null) return this.end;
    return Math.max(this.known, Math.min(this.most, this.total ?? this.known + STRETCH));
  }

  idAt(position) {
    return this.stretches.get(Math.floor(position / STRETCH))?.ids[position % STRETCH];
  }

  scoreAt(position) {
    return this.stretches.get(Math.floor(position / STRETCH))?.scores?.[position % STRETCH] ?? null;
  }

  /** What is shown of an image, if it is there already. */
  tile(id) {
    return this.tiles.get(id);
  }

  /** Asks for what lacks of the positions in sight; what was wanted before and isn't now is left. */
  want(first, last) {
    const missing = [];
    for (let stretch = Math.floor(first / STRETCH); stretch * STRETCH < last; stretch += 1) {
      if (!this.stretches.has(stretch)) this.#ask(`stretch ${stretch}`, () => this.#fetchStretch(stretch));
    }
    for (let position = first; position < last && missing.length < TILES_AT_ONCE; position += 1) {
      const id = this.idAt(position);
      if (id !== undefined && !this.tiles.has(id) && !this.asked.has(id)) missing.push(id);
    }
    if (missing.length) this.#ask(missing[0], () => this.#fetchTiles(missing), missing);
  }

  /** The ids of a range of positions, both ends included; `told` is called with how many are there. */
  async ids(first, last, told = () => {}) {
    const found = [];
    for (let position = first; position <= last && position !== this.end; position = first + found.length) {
      const known = this.idAt(position);
      if (known !== undefined) found.push(known);
      else {
        const limit = Math.min(ALL_AT_ONCE, last - position + 1);
        const { ids } = await api(matchesAddress(this.parameters, { offset: position, limit }));
        if (!ids.length) break;
        found.push(...ids);
        told(found.length);
      }
    }
    return found;
  }

  /** Nobody wants it any more. */
  stop() {
    this.isStopped = true;
  }

  #take(stretch, { ids, scores, more, tiles }) {
    this.stretches.set(stretch, { ids, scores });
    for (const tile of tiles) this.tiles.set(tile.id, tile);
    const end = stretch * STRETCH + ids.length;
    this.known = Math.max(this.known, end);
    if (!more) this.end = end;
  }

  /** Has a few requests at a time under way; what is left out is wanted again by the next draw. */
  async #ask(key, run, ids = []) {
    if (this.running >= REQUESTS || this.asked.has(key)) return;
    this.running += 1;
    for (const one of [key, ...ids]) this.asked.add(one);
    let failed = false;
    try {
      await run();
    } catch (error) {
      failed = true;
      if (!this.isStopped) this.dispatchEvent(new CustomEvent("failed", { detail: error }));
    }
    this.running -= 1;
    for (const one of [key, ...ids]) this.asked.delete(one);
    if (!failed && !this.isStopped) this.dispatchEvent(new Event("change"));
  }

  async #fetchStretch(stretch) {
    const request = { offset: stretch * STRETCH, limit: STRETCH };
    this.#take(stretch, await api(matchesAddress(this.parameters, request)));
  }

  async #fetchTiles(ids) {
    const query = new URLSearchParams(ids.map((id) => ["id", id]));
    const { results } = await api(`/api/images/tiles/?${query}`);
    for (const tile of results) this.tiles.set(tile.id, tile);
    // What isn't there any more is not asked for again.
    for (const id of ids) if (!this.tiles.has(id)) this.tiles.set(id, null);
    for (const id of this.tiles.keys()) {
      if (this.tiles.size <= MOST_TILES) break;
      this.tiles.delete(id);
    }
  }
}

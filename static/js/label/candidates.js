/** The candidate list as the page knows it: pages of it by rank, and pictures decoded ahead. */
import { api } from "../api.js";

const PAGE = 100;
const AHEAD = 12;
const BEHIND = 4;

export class Candidates {
  constructor(url) {
    this.url = url;
    this.byRank = new Map();
    this.pictures = new Map();
    this.loading = new Map();
    this.list = null;
    this.progress = null;
  }

  get size() {
    return this.list?.size ?? 0;
  }

  /** Loads the list's state and its first page around `rank`. */
  async refresh(rank = 1) {
    this.byRank.clear();
    this.loading.clear();
    await this.#page(rank);
    return this.list;
  }

  /** Resolves to the candidate at `rank` (from 1), or null past the end of the list. */
  async at(rank) {
    if (rank < 1 || rank > this.size) return null;
    if (!this.byRank.has(rank)) await this.#page(rank);
    return this.byRank.get(rank) ?? null;
  }

  /** The first rank from `rank` on that has no relevance of one's own; null where all have one. */
  async nextUnlabelled(rank) {
    for (let next = rank; next <= this.size; next += 1) {
      const candidate = await this.at(next);
      if (candidate && !candidate.relevance) return next;
    }
    return null;
  }

  /** The picture of a candidate as a decoded element, fetched once. */
  picture(candidate) {
    let picture = this.pictures.get(candidate.rank);
    if (!picture) {
      const element = new Image();
      element.src = candidate.url;
      element.draggable = false;
      picture = { element, ready: element.decode() };
      picture.ready.catch(() => this.pictures.delete(candidate.rank));
      this.pictures.set(candidate.rank, picture);
    }
    return picture;
  }

  /** Fetches what comes after `rank`, and lets go of what lies far behind. */
  async prefetch(rank) {
    for (const known of this.pictures.keys()) {
      if (known < rank - BEHIND || known > rank + AHEAD) this.pictures.delete(known);
    }
    for (let next = rank + 1; next <= Math.min(rank + AHEAD, this.size); next += 1) {
      const candidate = await this.at(next);
      if (candidate) this.picture(candidate);
    }
  }

  #page(rank) {
    const start = Math.floor((rank - 1) / PAGE) * PAGE + 1;
    if (!this.loading.has(start)) {
      const request = api(`${this.url}?start_rank=${start}&limit=${PAGE}`).then((answer) => {
        this.list = answer.list;
        this.progress = answer.progress ?? this.progress;
        answer.results.forEach((candidate) => this.byRank.set(candidate.rank, candidate));
      });
      const settled = () => this.loading.delete(start);
      request.then(settled, settled);
      this.loading.set(start, request);
    }
    return this.loading.get(start);
  }
}

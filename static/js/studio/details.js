/** The API's details of each candidate, fetched by pages of the list or, within a filter or another order, by ranks. */
import { api } from "../api.js";

const PAGE = 100;

export class CandidateDetails {
  /** @param {CandidateStore} store */
  constructor(store) {
    this.store = store;
    this.url = `${store.api}candidates/`;
    this.clear();
  }

  clear() {
    this.known = new Map();
    this.loading = new Map();
    this.pages = new Set();
  }

  /** Forgets the candidates of these ranks, so that they are fetched again when needed. */
  forget(ranks) {
    for (const rank of ranks) this.known.delete(rank);
  }

  /** Fetches those of these ranks that are known once more; they stay known meanwhile. */
  async refresh(ranks) {
    const known = ranks.filter((rank) => this.known.get(rank));
    for (let start = 0; start < known.length; start += PAGE) {
      await this.#ranks(known.slice(start, start + PAGE));
    }
  }

  peek(rank) {
    return this.known.get(rank) ?? undefined;
  }

  /** Resolves to the candidate, or to null where the list has none (or it is withdrawn). */
  async at(rank) {
    return (await this.of([rank]))[0];
  }

  /** Resolves to the candidates of these ranks in this order, null where there is none. */
  async of(ranks) {
    const missing = ranks.filter((rank) => rank >= 1 && rank <= this.store.size && !this.known.has(rank));
    await Promise.all(this.#requests(missing));
    return ranks.map((rank) => this.known.get(rank) ?? null);
  }

  #requests(missing) {
    const waits = new Set();
    const apart = [];
    const byPages = this.store.matching === null && !this.store.source.reordered;
    for (const rank of missing) {
      const page = Math.floor((rank - 1) / PAGE) * PAGE + 1;
      if (this.loading.has(rank)) waits.add(this.loading.get(rank));
      else if (byPages && !this.pages.has(page)) waits.add(this.#page(page));
      else apart.push(rank);
    }
    if (apart.length) {
      const more = byPages ? [] : this.store.visibleRanks(apart[0], PAGE);
      const wanted = [...new Set([...apart, ...more])].filter((rank) => !this.known.has(rank));
      for (let start = 0; start < wanted.length; start += PAGE) {
        waits.add(this.#ranks(wanted.slice(start, start + PAGE)));
      }
    }
    return waits;
  }

  #page(start) {
    const ranks = Array.from({ length: PAGE }, (_, place) => start + place);
    const { pages } = this;
    return this.#fetch(`${this.url}?start_rank=${start}&limit=${PAGE}`, ranks, () => pages.add(start));
  }

  #ranks(ranks) {
    return this.#fetch(`${this.url}?ranks=${ranks.join(",")}`, ranks, () => {});
  }

  #fetch(address, ranks, done) {
    const { known, loading } = this;
    const request = api(address).then((answer) => {
      const candidates = new Map(answer.results.map((candidate) => [candidate.rank, candidate]));
      for (const rank of ranks) known.set(rank, candidates.get(rank) ?? null);
      done();
    });
    const settled = () => {
      for (const rank of ranks) loading.delete(rank);
    };
    request.then(settled, settled);
    for (const rank of ranks) loading.set(rank, request);
    return request;
  }
}

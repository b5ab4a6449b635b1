/**
 * The candidate list in the order that learns. A rank stays the one in the frozen list; only what comes after what
 * differs: images met or labeled keep their places, then comes a revision's queue, then the rest of the list.
 */
import { api } from "../api.js";
import { CandidateStore } from "./store.js";

/** Fires "order" too, when another revision is taken. */
export class LearnedStore extends CandidateStore {
  constructor(apiBase) {
    super(apiBase);
    /** The ranks by place, and the other way round. */
    this.order = [];
    this.places = new Map();
    /** In which queue and at which place each rank was put: {source, revision, place, number}. */
    this.queued = new Map();
    /** Ranks that were on the screen. */
    this.met = new Set();
    /** The last revision taken, as the API gives it; null before the first. */
    this.revision = null;
  }

  get reordered() {
    return true;
  }

  placeOf(rank) {
    return this.places.get(rank) ?? rank;
  }

  rankAt(place) {
    return this.order[place - 1];
  }

  metAt(rank) {
    const { source, revision, place } = this.queued.get(rank) ?? {};
    return revision ? { source, revision, place } : {};
  }

  /** Why the image there was shown; told only once it is labeled. */
  why(rank) {
    const { relevance, source } = this.entry(rank);
    if (relevance === null) return "told once it is labeled";
    if (source === "import") return "imported";
    if (source === "list") return `CLIP rank ${rank}`;
    if (source !== "learned") return "found elsewhere";
    const number = this.queued.get(rank)?.number;
    return number ? `learned, revision ${number}` : "learned";
  }

  async outline() {
    const [outline, made] = await Promise.all([super.outline(), this.ask()]);
    this.met.clear();
    this.queued.clear();
    const labeled = [...outline.relevance].flatMap((letter, place) => (letter === "-" ? [] : [place + 1]));
    const found = made?.list === outline.list.id ? made : null;
    this.#arrange(labeled, found, outline.images.length);
    return outline;
  }

  /** Resolves to the revision for the judgments that the server has, with its queue; to null where none comes. */
  async ask() {
    try {
      return await api(`${this.api}revisions/`, { method: "POST", body: {} });
    } catch {
      return null;
    }
  }

  /** Goes on with another revision, behind what was met or labeled and behind the `held` ranks. */
  take(made, held) {
    if (made.list !== this.list.id || made.last_event < (this.revision?.last_event ?? 0)) return;
    const past = this.order.filter((rank) => this.met.has(rank) || !this.needsLabel(rank));
    const stays = new Set([...past, ...held]);
    for (const rank of this.queued.keys()) if (!stays.has(rank)) this.queued.delete(rank);
    this.#arrange([...stays], made, this.size);
    this.dispatchEvent(new CustomEvent("order"));
  }

  #arrange(first, made, size) {
    const stays = new Set(first);
    for (const [at, { rank, learned }] of (made?.queue ?? []).entries()) {
      const source = learned ? "learned" : "list";
      const met = { source, revision: made.id, place: at + 1, number: made.number };
      if (!stays.has(rank)) this.queued.set(rank, met);
    }
    const rest = Array.from({ length: size }, (_, place) => place + 1);
    this.order = [...new Set([...first, ...this.queued.keys(), ...rest])];
    this.places = new Map(this.order.map((rank, place) => [rank, place + 1]));
    this.revision = made;
  }
}

/**
 * The candidate list in the order that learns. A rank stays the one in the frozen list; only what comes after what
 * differs: images met or labeled keep their places, then comes a revision's queue, then the rest of the list.
 */
import { api } from "../api.js";
import { ListSource } from "./list-source.js";
import { UNLABELED } from "./stopping.js";

/** Has its store fire "order" when another revision is taken. */
export class LearnedSource extends ListSource {
  placesName = "Places";
  reordered = true;
  /** The ranks by place, and the other way round. */
  order = [];
  places = new Map();
  /** In which queue and at which place each rank was put: {source, revision, place, number}. */
  queued = new Map();
  /** Ranks that were on the screen. */
  met = new Set();
  /** Ranks of unlabeled images that don't come up, as the last revision says. */
  leftOut = new Set();
  /** The last revision taken, as the API gives it; null before the first. */
  revision = null;

  placeOf(rank) {
    return this.places.get(rank) ?? rank;
  }

  rankAt(place) {
    return this.order[place - 1];
  }

  hides(rank) {
    return this.leftOut.has(rank) && this.needsLabel(rank);
  }

  provenance(rank) {
    if (!this.queued.has(rank)) return super.provenance();
    const { source, revision, place } = this.queued.get(rank);
    return { source, revision, place };
  }

  /** Why the image there was shown; told only once it is labeled. */
  why(rank) {
    const { relevance, source } = this.store.entry(rank);
    if (relevance === null) return "shown once you label it";
    if (source === "import") return "imported";
    if (source === "list") return `CLIP rank ${rank}`;
    if (source !== "learned") return "found elsewhere";
    const number = this.queued.get(rank)?.number;
    return number ? `learned, revision ${number}` : "learned";
  }

  async read() {
    const [outline, revision] = await Promise.all([super.read(), this.ask()]);
    this.met.clear();
    this.queued.clear();
    const labeled = [...outline.relevance].flatMap((letter, index) => (letter === UNLABELED ? [] : [index + 1]));
    this.#arrange(labeled, revision?.list === outline.list.id ? revision : null, outline.images.length);
    return outline;
  }

  /** Resolves to the revision for the judgments that the server has, with its queue; to null where none comes. */
  async ask() {
    try {
      return await api(`${this.store.api}revisions/`, { method: "POST", body: {} });
    } catch {
      return null;
    }
  }

  /** Goes on with another revision, behind what was met or labeled and behind the `held` ranks. */
  take(revision, held) {
    const { store } = this;
    if (revision.list !== store.list.id || revision.last_event < (this.revision?.last_event ?? 0)) return;
    const past = this.order.filter((rank) => this.met.has(rank) || !this.needsLabel(rank));
    const stays = new Set([...past, ...held]);
    for (const rank of this.queued.keys()) if (!stays.has(rank)) this.queued.delete(rank);
    this.#arrange([...stays], revision, store.size);
    store.dispatchEvent(new CustomEvent("order"));
  }

  #arrange(first, revision, size) {
    const stays = new Set(first);
    for (const [index, { rank, learned }] of (revision?.queue ?? []).entries()) {
      const source = learned ? "learned" : "list";
      const queued = { source, revision: revision.id, place: index + 1, number: revision.number };
      if (!stays.has(rank)) this.queued.set(rank, queued);
    }
    const rest = Array.from({ length: size }, (_, index) => index + 1);
    this.order = [...new Set([...first, ...this.queued.keys(), ...rest])];
    this.places = new Map(this.order.map((rank, index) => [rank, index + 1]));
    this.leftOut = new Set(revision?.left_out);
    this.revision = revision;
  }
}

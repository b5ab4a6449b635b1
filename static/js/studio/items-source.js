/**
 * Images in place of the candidate list: what the views and panels call a rank is here a place among them. An image
 * keeps its place as long as the page is open; those that come later are added at the end.
 */
import { api } from "../api.js";
import { Source } from "./source.js";
import { LETTERS, SOURCES, UNLABELED } from "./stopping.js";

/**
 * The server gives the address of the images and, where all judgments of them are sent with one source, this one.
 *
 * A subclass has besides what a source has:
 * - `keep(item)`: what the page keeps of an image that the API no longer gives;
 * - `isDone(rank)`: whether nothing is left to do for the image there;
 * - `isStale(elsewhere, changes)`: whether the images are to be read again; `elsewhere` is what others have done now.
 */
export class ItemsSource extends Source {
  /** The images as the API gives them, by place. */
  items = [];
  /** The number of acts when they were read. */
  readAt = 0;
  /** All details come with the images. */
  details = { peek: (rank) => this.items[rank - 1], at: async (rank) => this.items[rank - 1] ?? null };
  /** What others had done when their changes were read last, as one string. */
  elsewhere = null;

  /** Resolves to the API's answer with the images. */
  ask() {
    return api(this.given.address);
  }

  async read() {
    const readAt = this.store.acts;
    const answer = await this.ask();
    const now = new Map(answer.results.map((item) => [item.image, item]));
    const known = new Set(this.items.map(({ image }) => image));
    const stay = this.items.map((item) => now.get(item.image) ?? this.keep(item));
    this.items = [...stay, ...answer.results.filter(({ image }) => !known.has(image))];
    this.readAt = readAt;
    return {
      ...answer,
      images: this.items.map(({ image }) => image),
      scores: this.items.map(({ score }) => score ?? null),
      relevance: this.items.map(({ relevance }) => LETTERS[relevance] ?? UNLABELED),
      grades: this.items.map(({ grade }) => grade ?? UNLABELED),
      sources: this.items.map(({ source }) => SOURCES[this.given.judged_as ?? source] ?? UNLABELED),
      withdrawn: this.store.withdrawn,
      flagged: this.items.flatMap(({ flags }, index) => (flags.length ? [index + 1] : [])),
    };
  }

  get progress() {
    const ranks = this.store.visibleRanks(1, this.store.size);
    const judged = ranks.filter((rank) => this.isDone(rank)).length;
    return { candidates: ranks.length, judged, remaining: ranks.length - judged };
  }

  /** Reads the images again where `changes` says that they have changed. */
  async follow(changes) {
    const { others, withdrawn, flagged } = changes;
    const elsewhere = JSON.stringify([others, withdrawn, flagged]);
    if (this.isStale(elsewhere, changes)) await this.store.load();
    this.elsewhere = elsewhere;
  }
}

/** The strip: one's last judgments, newest first, each a way back to its candidate. */
import { afterPaint, button, make } from "../dom.js";
import { RELEVANCE_NAMES, RELEVANCE_SIGNS, sentence } from "../words.js";

const MOST = 20;
/** Pixels of a side, for screens with two to a CSS pixel. */
const SIDE = 88;

/** Goes to a rank, also to one that the filters hide. */
export function goTo(studio, rank) {
  const hidden = !studio.store.visible(rank);
  if (hidden) studio.store.setMatching(null);
  studio.go(rank);
  if (hidden) studio.say(`Filters turned off: they hid rank ${rank}.`);
}

class Strip {
  /** @param {Studio} studio */
  constructor(studio) {
    this.studio = studio;
    this.store = studio.store;
    this.list = studio.root.querySelector("[data-last-judged]");
    this.none = this.list.querySelector("[data-none]");
    this.key = `last-judged ${studio.user.id} ${studio.api}`;
    this.items = new Map();
    this.images = [];
    /** What each image was labeled when the strip last looked. */
    this.labels = new Map();
    this.soon = afterPaint(() => {
      this.#show();
      this.#remember();
    });
  }

  wire() {
    this.studio.on("ready", () => this.#restore());
    this.studio.on("list", () => this.#readLabels());
    this.studio.on("labels", ({ images }) => this.#judged(images));
    this.studio.on("rank", (rank) => this.#mark(rank));
    this.store.addEventListener("withdrawn", () => this.#show());
    this.store.addEventListener("image", ({ detail }) => {
      if (detail.kind !== "thumbnail") return;
      const late = [...this.items.values()].find(({ rank, img }) => rank === detail.rank && img.src === "");
      if (late) this.#load(late.rank, late.img);
    });
  }

  /** What this browser remembers of the last visit, as far as it still stands. */
  #restore() {
    this.#readLabels();
    try {
      this.images = JSON.parse(localStorage.getItem(this.key) ?? "[]");
    } catch {
      this.images = [];
    }
    this.#show();
  }

  #readLabels() {
    this.labels.clear();
    for (let rank = 1; rank <= this.store.size; rank += 1) {
      const { image, relevance } = this.store.entry(rank);
      this.labels.set(image, relevance);
    }
  }

  #judged(images) {
    // The event comes for flags too.
    const changed = images
      .map((image) => this.store.entry(this.store.rankOf(image)))
      .filter((entry) => entry && entry.relevance !== this.labels.get(entry.image));
    if (!changed.length) return;
    // Of a page the last rank was judged last.
    const newest = changed.sort((entry, other) => other.rank - entry.rank).map(({ image }) => image);
    for (const { image, relevance } of changed) this.labels.set(image, relevance);
    const fresh = new Set(newest);
    this.images = [...newest, ...this.images.filter((image) => !fresh.has(image))].slice(0, MOST * 2);
    this.soon();
  }

  #remember() {
    try {
      localStorage.setItem(this.key, JSON.stringify(this.images.slice(0, MOST)));
    } catch {
      // Without storage the strip begins empty after a reload.
    }
  }

  #show() {
    const entries = this.images
      .map((image) => this.store.entry(this.store.rankOf(image)))
      .filter((entry) => entry && entry.relevance !== null && !entry.withdrawn)
      .slice(0, MOST);
    const items = new Map(entries.map((entry) => [entry.image, this.#item(entry)]));
    this.items = items;
    this.none.hidden = items.size > 0;
    const focused = this.list.contains(document.activeElement) ? document.activeElement : null;
    this.list.replaceChildren(this.none, ...[...items.values()].map(({ item }) => item));
    this.list.scrollLeft = 0;
    if (focused?.isConnected) focused.focus({ preventScroll: true });
    this.#mark(this.studio.rank);
  }

  #item(entry) {
    const known = this.items.get(entry.image) ?? this.#make(entry);
    const words = `${sentence(this.studio.source.where(entry.rank))}, ${RELEVANCE_NAMES[entry.relevance].toLowerCase()}`;
    known.button.dataset.mark = entry.relevance;
    known.button.setAttribute("aria-label", words);
    known.button.title = words;
    known.sign.textContent = RELEVANCE_SIGNS[entry.relevance];
    return known;
  }

  #make({ rank }) {
    const decoded = this.store.caches.image.now(rank);
    const img = decoded ? small(decoded) : make("img", { alt: "", decoding: "async", width: "44", height: "44" });
    const sign = make("span", { class: "sign", "aria-hidden": "true" });
    const place = button("", () => goTo(this.studio, rank), { class: null, "data-rank": rank });
    place.append(img, sign);
    if (!decoded) this.#load(rank, img);
    return { rank, button: place, sign, img, item: make("li", {}, place) };
  }

  /** Shows the thumbnail once it can be loaded; the store says when one that failed was loaded after all. */
  #load(rank, img) {
    const show = ({ src }) => {
      img.src = src;
    };
    this.store.caches.thumbnail.get(rank).then(show, () => {});
  }

  #mark(rank) {
    for (const { rank: own, button } of this.items.values()) {
      if (own === rank) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
  }
}

/** The middle of an image that is decoded anyway, so that no thumbnail of it is fetched. */
function small(image) {
  const canvas = make("canvas", { width: String(SIDE), height: String(SIDE) });
  const { naturalWidth: width, naturalHeight: height } = image;
  const side = Math.min(width, height);
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(image, (width - side) / 2, (height - side) / 2, side, side, 0, 0, SIDE, SIDE);
  return canvas;
}

/** @param {Studio} studio */
export function mount(studio) {
  new Strip(studio).wire();
}

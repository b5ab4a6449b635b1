/** The tiles of a page in the document: rows and cells, thumbnails, what they show, which were on screen. */
import { bestLayout, FEWEST, GAP } from "./grid-layout.js";
import { make } from "./panel-tools.js";

const SIGNS = { relevant: "✓", unsure: "?", not_relevant: "✕" };
const WORDS = { relevant: "relevant", unsure: "unsure", not_relevant: "not relevant" };
/** Of a tile; less of it on screen is not seen. */
const SEEN_FROM = 0.6;

function name({ rank, relevance, flagged }, mark, tile) {
  const parts = [`Rank ${rank}`];
  if (relevance) parts.push(`labelled ${WORDS[relevance]}`);
  if (mark && mark !== relevance) parts.push(`marked ${WORDS[mark]}`);
  if (!mark) parts.push("not marked");
  if (flagged) parts.push("flagged");
  if (tile.failed) parts.push("the picture could not be loaded, a click tries again");
  return parts.join(", ");
}

export class TileBoard {
  /**
   * @param {HTMLElement} element the one with role grid
   * @param {() => void} changed called when a tile has come on screen or failed to load
   */
  constructor(element, changed) {
    this.element = element;
    this.changed = changed;
    this.tiles = [];
    this.count = 0;
    this.columns = 1;
    this.rows = 1;
    this.current = 0;
  }

  /** The geometry that strokes and arrow keys need; sizes in CSS pixels, gaps included. */
  get geometry() {
    const { width, height } = this.element.getBoundingClientRect();
    const { columns, rows, count } = this;
    return { columns, rows, count, width: width + GAP, height: height + GAP };
  }

  /** Puts the tiles into the columns and rows that show most; `size` is the number asked for. */
  arrange(size) {
    const { clientWidth: width, clientHeight: height } = this.element;
    if (!width || !height) return;
    const count = Math.min(size, Math.max(FEWEST, this.count));
    const whole = this.element.hasAttribute("data-whole");
    const { columns, rows } = bestLayout({ width, height, count, whole });
    this.element.style.setProperty("--columns", columns);
    this.element.style.setProperty("--rows", rows);
    const shown = this.tiles.slice(0, this.count);
    const place = shown.map((tile) => tile.cell);
    const same = this.columns === columns && this.inRows === this.count;
    this.rows = rows;
    if (same) return;
    this.columns = columns;
    this.inRows = this.count;
    const focused = place.find((cell) => cell === document.activeElement && cell === place[this.current]);
    const lines = [];
    for (let start = 0; start < place.length; start += columns) {
      lines.push(make("div", { role: "row" }, ...place.slice(start, start + columns)));
    }
    this.element.replaceChildren(...lines);
    focused?.focus({ preventScroll: true });
  }

  /**
   * Shows another page.
   * @param {number[]} ranks
   * @param {import("./store.js").CandidateStore} store
   * @param {number} size the number of tiles asked for
   */
  fill(ranks, store, size) {
    this.observer?.disconnect();
    const observer = new IntersectionObserver((sights) => this.#sighted(observer, sights), {
      threshold: SEEN_FROM,
    });
    this.observer = observer;
    this.count = ranks.length;
    this.current = -1;
    while (this.tiles.length < ranks.length) this.tiles.push(this.#tile(this.tiles.length));
    for (const tile of this.tiles.slice(ranks.length)) this.#empty(tile, null);
    ranks.forEach((rank, index) => {
      this.#empty(this.tiles[index], rank);
      this.load(index, store);
    });
    this.arrange(size);
  }

  /** Puts the thumbnail of a tile in its place, now if it is decoded, else when it is. */
  load(index, store) {
    const tile = this.tiles[index];
    const { rank } = tile;
    const ready = store.thumbnailNow(rank);
    if (ready) {
      this.#place(tile, ready);
      return;
    }
    this.#hope(tile);
    store.thumbnail(rank).then(
      (picture) => tile.rank === rank && this.#place(tile, picture),
      () => tile.rank === rank && this.#fail(tile),
    );
  }

  /** Shows what a tile is marked as: `mark` is a relevance or null, `draft` whether it is not yet submitted. */
  look(index, entry, mark, draft) {
    const tile = this.tiles[index];
    const { cell } = tile;
    tile.entry = entry;
    tile.mark = mark;
    cell.dataset.mark = mark ?? "";
    cell.toggleAttribute("data-draft", draft);
    cell.setAttribute("aria-selected", String(mark === "relevant"));
    cell.setAttribute("aria-label", name(entry, mark, tile));
    tile.number.textContent = entry.rank;
    tile.sign.textContent = SIGNS[mark] ?? "";
    tile.flag.hidden = !entry.flagged;
  }

  /** Makes a tile the one that Tab leads to, and with `focus` focuses it. */
  point(index, focus) {
    this.tiles[this.current]?.cell.setAttribute("tabindex", "-1");
    this.current = index;
    const cell = this.tiles[index]?.cell;
    cell?.setAttribute("tabindex", "0");
    if (focus) cell?.focus({ preventScroll: true });
  }

  /** The index of the tile that an event happened in, or -1. */
  indexOf(target) {
    const cell = target.closest?.("[role=gridcell]");
    return cell && this.element.contains(cell) ? Number(cell.dataset.index) : -1;
  }

  isSeen(index) {
    return this.tiles[index].seen;
  }

  isFailed(index) {
    return this.tiles[index].failed;
  }

  isLoaded(index) {
    return this.tiles[index].loaded;
  }

  /** Whether a panel lies over tiles, as those from the lower edge do in a narrow window: then they aren't seen. */
  get covered() {
    const { left, top, width, height } = this.tiles[this.count - 1].cell.getBoundingClientRect();
    const found = document.elementFromPoint(left + width / 2, top + height / 2);
    return Boolean(found?.closest("[data-filters], [data-side]"));
  }

  get seen() {
    return this.tiles.slice(0, this.count).filter((tile) => tile.seen).length;
  }

  #tile(index) {
    const picture = make("span", { class: "tile-picture" });
    const number = make("span", { class: "tile-rank" });
    const sign = make("span", { class: "tile-sign" });
    const flag = make("span", { class: "tile-flag", text: "⚑", hidden: true });
    const cell = make(
      "div",
      { role: "gridcell", class: "tile", tabindex: "-1", "data-index": String(index) },
      picture,
      number,
      sign,
      flag,
    );
    return { cell, picture, number, sign, flag, rank: null, loaded: false, seen: false, failed: false };
  }

  #empty(tile, rank) {
    tile.rank = rank;
    tile.loaded = tile.seen = tile.failed = false;
    delete tile.cell.dataset.failed;
    delete tile.cell.dataset.seen;
    tile.cell.dataset.rank = rank ?? "";
    tile.cell.setAttribute("tabindex", "-1");
    tile.picture.replaceChildren();
  }

  #place(tile, picture) {
    picture.alt = "";
    picture.draggable = false;
    tile.picture.replaceChildren(picture);
    this.#hope(tile);
    tile.loaded = true;
    this.observer.observe(tile.cell);
  }

  #fail(tile) {
    tile.failed = true;
    tile.cell.dataset.failed = "";
    tile.picture.replaceChildren(make("span", { text: "↻ Not loaded" }));
    this.#lookAgain(tile);
    this.changed();
  }

  /** A tile that failed is tried again, or has its picture after all. */
  #hope(tile) {
    if (!tile.failed) return;
    tile.failed = false;
    delete tile.cell.dataset.failed;
    this.#lookAgain(tile);
  }

  #lookAgain(tile) {
    this.look(Number(tile.cell.dataset.index), tile.entry, tile.mark, "draft" in tile.cell.dataset);
  }

  #sighted(observer, sights) {
    if (observer !== this.observer) return;
    for (const { isIntersecting, intersectionRatio, target } of sights) {
      const tile = this.tiles[Number(target.dataset.index)];
      if (!isIntersecting || intersectionRatio < SEEN_FROM || !tile.loaded) continue;
      tile.seen = true;
      target.dataset.seen = "";
      observer.unobserve(target);
    }
    this.changed();
  }
}

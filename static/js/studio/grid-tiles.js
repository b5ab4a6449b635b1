/** The tiles of a page in the document: rows and cells, thumbnails, what they show, which were on screen. */
import { make } from "../dom.js";
import { RELEVANCE_NAMES, RELEVANCE_SIGNS, sentence } from "../words.js";

/** Of a tile; less of it on screen is not seen. */
const SEEN_FROM = 0.6;

function name({ where, relevance, flagged }, mark, tile) {
  const parts = [sentence(where)];
  if (relevance) parts.push(`labeled ${RELEVANCE_NAMES[relevance].toLowerCase()}`);
  if (mark && mark !== relevance) parts.push(`marked ${RELEVANCE_NAMES[mark].toLowerCase()}`);
  if (!mark) parts.push("not marked");
  if (flagged) parts.push("flagged");
  if (tile.failed) parts.push("the image could not be loaded, a click tries again");
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

  /** Puts the tiles into the columns and rows that show most; `size` is the number wanted. */
  arrange(size) {
    const { clientWidth: width, clientHeight: height } = this.element;
    if (!width || !height) return;
    const count = Math.min(size, Math.max(MIN_TILES, this.count));
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
   * @param {CandidateStore} store
   * @param {number} size the number of tiles wanted
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
    for (const tile of this.tiles.slice(ranks.length)) this.#reset(tile, null);
    ranks.forEach((rank, index) => {
      this.#reset(this.tiles[index], rank);
      this.load(index, store);
    });
    this.arrange(size);
  }

  /** Puts the thumbnail of a tile in its place, now if it is decoded, else when it is. */
  load(index, store) {
    const tile = this.tiles[index];
    const { rank } = tile;
    const ready = store.caches.thumbnail.now(rank);
    if (ready) {
      this.#place(tile, ready);
      return;
    }
    this.#clearFailure(tile);
    store.caches.thumbnail.get(rank).then(
      (img) => tile.rank === rank && this.#place(tile, img),
      () => tile.rank === rank && this.#fail(tile),
    );
  }

  /** Shows what a tile is marked as: `mark` is a relevance or null, `draft` whether it is not yet submitted. */
  draw(index, entry, mark, draft) {
    const tile = this.tiles[index];
    const { cell } = tile;
    tile.entry = entry;
    tile.mark = mark;
    cell.dataset.mark = mark ?? "";
    cell.toggleAttribute("data-draft", draft);
    cell.setAttribute("aria-selected", String(mark === "relevant"));
    cell.setAttribute("aria-label", name(entry, mark, tile));
    tile.rankNode.textContent = entry.rank;
    tile.sign.textContent = RELEVANCE_SIGNS[mark] ?? "";
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
    const topmost = document.elementFromPoint(left + width / 2, top + height / 2);
    return Boolean(topmost?.closest("[data-filters], [data-side]"));
  }

  get seen() {
    return this.tiles.slice(0, this.count).filter((tile) => tile.seen).length;
  }

  #tile(index) {
    const frame = make("span", { class: "tile-image" });
    const rankNode = make("span", { class: "tile-rank" });
    const sign = make("span", { class: "tile-sign" });
    const flag = make("span", { class: "tile-flag", text: "⚑", hidden: true });
    const cell = make(
      "div",
      { role: "gridcell", class: "tile", tabindex: "-1", "data-index": String(index) },
      frame,
      rankNode,
      sign,
      flag,
    );
    return { cell, frame, rankNode, sign, flag, rank: null, loaded: false, seen: false, failed: false };
  }

  #reset(tile, rank) {
    tile.rank = rank;
    tile.loaded = tile.seen = tile.failed = false;
    delete tile.cell.dataset.failed;
    delete tile.cell.dataset.seen;
    tile.cell.dataset.rank = rank ?? "";
    tile.cell.setAttribute("tabindex", "-1");
    tile.frame.replaceChildren();
  }

  #place(tile, img) {
    img.alt = "";
    img.draggable = false;
    tile.frame.replaceChildren(img);
    this.#clearFailure(tile);
    tile.loaded = true;
    this.observer.observe(tile.cell);
  }

  #fail(tile) {
    tile.failed = true;
    tile.cell.dataset.failed = "";
    tile.frame.replaceChildren(make("span", { text: "↻ Not loaded" }));
    this.#drawAgain(tile);
    this.changed();
  }

  /** A tile that failed is tried again, or has its image after all. */
  #clearFailure(tile) {
    if (!tile.failed) return;
    tile.failed = false;
    delete tile.cell.dataset.failed;
    this.#drawAgain(tile);
  }

  #drawAgain(tile) {
    this.draw(Number(tile.cell.dataset.index), tile.entry, tile.mark, "draft" in tile.cell.dataset);
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

const MIN_TILES = 12;
const MAX_TILES = 60;
export const DEFAULT_TILES = 30;
/** Between tiles, in CSS pixels; the same in grid.css. */
const GAP = 4;

/** What the keys step through: numbers that divide into rows without holes in most windows. */
const STEPS = [12, 15, 18, 20, 24, 28, 30, 35, 40, 45, 48, 54, 60];

/** A number of tiles that is allowed. */
export function allowedSize(size) {
  return Number.isFinite(size) ? Math.min(MAX_TILES, Math.max(MIN_TILES, Math.round(size))) : DEFAULT_TILES;
}

/** The next larger (by > 0) or smaller number of tiles. */
export function steppedSize(size, by) {
  return by > 0
    ? (STEPS.find((step) => step > size) ?? MAX_TILES)
    : (STEPS.findLast((step) => step < size) ?? MIN_TILES);
}

/**
 * The longest useful shape of a tile, longer to shorter side: a crop fills a tile of most shapes,
 * a whole image leaves part of a long tile empty.
 */
const LONGEST = { cropped: 1.4, whole: 1.1 };
/** Layouts that show at least this part of the best one's area are as good; then fewer empty cells decide. */
const NEARLY = 0.94;

/**
 * The columns and rows in which `count` tiles fill a box without scrolling and show most of their images.
 * @param {{width: number, height: number, count: number, whole?: boolean, gap?: number}} box sizes in CSS pixels;
 *   `whole` for images that are not cropped
 * @returns {{columns: number, rows: number}}
 */
export function bestLayout({ width, height, count, whole = false, gap = GAP }) {
  const longest = whole ? LONGEST.whole : LONGEST.cropped;
  const layouts = [];
  for (let columns = 1; columns <= Math.max(1, count); columns += 1) {
    const rows = Math.max(1, Math.ceil(count / columns));
    const wide = Math.max(0, (width - gap * (columns - 1)) / columns);
    const high = Math.max(0, (height - gap * (rows - 1)) / rows);
    const area = Math.min(wide, high * longest) * Math.min(high, wide * longest);
    layouts.push({ columns, rows, area, empty: columns * rows - count });
  }
  const most = Math.max(...layouts.map(({ area }) => area));
  const good = layouts.filter(({ area }) => area >= most * NEARLY);
  good.sort((layout, other) => layout.empty - other.empty || other.area - layout.area);
  const [{ columns, rows }] = good;
  return { columns, rows };
}

/**
 * The tiles under a straight stroke, in its order, each once: a fast pointer reports few points, and none between
 * them may be passed over.
 * @param {{x: number, y: number}} from in pixels from the grid's left upper corner
 * @param {{x: number, y: number}} to
 * @param {{columns: number, rows: number, width: number, height: number, count: number}} grid
 * @returns {number[]} indices of tiles
 */
export function tilesUnder(from, to, grid) {
  const cellWidth = grid.width / grid.columns;
  const cellHeight = grid.height / grid.rows;
  const length = Math.hypot((to.x - from.x) / cellWidth, (to.y - from.y) / cellHeight);
  const steps = Math.max(1, Math.ceil(length * 8));
  const indexes = new Set();
  for (let step = 0; step <= steps; step += 1) {
    const column = Math.floor((from.x + ((to.x - from.x) * step) / steps) / cellWidth);
    const row = Math.floor((from.y + ((to.y - from.y) * step) / steps) / cellHeight);
    const index = row * grid.columns + column;
    const inside = column >= 0 && column < grid.columns && row >= 0 && index < grid.count;
    if (inside) indexes.add(index);
  }
  return [...indexes];
}

/** The index that an arrow key leads to, the same at an edge; left and right continue in the next row. */
export function neighbor(index, direction, { columns, count }) {
  const to = index + { left: -1, right: 1, up: -columns, down: columns }[direction];
  return to >= 0 && to < count ? to : index;
}

/**
 * Clicks, taps and strokes over the tiles.
 *
 * A mouse or pen paints as it is dragged. A finger paints after a short hold, or at once while painting is switched
 * on, so that a swipe meant for something else marks nothing.
 */

const HOLD = 350;
/** Pixels that a finger may move and still tap. */
const SLACK = 12;

/**
 * @typedef {object} Strokes
 * @property {() => {columns: number, rows: number, count: number, width: number, height: number}} geometry
 * @property {() => boolean} fingersPaint whether a finger paints at once
 * @property {(index: number) => void} begin a stroke, click or tap begins on this tile: toggle it
 * @property {(index: number) => void} paint the stroke has come over this tile
 * @property {() => void} end
 */

export class Painter {
  #stroke = null;

  /**
   * @param {HTMLElement} element
   * @param {Strokes} strokes
   */
  constructor(element, strokes) {
    this.element = element;
    this.strokes = strokes;
    element.addEventListener("pointerdown", (event) => this.#down(event));
    element.addEventListener("pointermove", (event) => this.#move(event));
    element.addEventListener("pointerup", (event) => this.#up(event));
    element.addEventListener("pointercancel", () => this.#drop());
    element.addEventListener("contextmenu", (event) => {
      if (this.#stroke?.finger) event.preventDefault();
    });
    // Screen readers click without a pointer.
    element.addEventListener("click", (event) => {
      if (event.detail === 0) this.#click(event);
    });
  }

  #point({ clientX, clientY }) {
    const { left, top } = this.element.getBoundingClientRect();
    return { x: clientX - left, y: clientY - top };
  }

  #under(from, to) {
    return tilesUnder(from, to, this.strokes.geometry());
  }

  #down(event) {
    if (this.#stroke) {
      this.#drop();
      return;
    }
    const point = this.#point(event);
    const [index] = this.#under(point, point);
    if (event.button !== 0 || index === undefined) return;
    const finger = event.pointerType === "touch";
    this.#stroke = { id: event.pointerId, finger, start: point, last: point, index, painted: null };
    if (!finger || this.strokes.fingersPaint()) this.#begin();
    else this.#stroke.timer = setTimeout(() => this.#begin(), HOLD);
  }

  #begin() {
    const stroke = this.#stroke;
    stroke.painted = new Set([stroke.index]);
    this.element.setPointerCapture?.(stroke.id);
    this.element.toggleAttribute("data-painting", stroke.finger);
    this.strokes.begin(stroke.index);
  }

  #move(event) {
    const stroke = this.#stroke;
    if (stroke?.id !== event.pointerId) return;
    if (!stroke.painted) {
      const { x, y } = this.#point(event);
      if (Math.hypot(x - stroke.start.x, y - stroke.start.y) > SLACK) this.#drop();
      return;
    }
    const points = event.getCoalescedEvents?.() ?? [];
    for (const passed of points.length ? points : [event]) {
      const point = this.#point(passed);
      for (const index of this.#under(stroke.last, point)) {
        if (stroke.painted.has(index)) continue;
        stroke.painted.add(index);
        this.strokes.paint(index);
      }
      stroke.last = point;
    }
  }

  #up(event) {
    const stroke = this.#stroke;
    if (stroke?.id !== event.pointerId) return;
    if (!stroke.painted) this.strokes.begin(stroke.index);
    this.#drop();
  }

  #drop() {
    if (!this.#stroke) return;
    clearTimeout(this.#stroke.timer);
    this.#stroke = null;
    this.element.removeAttribute("data-painting");
    this.strokes.end();
  }

  #click(event) {
    const cell = event.target.closest("[role=gridcell]");
    if (!cell) return;
    this.strokes.begin(Number(cell.dataset.index));
    this.strokes.end();
  }
}

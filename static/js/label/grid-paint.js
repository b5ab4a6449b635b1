/**
 * Clicks, taps and strokes over the tiles.
 *
 * A mouse or pen paints as it is dragged. A finger paints after a short hold, or at once while painting is switched
 * on, so that a swipe meant for something else marks nothing.
 */
import { tilesUnder } from "./grid-layout.js";

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
    for (const one of points.length ? points : [event]) {
      const point = this.#point(one);
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

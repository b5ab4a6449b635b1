/** The live chart: relevant found and similarity against rank, the present place and the present streak. */
import { curve, extent, inWords, line, ticks } from "./chart-data.js";
import { afterPaint } from "./panel-tools.js";

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 170;
const EDGE = { top: 12, right: 38, bottom: 24, left: 32 };

function shape(tag, attributes = {}, text = "") {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text) element.textContent = text;
  return element;
}

class Chart {
  /** @param {import("./studio.js").Studio} studio */
  constructor(studio) {
    this.studio = studio;
    this.root = studio.root.querySelector("[data-chart]");
    this.svg = this.root.querySelector("svg");
    this.words = this.root.querySelector("[data-chart-words]");
    this.readout = this.root.querySelector("[data-chart-readout]");
    this.axisName = this.readout.textContent;
    this.whole = false;
    this.soon = afterPaint(() => this.studio.store.size && this.#draw());
    this.axes = shape("g", { class: "chart-axes" });
    this.streak = shape("rect", { class: "chart-streak", y: EDGE.top, height: HEIGHT - EDGE.top - EDGE.bottom });
    this.score = shape("path", { class: "chart-score" });
    this.found = shape("path", { class: "chart-found" });
    this.here = shape("line", { class: "chart-here", y1: EDGE.top - 4, y2: HEIGHT - EDGE.bottom });
    this.svg.append(this.streak, this.axes, this.score, this.found, this.here);
  }

  wire() {
    const { studio, svg } = this;
    for (const event of ["labels", "rank", "list", "ready"]) studio.on(event, () => this.soon());
    studio.store.addEventListener("withdrawn", () => this.soon());
    new ResizeObserver(() => this.soon()).observe(svg);
    const button = this.root.querySelector("[data-chart-whole]");
    button.addEventListener("click", () => {
      this.whole = !this.whole;
      button.setAttribute("aria-pressed", String(this.whole));
      this.soon();
    });
    svg.addEventListener("pointermove", (event) => this.#read(this.#rankAt(event)));
    svg.addEventListener("pointerleave", () => {
      this.readout.textContent = this.axisName;
    });
    svg.addEventListener("click", (event) => {
      const rank = this.#rankAt(event);
      if (rank && studio.store.visible(rank)) studio.go(rank);
    });
  }

  #draw() {
    const { store, rank } = this.studio;
    this.data = curve(store, store.progress);
    this.to = extent(this.data, store.size, rank, this.whole);
    const { data, to } = this;
    this.words.textContent = inWords(data);
    Object.assign(this.root.dataset, {
      judged: data.judged,
      relevant: data.relevant,
      lastRelevant: data.lastRelevant,
      streak: data.streak,
      streakFrom: data.streakFrom,
      rank: rank ?? "",
      to,
    });
    const width = this.svg.clientWidth;
    if (!width) return;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    const most = Math.max(4, data.found[to]);
    const seen = data.scores.subarray(1, to + 1);
    const [low, high] = [Math.min(...seen), Math.max(...seen)];
    const margin = Math.max((high - low) * 0.08, 0.001);
    const inner = { width: width - EDGE.left - EDGE.right, height: HEIGHT - EDGE.top - EDGE.bottom };
    const scale = (from, until, start, length) => (value) =>
      start + ((value - from) / (until - from || 1)) * length;
    this.x = scale(1, to, EDGE.left, inner.width);
    const y = scale(0, most, HEIGHT - EDGE.bottom, -inner.height);
    const yScore = scale(low - margin, high + margin, HEIGHT - EDGE.bottom, -inner.height);
    this.found.setAttribute("d", line(data.found, 1, Math.min(to, data.lastJudged), this.x, y));
    this.score.setAttribute("d", line(data.scores, 1, to, this.x, yScore));
    this.#shade();
    this.#point(rank);
    this.#axes({ width, to, most, y, low, high, yScore });
  }

  #shade() {
    const { streakFrom, prefix } = this.data;
    const on = streakFrom > 0 && streakFrom <= this.to;
    this.streak.toggleAttribute("hidden", !on);
    if (!on) return;
    const left = this.x(streakFrom);
    this.streak.setAttribute("x", left);
    this.streak.setAttribute("width", Math.max(2, this.x(Math.min(prefix, this.to)) - left));
  }

  #point(rank) {
    const on = rank !== null && rank <= this.to;
    this.here.toggleAttribute("hidden", !on);
    if (!on) return;
    this.here.setAttribute("x1", this.x(rank));
    this.here.setAttribute("x2", this.x(rank));
  }

  #axes({ width, to, most, y, low, high, yScore }) {
    const bottom = HEIGHT - EDGE.bottom;
    const right = width - EDGE.right;
    const marks = [];
    for (const tick of ticks(0, most, 4)) {
      if (!Number.isInteger(tick)) continue;
      marks.push(shape("line", { x1: EDGE.left, x2: right, y1: y(tick), y2: y(tick), class: "chart-grid" }));
      marks.push(shape("text", { x: EDGE.left - 5, y: y(tick) + 4, class: "found end" }, String(tick)));
    }
    for (const tick of ticks(low, high, 3)) {
      const told = tick.toFixed(high - low < 0.02 ? 3 : 2);
      marks.push(shape("text", { x: right + 5, y: yScore(tick) + 4, class: "score" }, told));
    }
    const along = ticks(1, to, width < 260 ? 3 : 5);
    for (const tick of along) {
      marks.push(shape("text", { x: this.x(tick), y: bottom + 14, class: "rank mid" }, tick.toLocaleString("en")));
    }
    this.axes.replaceChildren(...marks);
  }

  #rankAt({ clientX }) {
    if (!this.x) return 0;
    const { left, width } = this.svg.getBoundingClientRect();
    const share = (clientX - left - EDGE.left) / (width - EDGE.left - EDGE.right);
    return Math.min(this.to, Math.max(1, Math.round(1 + share * (this.to - 1))));
  }

  #read(rank) {
    if (!rank) return;
    const { found, scores } = this.data;
    const number = (value) => value.toLocaleString("en");
    const similarity = scores[rank].toFixed(3);
    this.readout.textContent = `Rank ${number(rank)}: ${number(found[rank])} relevant, similarity ${similarity}`;
  }
}

/** @param {import("./studio.js").Studio} studio */
export function mount(studio) {
  new Chart(studio).wire();
}

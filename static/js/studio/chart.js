/** The live chart: relevant found and similarity against rank, the present place and the present streak. */
import { afterPaint } from "../dom.js";
import { counted, number } from "../words.js";

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
  /** @param {Studio} studio */
  constructor(studio) {
    this.studio = studio;
    this.root = studio.root.querySelector("[data-chart]");
    this.svg = this.root.querySelector("svg");
    this.words = this.root.querySelector("[data-chart-words]");
    this.readout = this.root.querySelector("[data-chart-readout]");
    this.axisName = this.readout.textContent;
    /** "Similarity", or what a pooled list has in its place. */
    this.scoreName = this.root.querySelector(".key-score").textContent;
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
    this.words.textContent = inWords(data, this.scoreName);
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
    const scale = (from, until, start, length) => (value) => start + ((value - from) / (until - from || 1)) * length;
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
      const text = tick.toFixed(high - low < 0.02 ? 3 : 2);
      marks.push(shape("text", { x: right + 5, y: yScore(tick) + 4, class: "score" }, text));
    }
    const along = ticks(1, to, width < 260 ? 3 : 5);
    for (const tick of along) {
      marks.push(shape("text", { x: this.x(tick), y: bottom + 14, class: "rank mid" }, number(tick)));
    }
    this.axes.replaceChildren(...marks);
  }

  #rankAt({ clientX }) {
    if (!this.x) return 0;
    const { left, width } = this.svg.getBoundingClientRect();
    const fraction = (clientX - left - EDGE.left) / (width - EDGE.left - EDGE.right);
    return Math.min(this.to, Math.max(1, Math.round(1 + fraction * (this.to - 1))));
  }

  #read(rank) {
    if (!rank) return;
    const { found, scores } = this.data;
    const score = `${this.scoreName.toLowerCase()} ${scores[rank].toFixed(3)}`;
    this.readout.textContent = `Rank ${number(rank)}: ${number(found[rank])} relevant, ${score}`;
  }
}

/** @param {Studio} studio */
export function mount(studio) {
  new Chart(studio).wire();
}

/** The ticks of an axis from 0 (or `from`) to `to`: at most `most` round numbers. */
export function ticks(from, to, most = 5) {
  const span = to - from;
  if (!(span > 0)) return [from];
  const rough = span / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough);
  const ticks = [];
  for (let tick = Math.ceil(from / step - 1e-9) * step; tick <= to + step * 1e-9; tick += step) {
    ticks.push(Number(tick.toPrecision(12)));
  }
  return ticks;
}

/**
 * What the chart shows of a list.
 * @param {{size: number, entry: (rank: number) => {score: number, relevance: string|null, withdrawn: boolean}}} store
 * @param {{prefix: number, streak: number}} progress
 * @returns {{found: Uint32Array, scores: Float64Array, judged: number, relevant: number, lastRelevant: number,
 *   lastJudged: number, streakFrom: number, prefix: number, streak: number}}
 *   `found[rank]`: relevant up to that rank; ranks are 0 where there is none
 */
export function curve(store, { prefix, streak }) {
  const { size } = store;
  const found = new Uint32Array(size + 1);
  const scores = new Float64Array(size + 1);
  let judged = 0;
  let relevant = 0;
  let lastRelevant = 0;
  let lastJudged = 0;
  let relevantInPrefix = 0;
  for (let rank = 1; rank <= size; rank += 1) {
    const { score, relevance, withdrawn } = store.entry(rank);
    scores[rank] = score;
    if (relevance !== null && !withdrawn) {
      judged += 1;
      lastJudged = rank;
      if (relevance === "relevant") {
        relevant += 1;
        lastRelevant = rank;
        if (rank <= prefix) relevantInPrefix = rank;
      }
    }
    found[rank] = relevant;
  }
  const streakFrom = streak > 0 ? relevantInPrefix + 1 : 0;
  return { found, scores, judged, relevant, lastRelevant, lastJudged, streakFrom, prefix, streak };
}

/** The last rank that is drawn: the whole list, or what is labeled and a little of what comes. */
export function extent({ lastJudged }, size, rank, whole) {
  const reached = Math.max(lastJudged, Math.min(rank ?? 0, size));
  return whole ? size : Math.min(size, Math.max(50, Math.ceil((reached * 1.15) / 10) * 10));
}

/**
 * A line through values by rank, not more than two points a pixel: of a pixel's ranks the least and the greatest
 * value are kept.
 * @param {ArrayLike<number>} values by rank; index 0 is not used
 * @param {number} from first rank
 * @param {number} to last rank
 * @param {(rank: number) => number} x
 * @param {(value: number) => number} y
 * @returns {string} the path's data; empty where there is nothing to draw
 */
export function line(values, from, to, x, y) {
  const points = [];
  let pixel = NaN;
  let low = 0;
  let high = 0;
  const flush = () => {
    if (Number.isNaN(pixel)) return;
    points.push(`${pixel} ${y(low).toFixed(1)}`);
    if (high !== low) points.push(`${pixel} ${y(high).toFixed(1)}`);
  };
  for (let rank = from; rank <= to; rank += 1) {
    const at = Math.round(x(rank));
    const value = values[rank];
    if (at !== pixel) {
      flush();
      pixel = at;
      low = high = value;
    } else {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  flush();
  return points.length ? `M${points.join("L")}` : "";
}

/** The chart as a sentence or two. */
export function inWords(
  { judged, relevant, lastRelevant, lastJudged, prefix, streak, scores },
  scoreName = "Similarity",
) {
  if (!judged) return "Nothing is labeled yet.";
  const among = judged === prefix && judged > 1 ? `in the first ${number(judged)}` : `among ${number(judged)} labeled`;
  const last = relevant ? `; the last at rank ${number(lastRelevant)}` : "";
  const row = streak ? ` ${counted(streak, "negative")} in a row.` : "";
  const fall = `${scoreName} falls from ${scores[1].toFixed(3)} to ${scores[lastJudged].toFixed(3)}.`;
  return `${number(relevant)} relevant ${among}${last}.${row} ${lastJudged > 1 ? fall : ""}`.trim();
}

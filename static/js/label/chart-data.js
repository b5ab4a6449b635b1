/** The numbers behind the live chart; knows no document. */
import { counted } from "./panel-tools.js";

/** The ticks of an axis from 0 (or `from`) to `to`: at most `most` round numbers. */
export function ticks(from, to, most = 5) {
  const span = to - from;
  if (!(span > 0)) return [from];
  const rough = span / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough);
  const found = [];
  for (let tick = Math.ceil(from / step - 1e-9) * step; tick <= to + step * 1e-9; tick += step) {
    found.push(Number(tick.toPrecision(12)));
  }
  return found;
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

/** The last rank that is drawn: the whole list, or what is labelled and a little of what comes. */
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
export function inWords({ judged, relevant, lastRelevant, lastJudged, prefix, streak, scores }) {
  if (!judged) return "Nothing is labelled yet.";
  const among =
    judged === prefix && judged > 1
      ? `in the first ${judged.toLocaleString("en")}`
      : `among ${judged.toLocaleString("en")} labelled`;
  const last = relevant ? `; the last at rank ${lastRelevant.toLocaleString("en")}` : "";
  const row = streak ? ` ${counted(streak, "negative")} in a row.` : "";
  const fall = `Similarity falls from ${scores[1].toFixed(3)} to ${scores[lastJudged].toFixed(3)}.`;
  return `${relevant.toLocaleString("en")} relevant ${among}${last}.${row} ${lastJudged > 1 ? fall : ""}`.trim();
}

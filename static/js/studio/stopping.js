/**
 * When an annotator may stop: the streak of negatives, or the exhausted list.
 *
 * The same rules as labeling/candidates/stopping.py, which says why; tests/labeling/stopping_vectors.json holds both to it.
 */
/** The outline's letter for no judgment. */
export const UNLABELED = "-";

/** Letters of the outline for what is judged. */
export const LETTERS = { relevant: "r", not_relevant: "n", unsure: "u" };

/** Letters of the outline for where a judgment was made. */
export const SOURCES = {
  list: "l",
  search: "s",
  similar: "m",
  audit: "a",
  import: "i",
  learned: "o",
  second: "b",
  run: "r",
  correction: "c",
  reader: "d",
  picked: "p",
};

/** Letters of the sources that don't move the streak's position. */
export const OUTSIDE_LIST = new Set(["s", "m", "p"]);
const GAP = 0;
const NEGATIVE = 1;
const POSITIVE = 2;
const WITHDRAWN = 3;
const MARKS = { [UNLABELED]: GAP, n: NEGATIVE, u: NEGATIVE, r: POSITIVE };

/**
 * Applies the stop rules to one candidate list, in time linear in its length.
 *
 * @param {ArrayLike<string>} relevance one letter a rank: r, n, u or -
 * @param {ArrayLike<string>} sources a letter of SOURCES a rank, or -
 * @param {object} options
 * @param {Iterable<number>} [options.withdrawn] ranks (from 1) that count for nothing and are no gap
 * @param {boolean} options.complete whether the list holds every image of its filter
 * @param {number} options.required the streak that is asked for, at least 1
 * @param {number} [options.minimum] judgments asked for before the streak allows to stop
 * @returns {{length: number, judged: number, relevant: number, unsure: number, prefix: number, streak: number,
 *   required: number, streak_met: boolean, minimum: number, minimum_met: boolean, exhausted: boolean,
 *   remaining: number, next_rank: number|null, rule: "streak"|"exhausted"|"none", met: boolean}}
 * @throws {RangeError} for a rank outside the list, an unknown letter, minimum < 0 or required < 1
 */
export function stopState(relevance, sources, { withdrawn = [], complete, required, minimum = 0 }) {
  if (minimum < 0) throw new RangeError(`minimum must not be negative: ${minimum}`);
  if (required < 1) throw new RangeError(`required must be at least 1: ${required}`);
  const size = relevance.length;
  const marks = new Uint8Array(size);
  let length = size;
  for (const rank of withdrawn) {
    if (!(rank >= 1 && rank <= size)) throw new RangeError(`rank ${rank} is outside 1..${size}`);
    if (marks[rank - 1] !== WITHDRAWN) length -= 1;
    marks[rank - 1] = WITHDRAWN;
  }
  let judged = 0;
  let relevant = 0;
  let unsure = 0;
  for (let place = 0; place < size; place += 1) {
    const mark = MARKS[relevance[place]];
    if (mark === undefined) throw new RangeError(`unknown relevance at rank ${place + 1}`);
    if (mark === GAP || marks[place] === WITHDRAWN) continue;
    marks[place] = mark;
    judged += 1;
    if (mark === POSITIVE) relevant += 1;
    if (relevance[place] === "u") unsure += 1;
  }
  const gap = marks.indexOf(GAP);
  let prefix = gap < 0 ? size : gap;
  if (gap >= 0) {
    while (prefix && (marks[prefix - 1] === WITHDRAWN || OUTSIDE_LIST.has(sources[prefix - 1]))) prefix -= 1;
  }
  let streak = 0;
  for (let place = prefix - 1; place >= 0 && marks[place] !== POSITIVE; place -= 1) {
    if (marks[place] === NEGATIVE) streak += 1;
  }
  const streakMet = streak >= required;
  const minimumMet = judged >= minimum;
  const exhausted = complete && length > 0 && gap < 0;
  let rule = "none";
  if (exhausted) rule = "exhausted";
  else if (streakMet && minimumMet) rule = "streak";
  return {
    length,
    judged,
    relevant,
    unsure,
    prefix,
    streak,
    required,
    streak_met: streakMet,
    minimum,
    minimum_met: minimumMet,
    exhausted,
    remaining: length - judged,
    next_rank: gap < 0 ? null : gap + 1,
    rule,
    met: rule !== "none",
  };
}

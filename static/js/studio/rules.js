/**
 * How the rule that allows to hand a query in stands, as labeling/candidates/rules.py has it. The streak and the
 * exhausted list are counted here, also without a connection; of other rules the page has what the server said last.
 */
import { counted, number } from "../words.js";

/** @typedef {{name: string, holds: boolean, value: number, of: number, text: string, note: string}} Row */

/** Of each rule that the page counts: what meets it, its rows, and what it still asks for. */
const COUNTED = {
  streak({ stop, streak, judged }) {
    const rows = [row("Negatives in a row", stop.streak_met, streak, stop.required)];
    if (stop.minimum) rows.push(row("Minimum number of labels", stop.minimum_met, judged, stop.minimum));
    const wanting = [];
    if (!stop.streak_met) wanting.push(`${counted(stop.required - streak, "more negative")} in a row`);
    if (!stop.minimum_met) wanting.push(counted(stop.minimum - judged, "more label"));
    return { rows, wanting, reason: `${number(streak)} candidates in a row are not relevant` };
  },
  exhausted({ stop, judged, candidates, remaining }, list) {
    const rows = [{ ...row("The whole list labeled", stop.exhausted, judged, candidates), note: outside(list) }];
    const wanting = stop.exhausted ? [] : [remaining ? counted(remaining, "more label") : "a longer list"];
    return { rows, wanting, reason: "every image is labeled" };
  },
};

function row(name, holds, value, of) {
  return { name, holds, value, of, text: `${number(value)} of ${number(of)}`, note: "" };
}

function asSaid({ title, met, value, of, sentence }) {
  const note = "As the server counted when this page last asked.";
  const rows = [{ name: title, holds: met, value, of, text: sentence, note }];
  return { rows, wanting: met ? [] : [lower(title)], reason: sentence };
}

function lower(text) {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

/** Why a list labeled to its end would still not be exhausted; else empty. */
function outside(list) {
  if (list.complete) return "";
  if (list.size < list.total) {
    return `The list holds ${number(list.size)} of ${number(list.total)} images; it can be extended at its end.`;
  }
  return list.unembedded ? `${counted(list.unembedded, "image")} of the filter can't be ranked yet.` : "";
}

/**
 * @param {{ways: {rules: object[]}[]}} handIn as the API gives it
 * @param {object} progress as the store has it
 * @param {object} list
 * @returns {{met: boolean, pause: boolean, reason: string, wanting: string, rows: Row[]}} `pause`: the streak is long
 *   enough, but the rule asks for what the server has to count; `reason`: what met the rule; `wanting`: what is missing
 */
export function handInState({ ways }, progress, list) {
  const stand = ways.map(({ rules }) => rules.map((rule) => COUNTED[rule.name]?.(progress, list) ?? asSaid(rule)));
  const missing = (way) => way.flatMap(({ wanting }) => wanting);
  const met = stand.find((way) => !missing(way).length);
  const audited = ways.some(({ rules }) => rules.some(({ name }) => !(name in COUNTED)));
  // Labeling the whole list is the last resort of most rules; it is named where it is the only one.
  const named = stand.filter((_, place) => !ways[place].rules.some(({ name }) => name === "exhausted"));
  return {
    met: Boolean(met),
    pause: !met && audited && progress.stop.rule === "streak",
    reason: (met ?? []).map(({ reason }) => reason).join(" and "),
    wanting: (named.length ? named : stand).map((way) => missing(way).join(" and ")).join(", or "),
    rows: stand.flatMap((way, index) =>
      way.flatMap(({ rows: [first, ...more] }, place) => {
        const joint = place ? "And " : index ? "Or " : "";
        return [joint ? { ...first, name: joint + lower(first.name) } : first, ...more];
      }),
    ),
  };
}

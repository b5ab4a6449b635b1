/** What the stop panel says of a progress; knows no document. */
import { counted } from "./panel-tools.js";

const number = (value) => value.toLocaleString("en");

/**
 * The rules with whether they hold.
 * @returns {{name: string, holds: boolean, value: number, of: number, text: string, note: string}[]}
 */
export function rules(progress, list) {
  const { stop, minimum, streak, judged, candidates } = progress;
  const found = [
    {
      name: "Negatives in a row",
      holds: stop.streak_met,
      value: streak,
      of: stop.required,
      text: `${number(streak)} of ${number(stop.required)}`,
      note: "",
    },
  ];
  if (minimum?.asked) {
    found.push({
      name: "Labels asked for at least",
      holds: minimum.met,
      value: judged,
      of: minimum.asked,
      text: `${number(judged)} of ${number(minimum.asked)}`,
      note: "",
    });
  }
  found.push({
    name: "Or the whole list labelled",
    holds: stop.exhausted,
    value: judged,
    of: candidates,
    text: `${number(judged)} of ${number(candidates)}`,
    note: outside(list),
  });
  return found;
}

/** Why a list that is labelled to its end would still not be all there is; else empty. */
function outside(list) {
  if (list.complete) return "";
  if (list.size < list.total) {
    return `The list holds ${number(list.size)} of ${number(list.total)} images; it can be extended at its end.`;
  }
  return list.unembedded ? `${counted(list.unembedded, "image")} of the filter can't be ranked yet.` : "";
}

/** Whether one may stop, in a sentence. */
export function verdict({ stop, minimum, streak, judged, remaining }) {
  if (stop.exhausted) return "The list is exhausted: every image is labelled. Hand it in, or step back to check.";
  if (stop.met) {
    const row = `${number(streak)} candidates in a row are not relevant`;
    return `The stop rule is met: ${row}. Hand in, or go on if you expect more.`;
  }
  const wanting = [];
  if (!stop.streak_met) wanting.push(`${counted(stop.required - streak, "more negative")} in a row`);
  if (minimum?.asked && !minimum.met) wanting.push(counted(minimum.asked - judged, "more label"));
  const end = remaining ? "" : " The end of the list is reached.";
  return `Not yet: ${wanting.join(" and ")} needed.${end}`;
}

/**
 * The unlabelled candidates before the last one that was labelled in the list's order, and the first unsure one.
 * @param {import("./store.js").CandidateStore} store
 * @returns {{skipped: number, firstSkipped: number, before: number, firstUnsure: number}} ranks, 0 for none
 */
export function openEnds(store) {
  const found = { skipped: 0, firstSkipped: 0, before: 0, firstUnsure: 0 };
  let unlabelled = 0;
  let first = 0;
  for (let rank = 1; rank <= store.size; rank += 1) {
    const { relevance, source, withdrawn } = store.entry(rank);
    if (withdrawn) continue;
    if (relevance === "unsure" && !found.firstUnsure) found.firstUnsure = rank;
    if (relevance === null) {
      unlabelled += 1;
      first ||= rank;
    } else if (source === "list" || source === "import") {
      Object.assign(found, { skipped: unlabelled, firstSkipped: first, before: rank });
    }
  }
  return found.skipped ? found : { ...found, firstSkipped: 0 };
}

/** What of it is worth a look before handing in: a sentence and the rank to go to (0: none). */
export function todo({ skipped, firstSkipped, before, firstUnsure }, unsure, unsubmitted) {
  const found = [];
  if (skipped) {
    const gap = `${counted(skipped, "skipped candidate")} before rank ${number(before)}`;
    found.push({ text: `${gap}; the streak waits at rank ${number(firstSkipped)}.`, rank: firstSkipped });
  }
  if (unsure && firstUnsure) {
    const count = unsure === 1 ? "it counts" : "they count";
    found.push({ text: `${number(unsure)} unsure; ${count} as not relevant.`, rank: firstUnsure });
  }
  if (unsubmitted) {
    const are = unsubmitted === 1 ? "is" : "are";
    found.push({ text: `${counted(unsubmitted, "mark")} in the grid ${are} not submitted.`, rank: 0 });
  }
  return found;
}

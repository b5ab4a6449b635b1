/** Numbers, times and names as people read them. */

export const RELEVANCE_NAMES = { relevant: "Relevant", not_relevant: "Not relevant", unsure: "Unsure" };
/** By grade, as the query calls them. */
export const GRADE_NAMES = JSON.parse(document.querySelector("#grade-names")?.textContent ?? "[]");
export const RELEVANCE_SIGNS = { relevant: "✓", unsure: "?", not_relevant: "✕" };

/** "1,234". */
export function number(value) {
  return value.toLocaleString("en");
}

/** "1 image", "3 images". */
export function counted(value, one, many = `${one}s`) {
  return `${number(value)} ${value === 1 ? one : many}`;
}

/** With a capital first letter. */
export function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** What a failed request means to the person: `what` is the sentence for a lost connection. */
export function trouble(error, what) {
  return error.status === 0 ? `There is no connection to the server. ${what}` : error.message;
}

/** The name by which a species is called: its common name, else the scientific one; "" for none. */
export function speciesName(species) {
  return species?.common_name || species?.scientific_name || "";
}

const languages = new Intl.DisplayNames("en", { type: "language", fallback: "code" });

/** "German" for "de"; a code that no language has stays as it is. */
export function languageName(code) {
  try {
    return languages.of(code);
  } catch {
    return code;
  }
}

/** Seconds as "45 s", "12 min" or "1 h 05 min". */
export function duration(seconds) {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
}

/** Seconds per image as "0.3 s", or a dash. */
export function pace(seconds) {
  return seconds === null || seconds === undefined ? "–" : `${seconds.toFixed(1)} s`;
}

const UNITS = [
  ["year", 31_557_600],
  ["month", 2_629_800],
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
];
/** In which the page shows times: its person's, or the browser's own where it doesn't know that one. */
export const TIME_ZONE = known(document.documentElement.dataset.timeZone);

function known(timeZone) {
  try {
    return new Intl.DateTimeFormat("en", { timeZone }).resolvedOptions().timeZone;
  } catch {
    return undefined;
  }
}

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const exact = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium", timeZone: TIME_ZONE });

/** "3 minutes ago", for a date at or before `now`. */
export function ago(date, now = new Date()) {
  const seconds = Math.max(0, (now - date) / 1000);
  for (const [unit, length] of UNITS) {
    if (seconds >= length) return relative.format(-Math.floor(seconds / length), unit);
  }
  return seconds < 10 ? "just now" : `${Math.floor(seconds)} seconds ago`;
}

/** The moment in the person's time zone. */
export function moment(date) {
  return exact.format(date);
}

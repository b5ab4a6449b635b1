/** Reads a pasted list of names. */

/** The server looks up as many at once. */
export const NAMES_AT_ONCE = 2000;

const BETWEEN_NAMES = /[\n\r\t;,\u2028\u2029]+/;
const QUOTES = /^["'“”„‟«»‘’‚‹›`]+|["'“”„‟«»‹›`‘‚]+$/g;
const NUMBERING = /^(?:\(?\d{1,5}[.):]\s*|\d{1,5}\s+(?=\p{L})|[-–—•*·‣◦]\s+|\[[ xX]?\]\s*)/u;
const NO_NAME = /^[\d\s.()[\]{}:/+–—-]*$/;

/**
 * The names of a list that is separated by lines, tabs, commas or semicolons, each once: without quotes, numbering
 * and bullets. Cells that hold no letter, such as a year or a count, are left out.
 * @param {string} text
 * @returns {string[]}
 */
export function parseNames(text) {
  const names = new Map();
  for (const part of text.split(BETWEEN_NAMES)) {
    const name = clean(part);
    if (name && !NO_NAME.test(name) && !names.has(name.toLowerCase())) names.set(name.toLowerCase(), name);
  }
  return [...names.values()];
}

/** Whether a text is a list of names rather than one name. */
export function isList(text) {
  return parseNames(text).length > 1;
}

function clean(part) {
  let name = part.trim().replace(/\s+/g, " ");
  let before;
  do {
    before = name;
    name = name.replace(QUOTES, "").replace(NUMBERING, "").trim();
  } while (name !== before);
  return name;
}

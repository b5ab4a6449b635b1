/** Relevance in the words that the page uses for it. */
const WORDS = { relevant: "Relevant", not_relevant: "Not relevant", unsure: "Unsure" };

/** @param {string|null} relevance @returns {string} e.g. "Not relevant"; "No label" for none */
export function inWords(relevance) {
  return WORDS[relevance] ?? "No label";
}

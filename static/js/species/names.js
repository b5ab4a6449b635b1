/** What became of a pasted list: how many were added, which names were not found, what they may mean. */
import { button, make } from "../dom.js";
import { counted, speciesName } from "../words.js";

export class Report {
  /**
   * @param {HTMLElement} root
   * @param {{add: (species: object[]) => void, closed: () => void}} options
   */
  constructor(root, { add, closed }) {
    this.root = root;
    this.addSpecies = add;
    this.closed = closed;
  }

  /**
   * @param {{names: number, found: number, added: number, missing: string[],
   *   suggestions: {name: string, species: object[]}[], outside?: object[]}} outcome
   */
  list({ names, found, added, missing, suggestions, outside = [] }) {
    const near = new Map(suggestions.map(({ name, species }) => [name, species]));
    const known = found - added;
    const sentences = [
      `${counted(names, "name")} read, ${counted(added, "species", "species")} added`,
      known ? `, ${known} chosen before.` : ".",
    ];
    const parts = [make("p", { text: sentences.join("") })];
    if (missing.length) {
      parts.push(
        make("p", { class: "picker-missing-head", text: `${counted(missing.length, "name")} not found:` }),
        make(
          "ul",
          { class: "picker-missing", tabindex: missing.length > 6 ? "0" : null },
          ...missing.map((name) => this.#missing(name, near.get(name))),
        ),
      );
    }
    if (outside.length) {
      const which = outside.map(speciesName).join(", ");
      parts.push(make("p", { text: `In the corpus, but not among these candidates: ${which}.` }));
    }
    this.#show(missing.length || outside.length ? "warning" : "success", parts);
  }

  /** A sentence, with something to do about it. */
  say(text, { kind = "info", action = null } = {}) {
    const run = () => {
      this.hide();
      action.run();
    };
    this.#show(kind, [make("p", { text }), action && button(action.label, run)]);
  }

  hide() {
    this.root.hidden = true;
    this.root.replaceChildren();
  }

  #missing(name, species = []) {
    const item = make("li", {}, make("span", { class: "picker-missing-name", text: name }));
    if (!species.length) return item;
    item.append(make("span", { class: "muted", text: "did you mean" }));
    for (const one of species) {
      const choose = () => {
        this.addSpecies([one]);
        const next = item.nextElementSibling ?? item.previousElementSibling;
        item.remove();
        (next?.querySelector("button") ?? this.root.querySelector(".picker-report-close"))?.focus();
      };
      item.append(button(speciesName(one), choose, { class: "button compact", title: one.scientific_name }));
    }
    return item;
  }

  #show(kind, parts) {
    this.root.className = `picker-report notice ${kind}`;
    const dismiss = () => {
      this.hide();
      this.closed();
    };
    const close = button("✕", dismiss, {
      class: "button quiet compact picker-report-close",
      "aria-label": "Remove this message",
    });
    this.root.replaceChildren(make("div", {}, ...parts), close);
    this.root.hidden = false;
  }
}

/** Reads a pasted list of names. */

/** The most names that the server looks up at once. */
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

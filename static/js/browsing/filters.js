/** The filters beside the grid: values with their numbers, ranges with small bars; the address holds what is chosen. */
import { api } from "../api.js";
import { button, make } from "../dom.js";
import { Picker } from "../species/picker.js";
import { CorpusSource } from "../species/source.js";
import { number } from "../words.js";

const OPEN = "images.filters";
const NONE = "none";
/** More values aren't counted. */
const MOST_VALUES = 50;
const QUIET = "button quiet compact";

/** What the address says of a filter; custom fields share a parameter, as `name:value`. */
export function valuesOf(parameters, { parameter, label }) {
  const prefix = parameter === "field" ? `${label}:` : "";
  const own = parameters.getAll(parameter).filter((text) => text.startsWith(prefix));
  return own.map((text) => text.slice(prefix.length));
}

/** Has the address say something else of a filter. */
export function setValues(parameters, { parameter, label }, values) {
  const prefix = parameter === "field" ? `${label}:` : "";
  const others = parameters.getAll(parameter).filter((text) => prefix && !text.startsWith(prefix));
  parameters.delete(parameter);
  for (const text of [...others, ...values.map((value) => prefix + value)]) parameters.append(parameter, text);
}

/** Events: "change", after the person changed a filter; "open", when one is to be counted that isn't. */
export class Filters extends EventTarget {
  /** @param {HTMLElement} root with a details element for each filter @param {object[]} filters @param {URLSearchParams} chosen */
  constructor(root, filters, chosen) {
    super();
    this.root = root;
    this.filters = filters;
    this.chosen = chosen;
    /** The values with their numbers, by key; null where there are too many images to count. */
    this.counts = new Map();
    this.asked = [];
    this.species = filters.find(({ key }) => key === "species");
    const remembered = JSON.parse(localStorage.getItem(OPEN) ?? "null") ?? ["dataset", "folder", "species"];
    for (const filter of filters) {
      const box = this.#box(filter);
      box.open = remembered.includes(filter.key) || valuesOf(chosen, filter).length > 0;
      box.addEventListener("toggle", () => {
        localStorage.setItem(OPEN, JSON.stringify(this.#opened));
        if (box.open && !this.asked.includes(filter.key)) this.dispatchEvent(new Event("open"));
      });
    }
    if (this.species) {
      this.source = new CorpusSource();
      this.picker = new Picker(root.querySelector("[data-picker]"), {
        source: this.source,
        changed: (ids) => this.quiet || this.#choose(this.species, [...ids.map(String), ...this.#noSpecies]),
      });
    }
    this.draw();
  }

  /** Takes what another address says. */
  read(chosen) {
    this.chosen = chosen;
    this.draw();
    this.#showSpecies();
  }

  /** Counts anew, for the filters that are open; resolves to the number of all matches, or null. */
  async count() {
    const by = this.#opened;
    this.asked = by;
    const parameters = new URLSearchParams(this.chosen);
    for (const key of by.length ? by : [""]) parameters.append("by", key);
    this.request?.abort();
    this.request = new AbortController();
    const { total, filters } = await api(`/api/images/counts/?${parameters}`, { signal: this.request.signal });
    this.counts = new Map(filters.map(({ key, values }) => [key, values]));
    this.draw();
    return total;
  }

  draw() {
    for (const filter of this.filters) {
      const box = this.#box(filter);
      const values = valuesOf(this.chosen, filter);
      const badge = box.querySelector("[data-number]");
      badge.textContent = values.length;
      badge.hidden = !values.length;
      const body = box.querySelector("[data-values]");
      const focused = body.contains(document.activeElement) ? document.activeElement.dataset.key : null;
      body.replaceChildren(...this.#body(filter, values, this.counts.get(filter.key)).filter(Boolean));
      if (focused) body.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
    }
  }

  /** A chip for each choice, which takes it out. */
  chips() {
    return this.filters.flatMap((filter) => {
      const values = valuesOf(this.chosen, filter);
      return values.map((value) => {
        const text = `${filter.label}: ${this.#words(filter, value)}`;
        const leave = () => this.#choose(filter, without(values, value));
        const cross = button("×", leave, { class: "chip-remove", "aria-label": `Remove the filter ${text}` });
        return make("li", { class: "chip" }, make("bdi", { text }), cross);
      });
    });
  }

  clear() {
    for (const filter of this.filters) setValues(this.chosen, filter, []);
    this.picker?.clear();
    this.#changed();
  }

  get #opened() {
    return this.filters.filter((filter) => this.#box(filter).open).map(({ key }) => key);
  }

  get #noSpecies() {
    return valuesOf(this.chosen, this.species).filter((value) => value === NONE);
  }

  #box(filter) {
    return this.root.querySelector(`[data-filter="${CSS.escape(filter.key)}"]`);
  }

  #choose(filter, values) {
    setValues(this.chosen, filter, values);
    if (filter === this.species) this.#showSpecies();
    this.#changed();
  }

  /** The picker's chips are the chosen species, however they were chosen. */
  async #showSpecies() {
    if (!this.species) return;
    const ids = without(valuesOf(this.chosen, this.species), NONE);
    for (const chip of this.picker.chips.items) if (!ids.includes(chip.dataset.id)) chip.remove();
    const missing = ids.map(Number).filter((id) => !this.picker.ids.includes(id));
    const species = await Promise.all(missing.map((id) => this.source.details(id)));
    this.quiet = true;
    if (species.length) this.picker.add(species);
    this.quiet = false;
  }

  #changed() {
    this.draw();
    this.dispatchEvent(new Event("change"));
  }

  #words(filter, value) {
    const known = this.counts.get(filter.key)?.find((one) => one.value === value);
    const chip = filter === this.species && this.root.querySelector(`.chip[data-id="${CSS.escape(value)}"] .chip-name`);
    if (chip) return chip.textContent.trim();
    if (isRange(filter)) return value === NONE ? "none" : inWords(value);
    return known?.label ?? (value === NONE || value === "" ? "none" : value);
  }

  #body(filter, chosen, counts) {
    const field = filter.shows === "text" ? this.#textField(filter, chosen) : null;
    if (isRange(filter))
      return [this.#bars(filter, counts ?? [], chosen), this.#rangeFields(filter, chosen), say(counts)];
    const isListed = filter.shows === "values" || filter.shows === "species";
    const missing = isListed ? chosen.filter((value) => !counts?.some((one) => one.value === value)) : [];
    const rows = [
      ...(counts ?? []),
      ...missing.map((value) => ({ value, label: this.#words(filter, value), count: 0 })),
    ];
    const most = Math.max(1, ...rows.map(({ count }) => count));
    const list = rows.map((row) => this.#row(filter, row, chosen, most));
    return [
      filter.shows === "folders" && chosen[0] ? this.#way(filter, chosen[0].split("/")) : null,
      field,
      rows.length ? make("ul", { class: "filter-values" }, ...list) : null,
      say(counts, rows.length),
    ];
  }

  #row(filter, { value, label, count }, chosen, most) {
    const isOne = filter.shows === "folders" || filter.shows === "text";
    const isChosen = chosen.includes(value);
    const others = isOne ? [] : without(chosen, value);
    const row = button("", () => this.#choose(filter, isChosen ? others : [...others, value]), {
      class: "filter-value",
      "data-key": value,
      "aria-pressed": String(isChosen),
    });
    row.append(make("bdi", { text: label }), make("span", { class: "muted numeric", text: number(count) }));
    row.style.setProperty("--share", `${(100 * count) / most}%`);
    return make("li", {}, row);
  }

  /** The folders above the chosen one. */
  #way(filter, names) {
    const to = (depth) => () => this.#choose(filter, depth ? [names.slice(0, depth).join("/")] : []);
    const steps = ["All", ...names.slice(0, -1)].map((name, depth) => button(name, to(depth), { class: QUIET }));
    return make("div", { class: "row filter-way" }, ...steps, make("strong", { text: names.at(-1) }));
  }

  #textField(filter, [value = ""]) {
    const change = ({ target }) => this.#choose(filter, target.value.trim() ? [target.value.trim()] : []);
    const label = `Part of: ${filter.label}`;
    return make("input", { type: "search", value, "data-key": "text", "aria-label": label, on: { change } });
  }

  #rangeFields(filter, [value = ""]) {
    const type = filter.shows === "dates" ? "date" : "number";
    const known = value === NONE ? [] : value.split("..");
    const ends = ["from", "to"].map((key, index) =>
      make("input", {
        type,
        step: "any",
        value: known[index],
        "data-key": key,
        "aria-label": `${filter.label} ${key}`,
      }),
    );
    const change = () => {
      const [from, to] = ends.map((end) => end.value);
      this.#choose(filter, from || to ? [`${from}..${to}`] : []);
    };
    const isWithout = value === NONE;
    const none = button("Without", () => this.#choose(filter, isWithout ? [] : [NONE]), {
      class: QUIET,
      "data-key": NONE,
      "aria-pressed": String(isWithout),
    });
    return make("div", { class: "filter-range", on: { change } }, ...ends, none);
  }

  /** For the mouse alone: the fields below do the same. */
  #bars(filter, bins, chosen) {
    if (!bins.length) return null;
    const most = Math.max(1, ...bins.map(({ count }) => count));
    const bars = bins.map(({ value, count }) => {
      const bar = make("div", {
        class: chosen.includes(value) ? "chosen" : null,
        title: `${inWords(value)}: ${number(count)}`,
        on: { click: () => count && this.#choose(filter, chosen.includes(value) ? [] : [value]) },
      });
      bar.style.setProperty("--share", `${(100 * count) / most}%`);
      return bar;
    });
    const ends = [bins[0].value.split("..")[0], bins.at(-1).value.split("..")[1]];
    const below = ends.map((text) => make("span", { text: inWords(text) }));
    return make(
      "div",
      { "aria-hidden": "true" },
      make("div", { class: "filter-bars" }, ...bars),
      make("div", { class: "filter-ends small muted" }, ...below),
    );
  }
}

function isRange({ shows }) {
  return shows === "numbers" || shows === "dates";
}

function without(values, value) {
  return values.filter((one) => one !== value);
}

/** What is to be said of counts. */
function say(counts, length = counts?.length) {
  if (counts === undefined) return null;
  let text = length ? "" : "Nothing is known.";
  if (counts === null) text = "Too many images to count by this.";
  else if (length >= MOST_VALUES) text = "The most frequent ones.";
  return text && make("p", { class: "small muted", text });
}

/** "2 – 4.5" for "2..4.500000000001"; days as they are. */
function inWords(range) {
  const ends = range.split("..");
  const texts = ends.map((end) => (end && !Number.isNaN(Number(end)) ? Number(Number(end).toPrecision(5)) : end));
  return (texts[0] === texts[1] ? String(texts[0]) : texts.join(" – ")).trim();
}

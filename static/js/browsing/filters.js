/** The filters beside the grid: values with their numbers, ranges with small bars; the address holds what is chosen. */
import { api } from "../api.js";
import { button, make } from "../dom.js";
import { Picker } from "../species/picker.js";
import { CorpusSource } from "../species/source.js";
import { number } from "../words.js";

const OPEN = "images.filters";
const NONE = "none";

/** What is chosen, as the parameters of the address; custom fields share one of them, as `name:value`. */
export class Chosen {
  constructor(search) {
    this.parameters = new URLSearchParams(search);
  }

  /** @param {{parameter: string, label: string, key: string}} filter */
  values(filter) {
    const all = this.parameters.getAll(filter.parameter);
    if (filter.parameter !== "field") return all;
    return all.filter((text) => text.startsWith(`${filter.label}:`)).map((text) => text.slice(filter.label.length + 1));
  }

  set(filter, values) {
    const others = this.parameters.getAll(filter.parameter);
    const isField = filter.parameter === "field";
    const kept = isField ? others.filter((text) => !text.startsWith(`${filter.label}:`)) : [];
    this.parameters.delete(filter.parameter);
    for (const text of kept) this.parameters.append(filter.parameter, text);
    for (const value of values) this.parameters.append(filter.parameter, isField ? `${filter.label}:${value}` : value);
  }

  toString() {
    return this.parameters.toString();
  }
}

/** Events: "change", after the person changed a filter; "open", when one is to be counted that isn't. */
export class Filters extends EventTarget {
  /** @param {HTMLElement} root with a details element for each filter @param {object[]} filters @param {Chosen} chosen */
  constructor(root, filters, chosen) {
    super();
    this.root = root;
    this.filters = filters;
    this.chosen = chosen;
    this.counts = new Map();
    this.asked = new Set();
    const remembered = JSON.parse(localStorage.getItem(OPEN) ?? "null") ?? ["dataset", "folder", "species"];
    for (const filter of filters) {
      const box = this.#box(filter);
      box.open = remembered.includes(filter.key) || chosen.values(filter).length > 0;
      box.addEventListener("toggle", () => {
        const open = filters.filter((one) => this.#box(one).open).map(({ key }) => key);
        localStorage.setItem(OPEN, JSON.stringify(open));
        if (box.open && !this.asked.has(filter.key)) this.dispatchEvent(new Event("open"));
      });
    }
    const picker = root.querySelector("[data-picker]");
    if (picker) this.#listenToPicker(picker);
    this.draw();
  }

  /** Takes what another address says. */
  async read(chosen) {
    this.chosen = chosen;
    this.draw();
    const species = this.filters.find(({ key }) => key === "species");
    if (!this.picker || !species) return;
    const ids = chosen.values(species).filter((id) => id !== NONE);
    this.quiet = true;
    this.picker.clear();
    this.picker.add(await Promise.all(ids.map((id) => this.source.details(Number(id)))));
    this.quiet = false;
  }

  /** Counts anew, for the filters that are open; resolves to the number of all matches, or null. */
  async count() {
    const by = this.filters.filter((filter) => this.#box(filter).open).map(({ key }) => key);
    const parameters = new URLSearchParams(this.chosen.parameters);
    for (const key of by.length ? by : [""]) parameters.append("by", key);
    this.asked = new Set(by);
    this.request?.abort();
    this.request = new AbortController();
    const { total, filters } = await api(`/api/images/counts/?${parameters}`, { signal: this.request.signal });
    this.counts = new Map(filters.map((one) => [one.key, one]));
    this.draw();
    return total;
  }

  draw() {
    for (const filter of this.filters) {
      const box = this.#box(filter);
      const values = this.chosen.values(filter);
      const badge = box.querySelector("[data-number]");
      badge.textContent = values.length;
      badge.hidden = !values.length;
      const body = box.querySelector("[data-values]");
      const focused = body.contains(document.activeElement) ? document.activeElement.dataset.key : null;
      body.replaceChildren(...this.#body(filter, values, this.counts.get(filter.key)));
      if (focused) body.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
    }
  }

  /** A chip for each choice, which takes it out. */
  chips() {
    return this.filters.flatMap((filter) =>
      this.chosen.values(filter).map((value) => {
        const text = `${filter.label}: ${this.#words(filter, value)}`;
        const out = () =>
          this.#choose(
            filter,
            this.chosen.values(filter).filter((one) => one !== value),
          );
        return make(
          "li",
          { class: "filter-chip" },
          make("bdi", { text }),
          button("×", out, { class: "chip-remove", "aria-label": `Remove the filter ${text}` }),
        );
      }),
    );
  }

  clear() {
    for (const filter of this.filters) this.chosen.set(filter, []);
    this.picker?.clear();
    this.#changed();
  }

  #box(filter) {
    return this.root.querySelector(`[data-filter="${CSS.escape(filter.key)}"]`);
  }

  #listenToPicker(root) {
    this.source = new CorpusSource();
    const species = this.filters.find(({ key }) => key === "species");
    this.picker = new Picker(root, {
      source: this.source,
      changed: (ids) => {
        if (this.quiet) return;
        const none = this.chosen.values(species).filter((value) => value === NONE);
        this.#choose(species, [...ids.map(String), ...none]);
      },
    });
  }

  #choose(filter, values) {
    this.chosen.set(filter, values);
    if (filter.key === "species") this.#keepChips(values);
    this.#changed();
  }

  /** The picker's chips go with what is chosen elsewhere. */
  #keepChips(values) {
    for (const chip of this.picker?.chips.items ?? []) if (!values.includes(chip.dataset.id)) chip.remove();
    const missing = values.filter((id) => id !== NONE && !this.picker.ids.includes(Number(id)));
    Promise.all(missing.map((id) => this.source.details(Number(id)))).then((species) => {
      this.quiet = true;
      if (species.length) this.picker.add(species);
      this.quiet = false;
    });
  }

  #changed() {
    this.draw();
    this.dispatchEvent(new Event("change"));
  }

  #words(filter, value) {
    const known = this.counts.get(filter.key)?.values.find((one) => one.value === value);
    if (known) return known.label;
    const chip = this.root.querySelector(`.chip[data-id="${CSS.escape(value)}"] .chip-name`);
    if (filter.key === "species" && chip) return chip.textContent.trim();
    if (value === NONE || value === "") return "none";
    return filter.shows === "numbers" || filter.shows === "dates" ? inWords(value) : value;
  }

  #body(filter, chosen, counts) {
    if (counts && !counts.counted) return [...this.#input(filter, chosen), note("Too many images to count by this.")];
    const bars = counts?.bins.length ? [this.#bars(filter, counts.bins, chosen)] : [];
    const values = counts?.values ?? [];
    const missing = chosen.filter((value) => !values.some((one) => one.value === value));
    const isListed = filter.shows === "values" || filter.shows === "species";
    const rows = [
      ...values,
      ...(isListed ? missing.map((value) => ({ value, label: this.#words(filter, value), count: 0 })) : []),
    ];
    const most = Math.max(1, ...rows.map(({ count }) => count));
    return [
      ...(filter.shows === "folders" ? this.#way(filter, chosen[0] ?? "") : []),
      ...bars,
      ...this.#input(filter, chosen),
      rows.length
        ? make("ul", { class: "filter-values" }, ...rows.map((row) => this.#row(filter, row, chosen, most)))
        : null,
      counts?.more ? note("The most frequent ones.") : null,
      counts && !rows.length && !bars.length ? note(chosen.length ? "No more of it." : "Nothing is known.") : null,
    ].filter(Boolean);
  }

  #row(filter, { value, label, count }, chosen, most) {
    const isOne = filter.shows === "folders" || filter.shows === "text" || filter.key === "location";
    const isChosen = chosen.includes(value);
    const choose = () => {
      const others = isOne ? [] : chosen.filter((one) => one !== value);
      this.#choose(filter, isChosen ? others : [...others, value]);
    };
    const name = make("bdi", { class: "filter-name", text: label || "Without" });
    const numbers = make("span", { class: "filter-number", text: number(count) });
    const attributes = { type: "button", class: "filter-value", "data-key": value, "aria-pressed": String(isChosen) };
    const row = make("button", { ...attributes, on: { click: choose } }, name, numbers);
    row.style.setProperty("--share", `${(100 * count) / most}%`);
    return make("li", {}, row);
  }

  /** The folders above the chosen one. */
  #way(filter, folder) {
    if (!folder) return [];
    const names = folder.split("/");
    const to = (depth) => () => this.#choose(filter, depth ? [names.slice(0, depth).join("/")] : []);
    const steps = [button("All", to(0), { class: "button quiet compact" })];
    names.slice(0, -1).forEach((name, index) => {
      steps.push(button(name, to(index + 1), { class: "button quiet compact" }));
    });
    return [make("div", { class: "filter-way" }, ...steps, make("strong", { text: names.at(-1) }))];
  }

  /** Fields for a range or a text. */
  #input(filter, chosen) {
    const [value = ""] = chosen;
    if (filter.shows === "text") {
      const change = ({ target }) => this.#choose(filter, target.value.trim() ? [target.value.trim()] : []);
      const label = `Part of: ${filter.label}`;
      return [make("input", { type: "search", value, "data-key": "text", "aria-label": label, on: { change } })];
    }
    if (filter.shows !== "numbers" && filter.shows !== "dates") return [];
    const [low = "", high = ""] = value === NONE ? [] : value.split("..");
    const type = filter.shows === "dates" ? "date" : "number";
    const ends = [
      ["from", low],
      ["to", high],
    ].map(([key, end]) =>
      make("input", { type, step: "any", value: end, "data-key": key, "aria-label": `${filter.label} ${key}` }),
    );
    const change = () => {
      const [from, to] = ends.map((end) => end.value);
      this.#choose(filter, from || to ? [`${from}..${to}`] : []);
    };
    const without = button("Without", () => this.#choose(filter, value === NONE ? [] : [NONE]), {
      class: "button quiet compact",
      "data-key": NONE,
      "aria-pressed": String(value === NONE),
    });
    return [make("div", { class: "filter-range", on: { change } }, ...ends, without)];
  }

  /** For the mouse alone: the fields below do the same. */
  #bars(filter, bins, chosen) {
    const most = Math.max(1, ...bins.map(({ count }) => count));
    const bars = bins.map(({ start, end, count }) => {
      const range = `${start}..${end}`;
      const bar = make("div", {
        class: chosen.includes(range) ? "chosen" : null,
        title: `${inWords(range)}: ${number(count)}`,
        on: { click: () => count && this.#choose(filter, chosen.includes(range) ? [] : [range]) },
      });
      bar.style.setProperty("--share", `${(100 * count) / most}%`);
      return bar;
    });
    const ends = [inWords(`${bins[0].start}..`), inWords(`..${bins.at(-1).end}`)];
    return make(
      "div",
      { "aria-hidden": "true" },
      make("div", { class: "filter-bars" }, ...bars),
      make("div", { class: "filter-ends" }, ...ends.map((text) => make("span", { text: text.replace(/ –|– /, "") }))),
    );
  }
}

function note(text) {
  return make("p", { class: "small muted", text });
}

/** "2 – 4.5" for "2..4.500000000001"; days as they are. */
function inWords(range) {
  return range
    .split("..")
    .map((end) => (end && !Number.isNaN(Number(end)) ? String(Number(Number(end).toPrecision(5))) : end))
    .join(" – ")
    .trim();
}

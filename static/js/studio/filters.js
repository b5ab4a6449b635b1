/**
 * Filters narrow which candidates of the list are shown: by one's own label, flags, species, date, month, place and
 * license. The server answers which ranks match; the stop rule always counts the whole list.
 */
import { api } from "../api.js";
import { button, make } from "../dom.js";
import { Picker } from "../species/picker.js";
import { CandidatesSource, CorpusSource } from "../species/source.js";
import { counted, trouble } from "../words.js";
import { boxInWords, MapBox } from "./map-box.js";

const WAIT = 150;
/** The most species that the server lists; where there are as many, there may be more. */
const MOST_SPECIES = 200;
const MONTHS = Array.from({ length: 12 }, (_, index) =>
  new Date(Date.UTC(2001, index, 1)).toLocaleDateString("en", { month: "long", timeZone: "UTC" }),
);
const JUDGED_WORDS = {
  yes: "labeled by you",
  no: "not labeled by you",
  relevant: "relevant by your label",
  not_relevant: "not relevant by your label",
  unsure: "unsure by your label",
};
/** No filter at all. */
export const NOTHING = {
  judged: "",
  flagged: "",
  species: [],
  from: "",
  to: "",
  months: [],
  box: null,
  licenses: [],
};

/** @typedef {typeof NOTHING} Choice */

/**
 * The parameters of the server's filter. Whether something is judged is filtered here: the page also knows what waits
 * to be sent.
 * @param {Choice} choice
 */
export function parametersOf({ flagged, species, from, to, months, box, licenses }) {
  const parameters = new URLSearchParams();
  if (flagged) parameters.append("flagged", flagged);
  for (const id of species) parameters.append("species", id);
  if (from) parameters.append("date_from", from);
  if (to) parameters.append("date_to", to);
  for (const month of months) parameters.append("month", month);
  if (box) parameters.append("bbox", [box.west, box.south, box.east, box.north].join(","));
  for (const license of licenses) parameters.append("license", license);
  return parameters;
}

/** The filters in words, one phrase for each; empty without any. @param {Choice} choice @returns {string[]} */
export function inWords({ judged, flagged, species, from, to, months, box, licenses }) {
  return [
    JUDGED_WORDS[judged],
    { yes: "flagged", no: "not flagged" }[flagged],
    species.length && counted(species.length, "species", "species"),
    from && to ? `${from} to ${to}` : from ? `since ${from}` : to && `until ${to}`,
    months.map((month) => MONTHS[month - 1]).join(", "),
    box && boxInWords(box),
    licenses.map((license) => license || "license not given").join(" or "),
  ].filter(Boolean);
}

/** @param {Studio} studio */
export function mount(studio) {
  const root = studio.root.querySelector("[data-filters]");
  if (root) new Filters(studio, root).start();
}

class Filters {
  constructor(studio, root) {
    this.studio = studio;
    this.root = root;
    this.part = (name) => root.querySelector(`[data-filters-${name}]`);
    this.openers = studio.root.querySelectorAll('[data-do="filters"]');
    this.count = this.part("count");
    this.bar = studio.root.querySelector("[data-filters-bar]");
    this.clearButtons = studio.root.querySelectorAll("[data-filters-clear]");
    this.chosen = { ...NOTHING };
    this.place = 1;
    /** The rank before the filters moved it; null once something was labeled since. */
    this.home = null;
  }

  start() {
    const { studio, root } = this;
    studio.action("filters", () => (root.hidden ? this.open() : this.close()));
    this.part("close").addEventListener("click", () => this.close());
    for (const button of this.clearButtons) button.addEventListener("click", () => this.clear());
    this.bar.querySelector("[data-filters-change]").addEventListener("click", () => this.open());
    root.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.defaultPrevented) return;
      event.preventDefault();
      this.close();
    });
    for (const opener of this.openers) {
      opener.setAttribute("aria-expanded", "false");
      opener.setAttribute("aria-controls", root.id);
    }
    this.#controls();
    studio.on("matching", () => this.#matchingChanged());
    studio.on("list", () => {
      this.facets = null;
      if (!root.hidden) this.#loadFacets();
      if (this.active) this.#apply();
    });
    studio.on("ready", () => this.#showCount());
    studio.on("labels", () => {
      this.home = null;
      if (this.chosen.judged) this.#showCount();
    });
  }

  get active() {
    return inWords(this.chosen).length > 0;
  }

  open() {
    if (!this.root.hidden) {
      this.root.querySelector("h2").focus();
      return;
    }
    this.before = document.activeElement;
    this.root.hidden = false;
    for (const opener of this.openers) opener.setAttribute("aria-expanded", "true");
    this.#showCount();
    this.root.querySelector("h2").focus();
    if (!this.facets) this.#loadFacets();
  }

  close() {
    this.root.hidden = true;
    for (const opener of this.openers) opener.setAttribute("aria-expanded", "false");
    const back = this.before?.isConnected && this.before !== document.body ? this.before : this.openers[0];
    back?.focus({ preventScroll: true });
  }

  #controls() {
    for (const name of ["judged", "flagged"]) {
      for (const radio of this.root.querySelectorAll(`[name="filter-${name}"]`)) {
        radio.addEventListener("change", () => this.#choose({ [name]: radio.value }));
      }
    }
    for (const [name, field] of [
      ["from", "from"],
      ["to", "to"],
    ]) {
      this.part(field).addEventListener("input", ({ target }) => this.#choose({ [name]: target.value }));
    }
    this.part("months").append(...MONTHS.map((month, index) => this.#monthButton(month, index + 1)));
    this.map = new MapBox(this.root.querySelector("[data-map-box]"), { changed: (box) => this.#choose({ box }) });
    const species = this.part("species");
    if (species) {
      this.picker = new Picker(species.querySelector("[data-picker]"), {
        changed: (ids) => this.#choose({ species: ids }),
      });
    }
  }

  #monthButton(month, index) {
    const toggle = ({ currentTarget }) => {
      const on = currentTarget.getAttribute("aria-pressed") !== "true";
      currentTarget.setAttribute("aria-pressed", String(on));
      const others = this.chosen.months.filter((month) => month !== index);
      this.#choose({ months: (on ? [...others, index] : others).sort((a, b) => a - b) });
    };
    return button(month.slice(0, 3), toggle, {
      class: "button filters-month",
      "aria-pressed": "false",
      "aria-label": month,
      "data-month": index,
    });
  }

  async #loadFacets() {
    try {
      this.facets = await api(`${this.studio.api}facets/`);
    } catch (error) {
      this.#problem(trouble(error, "The filters' counts could not be loaded."));
      return;
    }
    const { licenses, species, dates, with_place: placed } = this.facets;
    const list = this.part("license-list");
    list.replaceChildren(...licenses.map((license) => this.#licenseBox(license)));
    this.part("licenses").hidden = !licenses.length;
    for (const name of ["from", "to"]) {
      this.part(name).min = dates.first ?? "";
      this.part(name).max = dates.last ?? "";
    }
    this.part("span").textContent = dates.first
      ? `From ${dates.first} to ${dates.last}; images without a date match no date.`
      : "No image in the list has a date.";
    this.root.querySelector("[data-map-hint]").textContent = `${counted(placed, "candidate")} ${
      placed === 1 ? "has" : "have"
    } a location; the others match no box.`;
    if (this.picker) {
      this.picker.source = species.length < MOST_SPECIES ? new CandidatesSource(species) : new CorpusSource();
    }
  }

  #licenseBox({ value, count }) {
    const box = make("input", { type: "checkbox", value, checked: this.chosen.licenses.includes(value) });
    box.addEventListener("change", () => {
      const boxes = [...this.part("license-list").querySelectorAll("input:checked")];
      this.#choose({ licenses: boxes.map((box) => box.value) });
    });
    return make(
      "label",
      { class: "filters-license" },
      box,
      make("span", { text: value || "Not given" }),
      make("span", { class: "muted", text: count.toLocaleString("en") }),
    );
  }

  #choose(change) {
    this.chosen = { ...this.chosen, ...change };
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#apply(), WAIT);
  }

  async #apply() {
    clearTimeout(this.timer);
    this.request?.abort();
    if (!this.active) {
      this.#show(null);
      return;
    }
    const request = new AbortController();
    this.request = request;
    const chosen = this.chosen;
    try {
      const ranks = await this.#passing(parametersOf(chosen), request.signal);
      if (this.request === request) this.#show(ranks.filter((rank) => this.#judgedAs(rank, chosen.judged)));
    } catch (error) {
      if (error.name === "AbortError" || this.request !== request) return;
      this.#problem(error.errors?.[0]?.detail ?? trouble(error, "The images shown have not changed."));
    }
  }

  async #passing(parameters, signal) {
    const { api: base, store } = this.studio;
    if (![...parameters.keys()].length) return Array.from({ length: store.size }, (_, place) => place + 1);
    return (await api(`${base}matching/?${parameters}`, { signal })).ranks;
  }

  #judgedAs(rank, judged) {
    const relevance = this.studio.store.entry(rank)?.relevance ?? null;
    if (judged === "yes") return relevance !== null;
    if (judged === "no") return relevance === null;
    return !judged || relevance === judged;
  }

  #show(ranks) {
    const { studio } = this;
    if (studio.state === "ready") this.place = studio.rank;
    if (studio.store.matching === null && ranks !== null) this.home = studio.rank;
    this.setting = true;
    studio.store.setMatching(ranks);
    this.setting = false;
    this.#showCount();
    if (ranks === null && this.home !== null) studio.go(this.home);
    // After a filter without matches, back to the last place.
    else if (studio.state === "end" && studio.store.next(0) !== null) studio.toNextUnlabeled(this.place);
  }

  /** Somebody else showed the whole list again, or the list is another one. */
  #matchingChanged() {
    if (this.setting) return;
    if (this.studio.store.matching === null && this.active) this.#reset();
    this.#showCount();
  }

  clear() {
    const inBar = this.bar.contains(document.activeElement);
    this.#reset();
    this.#apply();
    if (inBar) this.openers[0]?.focus({ preventScroll: true });
  }

  #reset() {
    this.chosen = { ...NOTHING };
    for (const name of ["judged", "flagged"]) {
      this.root.querySelector(`[name="filter-${name}"][value=""]`).checked = true;
    }
    for (const name of ["from", "to"]) this.part(name).value = "";
    for (const button of this.part("months").children) button.setAttribute("aria-pressed", "false");
    for (const box of this.part("license-list").querySelectorAll("input")) box.checked = false;
    this.map.set(null);
    this.picker?.clear();
    clearTimeout(this.timer);
    this.chosen = { ...NOTHING };
  }

  #problem(text) {
    this.count.textContent = text;
    this.count.classList.add("problem");
  }

  /** Says how many are shown, in the panel and over the stage. */
  #showCount() {
    const { store, root } = this.studio;
    const all = store.progress.candidates;
    const narrowed = store.matching !== null;
    // Images labeled since then stay reachable, but no longer match.
    const passing = (rank) => this.#judgedAs(rank, this.chosen.judged);
    const shown = narrowed ? store.visibleRanks(1, store.size).filter(passing).length : all;
    let text = `All ${counted(all, "candidate")} shown`;
    if (narrowed) text = `${shown.toLocaleString("en")} of ${counted(all, "candidate")} shown`;
    if (!shown) text = "No candidate matches the filters";
    this.count.classList.remove("problem");
    this.count.textContent = text;
    const words = `${text}: ${inWords(this.chosen).join("; ")}`;
    const node = this.bar.querySelector("[data-filters-words]");
    node.textContent = words;
    node.title = words;
    this.bar.hidden = !narrowed;
    root.toggleAttribute("data-filtered", narrowed);
    this.root.querySelector("[data-filters-clear]").disabled = !this.active;
  }
}

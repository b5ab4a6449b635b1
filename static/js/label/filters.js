/**
 * Filters narrow which candidates of the list are shown: by one's own label, flags, species, date, month, place and
 * licence. The server tells which ranks pass; what the stop rule counts stays the whole list.
 */
import { api } from "../api.js";
import { Picker } from "../species/picker.js";
import { CandidatesSource, CorpusSource } from "../species/source.js";
import { boxInWords, MapBox } from "./map-box.js";
import { counted, make, trouble } from "./panel-tools.js";

const WAIT = 150;
/** The server names so many of a list's species; where there are as many, there may be more. */
const MOST_SPECIES = 200;
const MONTHS = Array.from({ length: 12 }, (_, index) =>
  new Date(Date.UTC(2001, index, 1)).toLocaleDateString("en", { month: "long", timeZone: "UTC" }),
);
const NOTHING = {
  judged: "",
  flagged: "",
  species: [],
  from: "",
  to: "",
  months: [],
  box: null,
  licences: [],
};

/** @typedef {typeof NOTHING} Wanted */

/**
 * What the server is asked. Whether something is judged is not: the page knows it better, with what waits to be sent.
 * @param {Wanted} wanted
 */
export function parametersOf({ flagged, species, from, to, months, box, licences }) {
  const asked = new URLSearchParams();
  if (flagged) asked.append("flagged", flagged);
  for (const id of species) asked.append("species", id);
  if (from) asked.append("date_from", from);
  if (to) asked.append("date_to", to);
  for (const month of months) asked.append("month", month);
  if (box) asked.append("bbox", [box.west, box.south, box.east, box.north].join(","));
  for (const licence of licences) asked.append("license", licence);
  return asked;
}

/** The filters in words, one phrase for each; empty without any. @param {Wanted} wanted @returns {string[]} */
export function inWords({ judged, flagged, species, from, to, months, box, licences }) {
  return [
    { yes: "labelled by you", no: "not labelled by you" }[judged],
    { yes: "flagged", no: "not flagged" }[flagged],
    species.length && counted(species.length, "species", "species"),
    from && to ? `${from} to ${to}` : from ? `since ${from}` : to && `until ${to}`,
    months.map((month) => MONTHS[month - 1]).join(", "),
    box && boxInWords(box),
    licences.map((licence) => licence || "licence not given").join(" or "),
  ].filter(Boolean);
}

/** @param {import("./studio.js").Studio} studio */
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
    this.wanted = { ...NOTHING };
    this.place = 1;
    /** Where one was before filters moved the place; null once something was labelled since. */
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
    studio.on("ready", () => this.#told());
    studio.on("labels", () => {
      this.home = null;
      if (this.wanted.judged) this.#told();
    });
  }

  get active() {
    return inWords(this.wanted).length > 0;
  }

  open() {
    if (!this.root.hidden) {
      this.root.querySelector("h2").focus();
      return;
    }
    this.before = document.activeElement;
    this.root.hidden = false;
    for (const opener of this.openers) opener.setAttribute("aria-expanded", "true");
    this.#told();
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
        radio.addEventListener("change", () => this.#want({ [name]: radio.value }));
      }
    }
    for (const [name, field] of [["from", "from"], ["to", "to"]]) {
      this.part(field).addEventListener("input", ({ target }) => this.#want({ [name]: target.value }));
    }
    this.part("months").append(...MONTHS.map((month, index) => this.#monthButton(month, index + 1)));
    this.map = new MapBox(this.root.querySelector("[data-map-box]"), { changed: (box) => this.#want({ box }) });
    const species = this.part("species");
    if (species) {
      this.picker = new Picker(species.querySelector("[data-picker]"), {
        changed: (ids) => this.#want({ species: ids }),
      });
    }
  }

  #monthButton(month, number) {
    return make("button", {
      type: "button",
      class: "filters-month",
      "aria-pressed": "false",
      "aria-label": month,
      "data-month": number,
      text: month.slice(0, 3),
      on: {
        click: ({ currentTarget }) => {
          const on = currentTarget.getAttribute("aria-pressed") !== "true";
          currentTarget.setAttribute("aria-pressed", String(on));
          const others = this.wanted.months.filter((one) => one !== number);
          this.#want({ months: (on ? [...others, number] : others).sort((a, b) => a - b) });
        },
      },
    });
  }

  async #loadFacets() {
    try {
      this.facets = await api(`${this.studio.api}facets/`);
    } catch (error) {
      this.#problem(trouble(error, "The filters' counts can't be shown."));
      return;
    }
    const { licenses, species, dates, with_place: placed } = this.facets;
    const list = this.part("licence-list");
    list.replaceChildren(...licenses.map((licence) => this.#licenceBox(licence)));
    this.part("licences").hidden = !licenses.length;
    for (const name of ["from", "to"]) {
      this.part(name).min = dates.first ?? "";
      this.part(name).max = dates.last ?? "";
    }
    this.part("span").textContent = dates.first
      ? `The pictures are from ${dates.first} to ${dates.last}; those without a date pass no filter of dates.`
      : "No picture of the list has a date.";
    this.root.querySelector("[data-map-hint]").textContent = `${counted(placed, "candidate")} ${
      placed === 1 ? "has" : "have"
    } a place; the others pass no box.`;
    if (this.picker) {
      this.picker.source = species.length < MOST_SPECIES ? new CandidatesSource(species) : new CorpusSource();
    }
  }

  #licenceBox({ value, count }) {
    const box = make("input", { type: "checkbox", value, checked: this.wanted.licences.includes(value) });
    box.addEventListener("change", () => {
      const boxes = [...this.part("licence-list").querySelectorAll("input:checked")];
      this.#want({ licences: boxes.map((one) => one.value) });
    });
    return make(
      "label",
      { class: "filters-licence" },
      box,
      make("span", { text: value || "Not given" }),
      make("span", { class: "muted", text: count.toLocaleString("en") }),
    );
  }

  #want(change) {
    this.wanted = { ...this.wanted, ...change };
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
    const wanted = this.wanted;
    try {
      const ranks = await this.#passing(parametersOf(wanted), request.signal);
      if (this.request === request) this.#show(ranks.filter((rank) => this.#judgedAs(rank, wanted.judged)));
    } catch (error) {
      if (error.name === "AbortError" || this.request !== request) return;
      this.#problem(error.errors?.[0]?.detail ?? trouble(error, "What is shown stays as it was."));
    }
  }

  async #passing(asked, signal) {
    const { api: base, store } = this.studio;
    if (![...asked.keys()].length) return Array.from({ length: store.size }, (_, place) => place + 1);
    return (await api(`${base}matching/?${asked}`, { signal })).ranks;
  }

  #judgedAs(rank, judged) {
    if (!judged) return true;
    return Boolean(this.studio.store.entry(rank)?.relevance) === (judged === "yes");
  }

  #show(ranks) {
    const { studio } = this;
    if (studio.state === "ready") this.place = studio.rank;
    if (studio.store.matching === null && ranks !== null) this.home = studio.rank;
    this.setting = true;
    studio.store.setMatching(ranks);
    this.setting = false;
    this.#told();
    if (ranks === null && this.home !== null) studio.go(this.home);
    // After a filter that nothing passed, back to where one was.
    else if (studio.state === "end" && studio.store.next(0) !== null) studio.toNextUnlabelled(this.place);
  }

  /** Somebody else showed the whole list again, or the list is another one. */
  #matchingChanged() {
    if (this.setting) return;
    if (this.studio.store.matching === null && this.active) this.#reset();
    this.#told();
  }

  clear() {
    const inBar = this.bar.contains(document.activeElement);
    this.#reset();
    this.#apply();
    if (inBar) this.openers[0]?.focus({ preventScroll: true });
  }

  #reset() {
    this.wanted = { ...NOTHING };
    for (const name of ["judged", "flagged"]) {
      this.root.querySelector(`[name="filter-${name}"][value=""]`).checked = true;
    }
    for (const name of ["from", "to"]) this.part(name).value = "";
    for (const button of this.part("months").children) button.setAttribute("aria-pressed", "false");
    for (const box of this.part("licence-list").querySelectorAll("input")) box.checked = false;
    this.map.set(null);
    this.picker?.clear();
    clearTimeout(this.timer);
    this.wanted = { ...NOTHING };
  }

  #problem(text) {
    this.count.textContent = text;
    this.count.classList.add("problem");
  }

  /** Says how many are shown, in the panel and over the stage. */
  #told() {
    const { store, root } = this.studio;
    const all = store.progress.candidates;
    const narrowed = store.matching !== null;
    // What was labelled since stays in its place, so that one can go back to it, but passes no longer.
    const passing = (rank) => this.#judgedAs(rank, this.wanted.judged);
    const shown = narrowed ? store.visibleRanks(1, store.size).filter(passing).length : all;
    let text = `All ${counted(all, "candidate")} shown`;
    if (narrowed) text = `${shown.toLocaleString("en")} of ${counted(all, "candidate")} shown`;
    if (!shown) text = "No candidate passes the filters";
    this.count.classList.remove("problem");
    this.count.textContent = text;
    const words = `${text}: ${inWords(this.wanted).join("; ")}`;
    const node = this.bar.querySelector("[data-filters-words]");
    node.textContent = words;
    node.title = words;
    this.bar.hidden = !narrowed;
    root.toggleAttribute("data-filtered", narrowed);
    this.root.querySelector("[data-filters-clear]").disabled = !this.active;
  }
}

/** The page of the images: results while one types and filters, their grid, and what is done with a selection. */
import { api } from "../api.js";
import { button, make } from "../dom.js";
import { counted, number } from "../words.js";
import { Actions } from "./actions.js";
import { Filters, valuesOf } from "./filters.js";
import { Grid } from "./grid.js";
import { Matches, matchesAddress, STRETCH } from "./matches.js";
import { SavedFilters } from "./saved.js";
import { Selection } from "./selection.js";

/** After the last key, in milliseconds. */
const TYPED = 150;
/** Until a slow search is shown as slow. */
const SLOW = 200;
/** Until the page says why. */
const VERY_SLOW = 3000;
const FIRST_TILES = 60;
const VIEW = "images.view";

const part = (name) => document.querySelector(`[data-${name}]`);

class ImagesPage {
  constructor(page) {
    this.page = page;
    this.input = part("text");
    this.chosen = new URLSearchParams(window.location.search);
    this.selection = new Selection();
    this.grid = new Grid(part("grid"), part("toolbar"), this.selection);
    this.title = document.title.replace(/^.* · (?=Images · )/, "");
    this.#showView();
    const position = window.history.state?.position ?? 0;
    // Before all else: the images are what the page is opened for.
    if (page.first) this.#showImages(this.chosen, page.first, position);
    this.filters = new Filters(part("filters"), page.filters, this.chosen);
    this.actions = new Actions(part("selection"), part("action"), page, this.selection);
    new SavedFilters(part("saved"), page, () => rest(this.chosen, ["like"]));
    this.#listen();
    if (page.first) this.#showFound();
    else this.#load(position);
    this.#count();
  }

  #listen() {
    const on = (name, event, run) => part(name)?.addEventListener(event, run);
    on("text", "input", (event) => event.isComposing || this.#soon());
    on("text", "compositionend", () => this.#soon());
    on("text", "keydown", (event) => {
      if (event.key !== "ArrowDown" || event.isComposing) return;
      event.preventDefault();
      this.grid.focus();
    });
    on("search", "submit", (event) => {
      event.preventDefault();
      this.#type();
    });
    on("filters", "submit", (event) => event.preventDefault());
    on("clear-filters", "click", () => this.filters.clear());
    on("order", "click", () => this.#set("order", this.chosen.has("order") ? "" : "newest"));
    on("unlike", "click", () => this.#set("like", ""));
    on("csv", "click", ({ target }) => (target.href = `/api/images/matches.csv?${this.chosen}`));
    on("query", "submit", () => this.#fillQuery());
    on("size", "input", ({ target }) => this.#keepView({ size: Number(target.value) }));
    on("whole", "click", () => this.#keepView({ whole: !this.view.whole }));
    on("select", "click", () => this.#toggleSelecting());
    for (const opener of document.querySelectorAll("[data-drawer]")) {
      opener.addEventListener("click", () => document.body.classList.toggle("drawer-open"));
    }
    this.filters.addEventListener("change", () => this.#go(this.filters.chosen));
    this.filters.addEventListener("open", () => this.#count());
    this.grid.addEventListener("wantall", () => this.#selectAll());
    this.grid.addEventListener("leave", () => this.input.focus());
    this.actions.addEventListener("all", () => this.#selectAll());
    this.actions.addEventListener("list", () => this.#downloadSelected());
    this.actions.addEventListener("done", () => {
      this.#load(this.grid.position);
      this.#count();
    });
    window.addEventListener("popstate", ({ state }) => this.#return(state));
    window.addEventListener("pagehide", () => {
      if (this.matches) history.replaceState({ ...history.state, position: this.grid.position }, "");
    });
  }

  #soon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#type(), TYPED);
  }

  #type() {
    clearTimeout(this.timer);
    this.#set("text", this.input.value.trim(), { typed: true });
  }

  #set(name, value, options) {
    const next = new URLSearchParams(this.chosen);
    if (value) next.set(name, value);
    else next.delete(name);
    this.#go(next, options);
  }

  /** What is typed replaces the address, so that going back leaves out each letter. */
  #go(chosen, { typed = false } = {}) {
    const key = String(chosen);
    if (key === (this.loading ?? this.shown)) return;
    history[typed ? "replaceState" : "pushState"](null, "", key ? `?${key}` : window.location.pathname);
    this.#take(new URLSearchParams(key));
  }

  /** Back or forward, to another address. */
  #return(state) {
    const chosen = new URLSearchParams(window.location.search);
    this.input.value = chosen.get("text") ?? "";
    this.filters.read(chosen);
    this.#take(chosen, state?.position);
  }

  #take(chosen, position) {
    this.chosen = chosen;
    this.filters.chosen = chosen;
    this.#load(position);
    if (this.counting !== filtersOf(chosen)) this.#count();
  }

  async #load(position = 0) {
    const { chosen } = this;
    this.request?.abort();
    const request = new AbortController();
    this.request = request;
    this.loading = String(chosen);
    this.#showChosen();
    const wait = () => {
      part("grid").setAttribute("aria-busy", "true");
      this.#say("Searching …");
    };
    const slow = [
      setTimeout(wait, SLOW),
      setTimeout(() => this.#say("Searching … The first search loads the model, which takes a while."), VERY_SLOW),
    ];
    try {
      const address = matchesAddress(chosen, { limit: STRETCH, tiles: FIRST_TILES });
      const answer = await api(address, { signal: request.signal });
      if (this.request !== request) return;
      this.#showImages(chosen, answer, position);
      this.#showFound();
    } catch (error) {
      if (this.request === request && error.name !== "AbortError") this.#fail(error);
    } finally {
      slow.forEach(clearTimeout);
      if (this.request === request) {
        this.request = null;
        this.loading = null;
        part("grid").removeAttribute("aria-busy");
      }
    }
  }

  #showImages(chosen, answer, position) {
    this.shown = String(chosen);
    this.matches = new Matches(chosen, answer, this.page.most);
    this.matches.addEventListener("failed", ({ detail }) => this.#say(meaning(detail)));
    if (this.counted?.key === filtersOf(chosen) && !answer.ranked) this.matches.total = this.counted.total;
    this.grid.show(this.matches, position);
  }

  /** What stands around the images. */
  #showFound() {
    const { answer, parameters } = this.matches;
    part("alert").replaceChildren();
    this.#showChosen();
    this.#sayFound();
    const { unread, model } = answer.ranked ?? {};
    part("unread").hidden = !unread;
    part("unread").textContent = `${model} can’t read all of this text. It leaves out the end: “${unread}”.`;
    part("empty").hidden = answer.ids.length > 0;
    if (part("query")) part("query").hidden = !(parameters.get("text") && answer.ids.length);
  }

  #sayFound() {
    const { answer, total, length, end } = this.matches;
    const all = total ?? end;
    const parts = [all === null ? "Counting …" : counted(all, "image")];
    if (all === null && (this.counted?.total === null || length >= this.page.most)) {
      parts[0] = "Too many images to count";
    }
    if (answer.ranked && end !== null && end < all) parts.push(`the best ${number(end)} are shown`);
    else if (all > this.page.most) parts.push(`the first ${number(this.page.most)} are shown`);
    if (answer.ranked) {
      const { how, model, seconds } = answer.ranked;
      parts.push(how, `${model}, ${number(Math.max(1, Math.round(seconds * 1000)))} ms`);
    }
    this.#say(length ? parts.join(" · ") : "Nothing found");
  }

  async #count() {
    const key = filtersOf(this.chosen);
    this.counting = key;
    try {
      const total = await this.filters.count();
      this.counted = { key, total };
      if (this.matches && !this.matches.answer.ranked && key === filtersOf(this.matches.parameters)) {
        this.matches.total = total;
        this.grid.draw();
        this.#sayFound();
      }
      this.#showChosen();
    } catch (error) {
      if (error.name !== "AbortError") this.#say(meaning(error));
    }
  }

  #fail(error) {
    this.shown = null;
    const again = button("Try again", () => this.#load());
    const message = make("span", { text: meaning(error) });
    part("alert").replaceChildren(make("div", { class: "notice error", role: "alert" }, message, again));
    this.#say("");
    if (part("query")) part("query").hidden = true;
  }

  #say(text) {
    if (part("status").textContent !== text) part("status").textContent = text;
  }

  /** The chips, the title and what stands beside the grid go with the address. */
  #showChosen() {
    const [text, like] = [this.chosen.get("text"), this.chosen.get("like")];
    document.title = text ? `${text} · ${this.title}` : this.title;
    const chips = this.filters.chips();
    part("chips").replaceChildren(...chips);
    part("chosen").hidden = !chips.length;
    part("drawer-number").textContent = chips.length || "";
    if (part("like")) part("like").hidden = Boolean(text) || !like;
    part("order").setAttribute("aria-pressed", String(this.chosen.has("order")));
    part("order").disabled = Boolean(text || like);
  }

  async #selectAll() {
    const { matches } = this;
    try {
      const told = (count) => this.actions.say(`Selecting … ${number(count)}`);
      const ids = await matches.ids(0, this.page.most - 1, told);
      if (matches !== this.matches) return;
      this.selection.add(ids);
      if ((matches.total ?? 0) > ids.length) this.actions.say(`The first ${number(ids.length)} images selected`);
    } catch (error) {
      this.#say(meaning(error));
    }
  }

  async #downloadSelected() {
    try {
      const body = { ids: [...this.selection.ids] };
      const file = await api("/api/images/matches.csv", { method: "POST", body, blob: true });
      const link = make("a", { href: URL.createObjectURL(file), download: "images.csv" });
      link.click();
      URL.revokeObjectURL(link.href);
    } catch (error) {
      this.#say(meaning(error));
    }
  }

  #toggleSelecting() {
    this.grid.selecting = !this.grid.selecting;
    part("select").setAttribute("aria-pressed", String(this.grid.selecting));
    part("grid").classList.toggle("selecting", this.grid.selecting);
    if (!this.grid.selecting) this.selection.clear();
  }

  #showView() {
    const narrow = window.matchMedia("(max-width: 46rem)").matches;
    this.view = { size: narrow ? 110 : 160, whole: false, ...JSON.parse(localStorage.getItem(VIEW) ?? "{}") };
    part("size").value = this.view.size;
    part("grid").classList.toggle("whole", this.view.whole);
    part("whole").setAttribute("aria-pressed", String(this.view.whole));
    this.grid.resize(this.view.size);
  }

  #keepView(changes) {
    localStorage.setItem(VIEW, JSON.stringify({ ...this.view, ...changes }));
    this.#showView();
  }

  /** A new query takes the text and species from the fields, also before their results are shown. */
  #fillQuery() {
    const species = valuesOf(this.chosen, { parameter: "species" }).filter((id) => id !== "none");
    const values = [["text", this.input.value.trim()], ...species.map((id) => ["species", id])];
    const fields = values.map(([name, value]) => make("input", { type: "hidden", name, value }));
    part("query-fields").replaceChildren(...fields);
  }
}

/** The address without some parameters. */
function rest(parameters, names) {
  const kept = new URLSearchParams(parameters);
  for (const name of names) kept.delete(name);
  return String(kept);
}

/** Counts go by the filters alone. */
function filtersOf(parameters) {
  return rest(parameters, ["text", "like", "order"]);
}

function meaning(error) {
  if (error.status === 401) return "You are logged out. Load this page again to log in.";
  return error.status === 0 ? "The server can’t be reached." : error.message;
}

new ImagesPage(JSON.parse(document.querySelector("#images-page").textContent));

/** The page of the images: results while one types and filters, their grid, and what is done with a selection. */
import { api } from "../api.js";
import { button, make } from "../dom.js";
import { number } from "../words.js";
import { Actions } from "./actions.js";
import { Chosen, Filters } from "./filters.js";
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

class ImagesPage {
  constructor(page) {
    const part = (name) => document.querySelector(`[data-${name}]`);
    this.page = page;
    this.part = part;
    this.input = part("text");
    this.status = part("status");
    this.alert = part("alert");
    this.chosen = new Chosen(window.location.search);
    this.selection = new Selection();
    this.grid = new Grid(part("grid"), this.selection);
    this.grid.bar = part("toolbar");
    this.filters = new Filters(part("filters"), page.filters, this.chosen);
    this.actions = new Actions(part("selection"), part("action"), page, this.selection);
    this.saved = new SavedFilters(part("saved"), page, () => this.#withoutLike(this.chosen));
    this.title = document.title.replace(/^.* · (?=Images · )/, "");
    this.#listen();
    this.#showView();
    if (page.first) this.#show(this.chosen, page.first, window.history.state?.position ?? 0);
    else this.#load(window.history.state?.position ?? 0);
    this.#count();
  }

  #listen() {
    this.input.addEventListener("input", (event) => event.isComposing || this.#soon());
    this.input.addEventListener("compositionend", () => this.#soon());
    this.input.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowDown" || event.isComposing) return;
      event.preventDefault();
      this.grid.focus();
    });
    this.part("search").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#type();
    });
    this.part("filters").addEventListener("submit", (event) => event.preventDefault());
    this.filters.addEventListener("change", () => this.#go(this.filters.chosen));
    this.filters.addEventListener("open", () => this.#count());
    this.part("clear-filters").addEventListener("click", () => this.filters.clear());
    this.part("order").addEventListener("click", () => {
      this.#set("order", this.chosen.parameters.has("order") ? "" : "newest");
    });
    this.part("like")
      ?.querySelector("button")
      .addEventListener("click", () => this.#set("like", ""));
    for (const opener of document.querySelectorAll("[data-drawer]")) {
      opener.addEventListener("click", () => document.body.classList.toggle("drawer-open"));
    }
    this.grid.addEventListener("wantall", () => this.#selectAll());
    this.grid.addEventListener("leave", () => this.input.focus());
    this.actions.addEventListener("all", () => this.#selectAll());
    this.actions.addEventListener("list", () => this.#downloadSelected());
    this.actions.addEventListener("done", () => {
      this.#load(this.grid.position);
      this.#count();
    });
    this.part("csv").addEventListener("click", ({ target }) => {
      target.href = `/api/images/matches.csv?${this.chosen}`;
    });
    this.part("query")?.addEventListener("submit", () => this.#fillQuery());
    this.part("size").addEventListener("input", ({ target }) => this.#keepView({ size: Number(target.value) }));
    this.part("whole").addEventListener("click", () => this.#keepView({ whole: !this.view.whole }));
    this.part("select").addEventListener("click", () => this.#toggleSelecting());
    window.addEventListener("popstate", ({ state }) => this.#return(state));
    window.addEventListener("pagehide", () => {
      history.replaceState({ ...history.state, position: this.grid.position }, "");
    });
  }

  #soon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#type(), TYPED);
  }

  #type() {
    clearTimeout(this.timer);
    const next = new Chosen(this.chosen.toString());
    const text = this.input.value.trim();
    if (text) next.parameters.set("text", text);
    else next.parameters.delete("text");
    this.#go(next, { typed: true });
  }

  #set(name, value) {
    const next = new Chosen(this.chosen.toString());
    if (value) next.parameters.set(name, value);
    else next.parameters.delete(name);
    this.#go(next);
  }

  /** What is typed replaces the address, so that going back leaves out each letter. */
  #go(chosen, { typed = false } = {}) {
    const key = chosen.toString();
    if (key === (this.loading ?? this.shown)) return;
    const isCounted = this.#withoutText(chosen) !== this.#withoutText(this.chosen) || chosen === this.filters.chosen;
    const address = key ? `?${key}` : window.location.pathname;
    history[typed ? "replaceState" : "pushState"](null, "", address);
    this.chosen = new Chosen(key);
    this.filters.chosen = this.chosen;
    this.#load();
    if (isCounted) this.#count();
  }

  /** Back or forward, to another address. */
  #return(state) {
    this.chosen = new Chosen(window.location.search);
    this.input.value = this.chosen.parameters.get("text") ?? "";
    this.filters.read(this.chosen);
    this.#load(state?.position ?? 0);
    this.#count();
  }

  async #load(position = 0) {
    const { chosen } = this;
    const key = chosen.toString();
    this.request?.abort();
    const request = new AbortController();
    this.request = request;
    this.loading = key;
    this.#showChosen();
    const slow = [
      setTimeout(() => this.#wait(), SLOW),
      setTimeout(() => this.#say("Searching … The first search loads the model, which takes a while."), VERY_SLOW),
    ];
    try {
      const more = { limit: STRETCH, tiles: FIRST_TILES };
      const answer = await api(matchesAddress(chosen.parameters, more), { signal: request.signal });
      if (this.request === request) this.#show(chosen, answer, position);
    } catch (error) {
      if (this.request === request && error.name !== "AbortError") this.#fail(error);
    } finally {
      slow.forEach(clearTimeout);
      if (this.request === request) {
        this.request = null;
        this.loading = null;
        this.part("grid").removeAttribute("aria-busy");
      }
    }
  }

  #show(chosen, answer, position = 0) {
    this.shown = chosen.toString();
    this.alert.replaceChildren();
    this.matches = new Matches(chosen.parameters, answer, this.page.most);
    this.matches.addEventListener("failed", ({ detail }) => this.#say(meaning(detail)));
    if (this.counted?.key === this.#withoutText(chosen) && answer.method === null) {
      this.matches.total = this.counted.total;
    }
    this.grid.show(this.matches, position);
    this.#showChosen();
    this.#sayFound();
    const unread = this.part("unread");
    unread.hidden = !answer.unread;
    unread.textContent = `${answer.model} can’t read all of this text. It leaves out the end: “${answer.unread}”.`;
    this.part("empty").hidden = answer.ids.length > 0;
    const text = chosen.parameters.get("text");
    if (this.part("query")) this.part("query").hidden = !(text && answer.ids.length);
  }

  #sayFound() {
    const { answer, total, length, end } = this.matches;
    const all = answer.method ? answer.total : (total ?? end);
    const images = all === null ? "Images" : `${number(all)} ${all === 1 ? "image" : "images"}`;
    const parts = [images];
    if (answer.method && end !== null && end < all) parts.push(`the best ${number(end)} are shown`);
    else if (all > this.page.most) parts.push(`the first ${number(this.page.most)} are shown`);
    if (all === null) parts[0] = length >= this.page.most ? "Too many images to count" : "Counting …";
    if (answer.method) {
      parts.push(answer.how, `${answer.model}, ${number(Math.max(1, Math.round(answer.seconds * 1000)))} ms`);
    }
    this.#say(this.matches.length ? parts.join(" · ") : "Nothing found");
  }

  async #count() {
    const key = this.#withoutText(this.chosen);
    try {
      const total = await this.filters.count();
      this.counted = { key, total };
      if (this.matches && this.matches.answer.method === null && key === this.#withoutText(this.chosen)) {
        this.matches.total = total;
        this.grid.draw();
        this.#sayFound();
        if (total === null && this.matches.end === null) this.#say("Too many images to count");
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
    this.alert.replaceChildren(make("div", { class: "notice error", role: "alert" }, message, again));
    this.#say("");
    if (this.part("query")) this.part("query").hidden = true;
  }

  #wait() {
    this.part("grid").setAttribute("aria-busy", "true");
    this.#say("Searching …");
  }

  #say(text) {
    if (this.status.textContent !== text) this.status.textContent = text;
  }

  /** The chips, the title and what stands beside the grid go with the address. */
  #showChosen() {
    const { parameters } = this.chosen;
    const text = parameters.get("text");
    document.title = text ? `${text} · ${this.title}` : this.title;
    const chips = this.filters.chips();
    this.part("chips").replaceChildren(...chips);
    this.part("chosen").hidden = !chips.length;
    this.part("drawer-number").textContent = chips.length || "";
    const like = this.part("like");
    if (like) like.hidden = Boolean(text) || !parameters.get("like");
    this.part("order").setAttribute("aria-pressed", String(parameters.has("order")));
    this.part("order").disabled = Boolean(text || parameters.get("like"));
  }

  /** Counts go by the filters alone. */
  #withoutText(chosen) {
    const parameters = new URLSearchParams(chosen.parameters);
    for (const name of ["text", "like", "order"]) parameters.delete(name);
    return parameters.toString();
  }

  #withoutLike(chosen) {
    const parameters = new URLSearchParams(chosen.parameters);
    parameters.delete("like");
    return parameters.toString();
  }

  async #selectAll() {
    const { matches } = this;
    try {
      const ids = await matches.all((count) => this.actions.say(`Selecting … ${number(count)}`));
      if (matches !== this.matches) return;
      this.selection.add(ids);
      if ((matches.answer.total ?? matches.total ?? 0) > ids.length) {
        this.actions.say(`The first ${number(ids.length)} images selected`);
      }
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
    this.part("select").setAttribute("aria-pressed", String(this.grid.selecting));
    this.part("grid").classList.toggle("selecting", this.grid.selecting);
    if (!this.grid.selecting) this.selection.clear();
  }

  #showView() {
    const narrow = window.matchMedia("(max-width: 46rem)").matches;
    const usual = { size: narrow ? 110 : 160, whole: false };
    this.view = { ...usual, ...JSON.parse(localStorage.getItem(VIEW) ?? "{}") };
    this.part("size").value = this.view.size;
    this.#applyView();
  }

  #keepView(changes) {
    Object.assign(this.view, changes);
    localStorage.setItem(VIEW, JSON.stringify(this.view));
    this.#applyView();
  }

  #applyView() {
    this.part("grid").classList.toggle("whole", this.view.whole);
    this.part("whole").setAttribute("aria-pressed", String(this.view.whole));
    this.grid.resize(this.view.size);
  }

  /** A new query takes the text and species from the fields, also before their results are shown. */
  #fillQuery() {
    const species = this.chosen.parameters.getAll("species").filter((id) => id !== "none");
    const values = [["text", this.input.value.trim()], ...species.map((id) => ["species", id])];
    const fields = values.map(([name, value]) => make("input", { type: "hidden", name, value }));
    this.part("query-fields").replaceChildren(...fields);
  }
}

function meaning(error) {
  if (error.status === 401) return "You are logged out. Load this page again to log in.";
  return error.status === 0 ? "The server can’t be reached." : error.message;
}

const data = document.querySelector("#images-page");
if (data) new ImagesPage(JSON.parse(data.textContent));

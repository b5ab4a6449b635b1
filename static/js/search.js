/** The page of free-text search: results while one types. Without this module the form is sent as usual. */
import { button, columnsOf, make } from "./dom.js";

/** After the last key, in milliseconds. */
const TYPED = 150;
/** Until a slow search is shown as slow. */
const SLOW = 200;
/** Until the page says why. */
const VERY_SLOW = 3000;
const PLACES = 12;
const STEPS = { ArrowLeft: -1, ArrowRight: 1 };

class SearchPage {
  /** @param {HTMLFormElement} form */
  constructor(form) {
    this.form = form;
    this.input = form.elements.text;
    this.found = document.querySelector("[data-search-found]");
    this.status = document.querySelector("[data-search-status]");
    this.model = document.querySelector("[data-search-model]");
    this.queryForm = document.querySelector("[data-search-query]");
    this.shown = this.#parameters().toString();
    this.title = document.title.replace(/^.* · (?=Search · )/, "");
    form.dataset.typing = "";
    this.#listen();
  }

  #listen() {
    this.input.addEventListener("input", (event) => event.isComposing || this.#soon());
    this.input.addEventListener("compositionend", () => this.#soon());
    this.form.addEventListener("picked", () => this.#search());
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#search();
    });
    this.input.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowDown" || event.isComposing) return;
      event.preventDefault();
      this.#tiles[0]?.focus();
    });
    this.found.addEventListener("keydown", (event) => this.#key(event));
    this.queryForm?.addEventListener("submit", () => this.#fillQuery());
  }

  get #tiles() {
    return [...this.found.querySelectorAll(".image-grid a")];
  }

  /** The parameters as the form would send them. */
  #parameters() {
    const parameters = new URLSearchParams();
    const text = this.input.value.trim();
    if (text) parameters.append("text", text);
    const without = text ? null : this.form.querySelector('input[name="like"], input[name="dataset"]');
    if (without) parameters.append(without.name, without.value);
    for (const { value } of this.form.querySelectorAll('input[name="species"]')) parameters.append("species", value);
    return parameters;
  }

  #soon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#search(), TYPED);
  }

  async #search() {
    clearTimeout(this.timer);
    const parameters = this.#parameters();
    const key = parameters.toString();
    if (key === (this.searching ?? this.shown)) return;
    this.request?.abort();
    const request = new AbortController();
    this.request = request;
    this.searching = key;
    history.replaceState(history.state, "", key ? `?${key}` : window.location.pathname);
    document.title = parameters.has("text") ? `${parameters.get("text")} · ${this.title}` : this.title;
    const slow = [
      setTimeout(() => this.#wait(), SLOW),
      setTimeout(() => this.#say("Searching … The first search loads the model, which takes a while."), VERY_SLOW),
    ];
    try {
      const results = await this.#fetch(parameters, request.signal);
      if (this.request === request) this.#show(results, key);
    } catch (error) {
      if (this.request === request && error.name !== "AbortError") this.#fail(error.message);
    } finally {
      slow.forEach(clearTimeout);
      if (this.request === request) this.#settle();
    }
  }

  /** The results as the server draws them; rejects with a readable message. */
  async #fetch(parameters, signal) {
    const query = new URLSearchParams([...parameters, ["part", "results"]]);
    let response;
    let html;
    try {
      response = await fetch(`${window.location.pathname}?${query}`, { signal, credentials: "same-origin" });
      html = await response.text();
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Error("The server can’t be reached.");
    }
    const results = new DOMParser().parseFromString(html, "text/html").querySelector("[data-search-results]");
    if (results) return document.adoptNode(results);
    throw new Error(
      response.redirected
        ? "You are logged out. Load this page again to log in."
        : `The server answered ${response.status}.`,
    );
  }

  #show(results, key) {
    this.shown = results.querySelector(".notice.error") ? null : key;
    this.found.replaceChildren(results);
    this.#say(results.dataset.status.trim());
    const { model } = results.dataset;
    this.model.hidden = !model;
    if (model) this.model.querySelector("code").textContent = model;
    if (this.queryForm) this.queryForm.hidden = !model || !this.input.value.trim();
  }

  #fail(message) {
    this.shown = null;
    const again = button("Try again", () => this.#search());
    this.found.replaceChildren(
      make("div", { class: "notice error", role: "alert" }, make("span", { text: message }), again),
    );
    this.#say("");
    this.model.hidden = true;
    if (this.queryForm) this.queryForm.hidden = true;
  }

  #wait() {
    this.found.setAttribute("aria-busy", "true");
    this.#say("Searching …");
    if (this.#tiles.length) return;
    const places = Array.from({ length: PLACES }, () => make("li"));
    this.found.replaceChildren(make("ol", { class: "image-grid search-waiting", "aria-hidden": "true" }, ...places));
  }

  #settle() {
    this.request = null;
    this.searching = null;
    this.found.removeAttribute("aria-busy");
  }

  #say(text) {
    if (this.status.textContent !== text) this.status.textContent = text;
  }

  #key(event) {
    const tiles = this.#tiles;
    const place = tiles.indexOf(document.activeElement);
    if (place < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Escape") {
      event.preventDefault();
      this.input.focus();
      return;
    }
    const next = place + (STEPS[event.key] ?? this.#rowStep(event.key, tiles, place));
    if (next === place) return;
    event.preventDefault();
    if (next < 0) this.input.focus();
    else tiles[Math.min(next, tiles.length - 1)].focus();
  }

  /** How far a key goes among tiles that lie in rows; 0 for keys that don't. */
  #rowStep(key, tiles, place) {
    if (key === "Home") return -place;
    if (key === "End") return tiles.length - 1 - place;
    if (key === "ArrowUp") return -columnsOf(tiles);
    return key === "ArrowDown" ? columnsOf(tiles) : 0;
  }

  /** A new query takes the text and species from the fields, also before their results are shown. */
  #fillQuery() {
    const fields = [...this.#parameters()].map(([name, value]) => make("input", { type: "hidden", name, value }));
    this.queryForm.querySelector("[data-search-fields]").replaceChildren(...fields);
  }
}

const form = document.querySelector("[data-search]");
if (form) new SearchPage(form);

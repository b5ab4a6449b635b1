/** A query's gallery: an image large with who said what of it, and a reviewer's correction of its label. */
import { api, uuid } from "./api.js";
import { columnsOf, make, modal, showState, submitWhenChosen } from "./dom.js";
import { historyList } from "./studio/history.js";
import { keysOfEvent } from "./studio/keys.js";
import { Zoom } from "./studio/zoom.js";
import { GRADE_NAMES, RELEVANCE_NAMES, sentence, trouble } from "./words.js";

const MOVES = { ArrowLeft: -1, ArrowRight: 1 };

class Gallery {
  /** @param {HTMLElement} grid @param {{api: string, least_relevant_grade: number|null}} page */
  constructor(grid, page) {
    this.page = page;
    this.user = Number(document.querySelector('meta[name="user-id"]').content);
    this.tiles = [...grid.children];
    this.viewer = new Viewer(document.querySelector("[data-viewer]"), this);
    grid.addEventListener("click", (event) => this.#clicked(event));
    grid.addEventListener("keydown", (event) => this.#pressed(event));
  }

  #clicked(event) {
    const tile = event.target.closest("a")?.closest("li");
    if (!tile || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    this.viewer.show(this.tiles.indexOf(tile));
  }

  #pressed(event) {
    const place = this.tiles.indexOf(event.target.closest("li"));
    const columns = columnsOf(this.tiles);
    const by = { ...MOVES, ArrowUp: -columns, ArrowDown: columns }[event.key];
    if (!by || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    this.tiles[place + by]?.querySelector("a").focus();
  }
}

class Viewer {
  /** @param {HTMLDialogElement} dialog @param {Gallery} gallery */
  constructor(dialog, gallery) {
    this.dialog = dialog;
    this.gallery = gallery;
    this.part = (name) => dialog.querySelector(`[data-${name}]`);
    this.zoom = new Zoom(this.part("stage"));
    this.open = modal(dialog);
    this.undo = this.part("undo");
    /** What stood of one's own before the last correction here. */
    this.before = null;
    for (const button of dialog.querySelectorAll("[data-step]")) {
      button.addEventListener("click", () => this.step(Number(button.dataset.step)));
    }
    this.part("correct")?.addEventListener("click", ({ target }) => this.#choose(target.closest("button")));
    this.zoom.addEventListener("swipe", ({ detail }) => this.step(detail === "left" ? 1 : -1));
    dialog.addEventListener("keydown", (event) => this.#pressed(event));
    dialog.addEventListener("close", () => this.tile.querySelector("a").focus());
  }

  get tile() {
    return this.gallery.tiles[this.place];
  }

  get image() {
    return Number(this.tile.dataset.image);
  }

  step(by) {
    if (this.gallery.tiles[this.place + by]) this.show(this.place + by);
    else
      showState(
        this.part("state"),
        by > 0 ? "This is the last image of the page." : "This is the first image of the page.",
      );
  }

  show(place) {
    this.place = place;
    this.#remember(null);
    showState(this.part("state"), "");
    const name = this.tile.querySelector("[data-species]")?.textContent ?? "";
    const rank = this.tile.querySelector("[data-rank]")?.textContent ?? "";
    this.part("title").textContent = [name || `Image ${this.image}`, rank].filter(Boolean).join(", ");
    this.#showBadges();
    this.part("page").href = `/images/${this.image}/`;
    this.part("page").textContent = `Image ${this.image}`;
    this.part("file").textContent = this.tile.dataset.file ?? "";
    this.part("history").replaceChildren();
    this.open(this.part("title"));
    this.#showImage();
    this.#loadHistory();
  }

  async #showImage() {
    const { tile } = this;
    const image = make("img", { src: tile.querySelector("a").href, alt: this.part("title").textContent });
    this.zoom.attach(null);
    this.part("stage").replaceChildren();
    try {
      await image.decode();
    } catch {
      if (tile === this.tile) showState(this.part("state"), "This image can’t be loaded.", true);
      return;
    }
    if (tile !== this.tile) return;
    this.part("stage").replaceChildren(image);
    this.zoom.attach(image);
    this.zoom.fit();
  }

  async #loadHistory() {
    const { tile, image } = this;
    try {
      const { results } = await api(`${this.gallery.page.api}history/?image=${image}`);
      if (tile === this.tile) this.part("history").replaceChildren(historyList(results));
    } catch (error) {
      if (tile === this.tile) showState(this.part("state"), trouble(error, "Who said what can’t be shown."), true);
    }
  }

  #showBadges() {
    const badges = this.tile.querySelector("[data-badges]").cloneNode(true);
    this.part("badges").replaceChildren(...badges.childNodes);
    const { relevance, grade } = this.tile.dataset;
    for (const button of this.dialog.querySelectorAll("[data-correct] :not([data-undo])[data-key]")) {
      const stands = button.dataset.grade ? button.dataset.grade === grade : button.dataset.relevance === relevance;
      button.setAttribute("aria-pressed", String(stands));
    }
  }

  #pressed(event) {
    const keys = keysOfEvent(event);
    const move = MOVES[keys[0]];
    const button = [...this.dialog.querySelectorAll("[data-key]")].find(({ dataset }) => keys.includes(dataset.key));
    if (move) this.step(move);
    else if (button && !event.repeat) button.click();
    else if (keys.includes("+") || keys.includes("=")) this.zoom.zoomIn();
    else if (keys.includes("-")) this.zoom.zoomOut();
    else if (keys.includes("0")) this.zoom.fit();
    else return;
    event.preventDefault();
  }

  #choose(button) {
    if (!button) return;
    const { relevance, grade } = button.dataset;
    if (button === this.undo) this.#send(this.before, true);
    else if (grade) {
      const relevant = Number(grade) >= this.gallery.page.least_relevant_grade;
      this.#send({ relevance: relevant ? "relevant" : "not_relevant", grade: Number(grade) });
    } else this.#send({ relevance, grade: null });
  }

  /** Stores one's judgment, which decides, then shows what stands now. */
  async #send({ relevance, grade, reason = "" }, undoes = false) {
    const { page, user } = this.gallery;
    const { tile, image } = this;
    const state = this.part("state");
    showState(state, "Saving …");
    try {
      const { votes } = await this.#read(image);
      const own = votes.find(({ annotator }) => annotator === user) ?? { relevance: null, grade: null };
      const judgment = { image, relevance, grade, reason, source: "correction", client_id: uuid() };
      const { results } = await api(`${page.api}judgments/`, { method: "POST", body: [judgment] });
      if (results[0].status === "refused") throw new Error(results[0].detail);
      this.#mark(tile, await this.#read(image));
      if (tile !== this.tile) return;
      this.#remember(undoes ? null : own);
      this.#showBadges();
      this.#loadHistory();
      showState(state, undoes ? "Your correction is taken back." : "Saved. The next release has it.");
    } catch (error) {
      if (tile === this.tile) showState(state, trouble(error, "The label is as it was."), true);
    }
  }

  async #read(image) {
    const { results } = await api(`${this.gallery.page.api}images/?image=${image}`);
    if (!results.length) throw new Error("The image is no longer among those that were labeled.");
    return results[0];
  }

  #mark(tile, { relevance, grade, marks }) {
    tile.dataset.relevance = relevance;
    tile.dataset.grade = relevance === "unsure" ? "" : (grade ?? "");
    const name = GRADE_NAMES[tile.dataset.grade] ?? RELEVANCE_NAMES[relevance];
    const badges = marks.map((mark) => make("span", { class: "badge", text: sentence(mark) }));
    const label = make("span", { class: `badge ${relevance}`, text: name });
    tile.querySelector("[data-badges]").replaceChildren(...[label, ...badges].flatMap((badge) => [badge, " "]));
  }

  #remember(before) {
    this.before = before;
    if (this.undo) this.undo.disabled = before === null;
  }
}

const filters = document.querySelector("[data-gallery-filters]");
submitWhenChosen(filters);
filters.addEventListener("picked", () => filters.requestSubmit());
const grid = document.querySelector("[data-gallery]");
if (grid) new Gallery(grid, JSON.parse(document.querySelector("#gallery-page").textContent));

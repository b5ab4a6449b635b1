/** The controls around the tiles: how many, whole or cropped, what a click marks, whether a finger paints. */
import { allowedSize, USUAL } from "./grid-layout.js";
import { counted, make } from "./panel-tools.js";

export class GridTools {
  /**
   * @param {import("./studio.js").Studio} studio
   * @param {HTMLElement} root the grid's section
   * @param {HTMLElement} bar the bar under it
   * @param {() => void} resized called when another number or form of tiles is asked for
   */
  constructor(studio, root, bar, resized) {
    this.preferences = studio.preferences;
    this.root = root;
    this.bar = bar;
    this.resized = resized;
    this.size = allowedSize(this.preferences.get("grid_size", USUAL));
    this.brush = "relevant";
    this.fingersPaint = false;
    this.slider = root.querySelector("[data-grid-size]");
    this.slider.addEventListener("input", () => this.resize(this.slider.valueAsNumber));
    this.#showSize();
    this.#wireWhole();
    this.#wirePaint();
    for (const button of bar.querySelectorAll("[data-brush]")) {
      button.addEventListener("click", () => this.#take(button.dataset.brush));
    }
    const elsewhere = root.querySelector("[data-grid-elsewhere]");
    elsewhere.addEventListener("click", () => studio.go(Number(elsewhere.dataset.rank)));
  }

  /** Asks for another number of tiles; out of bounds, the nearest allowed. */
  resize(size) {
    const wanted = allowedSize(size);
    const same = wanted === this.size;
    this.size = wanted;
    this.#showSize();
    if (same) return;
    this.preferences.set("grid_size", wanted);
    this.resized();
  }

  /** Where the page stands in the list: "1–40". */
  place(text) {
    this.root.querySelector("[data-grid-place]").textContent = text;
  }

  /**
   * Says that marks on other pages are still to be submitted.
   * @param {number[]} ranks of the marked
   */
  elsewhere(ranks) {
    const button = this.root.querySelector("[data-grid-elsewhere]");
    button.hidden = !ranks.length;
    if (!ranks.length) return;
    const first = Math.min(...ranks);
    button.dataset.rank = first;
    const marks = counted(ranks.length, "mark");
    button.setAttribute("aria-label", `${marks} on other pages not submitted, go to rank ${first}`);
    button.title = "Not submitted yet; a click leads there";
    const words = make("span", { class: "grid-word", text: `${marks.replace(/^\S+/, "")} elsewhere` });
    button.replaceChildren(String(ranks.length), words, " ↩");
  }

  /** What submitting would make: numbers by relevance. */
  sum(numbers) {
    for (const [relevance, number] of Object.entries(numbers)) {
      this.bar.querySelector(`[data-sum=${relevance}]`).textContent = number;
    }
  }

  #showSize() {
    this.slider.value = this.size;
    this.root.querySelector("[data-grid-count]").textContent = this.size;
  }

  #wireWhole() {
    const whole = this.root.querySelector("[data-grid-whole]");
    const tiles = this.root.querySelector("[data-tiles]");
    // What a crop cuts off was not on screen, so it is for those who ask for it.
    whole.checked = Boolean(this.preferences.get("grid_whole", true));
    const fit = () => tiles.toggleAttribute("data-whole", whole.checked);
    whole.addEventListener("change", () => {
      this.preferences.set("grid_whole", whole.checked);
      fit();
      this.resized();
    });
    fit();
  }

  #wirePaint() {
    const paint = this.root.querySelector("[data-grid-paint]");
    paint.addEventListener("click", () => {
      this.fingersPaint = !this.fingersPaint;
      paint.setAttribute("aria-pressed", String(this.fingersPaint));
    });
  }

  #take(brush) {
    this.brush = brush;
    for (const button of this.bar.querySelectorAll("[data-brush]")) {
      button.setAttribute("aria-pressed", String(button.dataset.brush === brush));
    }
  }
}

/** Turns [data-picker] into an autocomplete over species; each choice becomes a chip with a hidden input. */
import { api } from "./api.js";

const WAIT = 120;

class Picker {
  constructor(root) {
    this.root = root;
    this.name = root.dataset.picker;
    this.input = root.querySelector("input[type=search]");
    this.options = root.querySelector(".picker-options");
    this.chips = root.querySelector(".chips");
    this.found = [];
    this.active = -1;
    this.input.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.#search(), WAIT);
    });
    this.input.addEventListener("keydown", (event) => this.#key(event));
    this.input.addEventListener("blur", () => setTimeout(() => this.#close(), 150));
    this.options.addEventListener("pointerdown", (event) => {
      const option = event.target.closest("li[data-index]");
      if (option) this.#choose(this.found[Number(option.dataset.index)]);
      event.preventDefault();
    });
    this.chips.addEventListener("click", (event) => {
      if (event.target.closest("button")) event.target.closest("li").remove();
    });
  }

  async #search() {
    const text = this.input.value.trim();
    if (text.length < 2) return this.#close();
    this.request?.abort();
    this.request = new AbortController();
    try {
      const answer = await api(`/api/species/?search=${encodeURIComponent(text)}&limit=12`, {
        signal: this.request.signal,
      });
      this.found = answer.results ?? answer;
      this.#draw();
    } catch (error) {
      if (error.name === "AbortError") return undefined;
      this.found = [];
      this.#draw(error.message);
    }
    return undefined;
  }

  #draw(message = "No species has such a name.") {
    this.active = this.found.length ? 0 : -1;
    this.options.replaceChildren(
      ...this.found.map((species, index) => {
        const item = document.createElement("li");
        item.setAttribute("role", "option");
        item.id = `${this.options.id}-${index}`;
        item.dataset.index = index;
        const name = document.createElement("span");
        name.textContent = species.common_name || species.scientific_name;
        const rest = document.createElement("span");
        rest.className = "muted small";
        rest.textContent = ` ${species.common_name ? species.scientific_name : ""} ${species.family ?? ""}`;
        item.append(name, rest);
        return item;
      }),
    );
    if (!this.found.length) {
      const item = document.createElement("li");
      item.className = "muted";
      item.textContent = message;
      this.options.append(item);
    }
    this.options.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    this.#mark();
  }

  #mark() {
    this.options.querySelectorAll("li[data-index]").forEach((item, index) => {
      item.setAttribute("aria-selected", String(index === this.active));
      if (index === this.active) item.scrollIntoView({ block: "nearest" });
    });
    if (this.active >= 0) {
      this.input.setAttribute("aria-activedescendant", `${this.options.id}-${this.active}`);
    } else {
      this.input.removeAttribute("aria-activedescendant");
    }
  }

  #key(event) {
    if (event.key === "Escape") this.#close();
    if (this.options.hidden) return;
    if (event.key === "ArrowDown") this.active = Math.min(this.active + 1, this.found.length - 1);
    else if (event.key === "ArrowUp") this.active = Math.max(this.active - 1, 0);
    else if (event.key === "Enter" && this.active >= 0) this.#choose(this.found[this.active]);
    else return;
    event.preventDefault();
    this.#mark();
  }

  #choose(species) {
    const chosen = this.chips.querySelector(`input[value="${species.id}"]`);
    if (!chosen) this.chips.append(this.#chip(species));
    this.input.value = "";
    this.#close();
  }

  #chip(species) {
    const item = document.createElement("li");
    item.className = "chip";
    const label = species.common_name || species.scientific_name;
    item.append(label);
    const hidden = document.createElement("input");
    hidden.type = "hidden";
    hidden.name = this.name;
    hidden.value = species.id;
    const remove = document.createElement("button");
    remove.type = "button";
    remove.setAttribute("aria-label", `Remove ${label}`);
    remove.textContent = "×";
    item.append(hidden, remove);
    return item;
  }

  #close() {
    this.options.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
  }
}

document.querySelectorAll("[data-picker]").forEach((root) => new Picker(root));

/** The species chosen: one chip each, which opens to what is related to it, and folds where there are many. */
import { button, make } from "../dom.js";
import { speciesName } from "../words.js";
import { groupTitle, imagesOf, lineageOf, sizeOf } from "./rows.js";

const SHOWN = 12;
/** Folding away one or two saves no room. */
const FOLDED_AT_LEAST = 3;

export class Chips {
  /**
   * @param {HTMLElement} root the list, which may hold chips already
   * @param {{name: string, tools: {fold: HTMLElement, clear: HTMLElement}, details: (id: number) => Promise<object>,
   *   addGroup: (group: object) => Promise<void>, changed: () => void, emptied: (put: Function) => void,
   *   focusOut: () => void}} options `name` of the form's field; "" for no form
   */
  constructor(root, options) {
    this.root = root;
    this.options = options;
    this.unfolded = false;
    this.cards = 0;
    root.addEventListener("click", (event) => this.#click(event));
    root.addEventListener("keydown", (event) => {
      const open = this.root.querySelector(".chip-card");
      if (event.key !== "Escape" || !open) return;
      event.preventDefault();
      event.stopPropagation();
      this.#closeCard({ focus: true });
    });
    options.tools.fold.addEventListener("click", () => {
      this.unfolded = !this.unfolded;
      this.#fold();
    });
    options.tools.clear.addEventListener("click", () => this.#removeAll());
    this.#fold();
  }

  get items() {
    return [...this.root.querySelectorAll(":scope > .chip")];
  }

  /** The ids of the chosen species, in the order of their chips. */
  get ids() {
    return this.items.map((chip) => Number(chip.dataset.id));
  }

  /** Adds species that are not chosen yet; returns how many those were. */
  add(species) {
    const chosen = new Set(this.ids);
    const added = species.filter(({ id }) => !chosen.has(id));
    if (!added.length) return 0;
    this.root.append(...added.map((one) => this.#chip(one)));
    this.#changed();
    return added.length;
  }

  /** Removes all without a message. */
  clear() {
    if (!this.root.childElementCount) return;
    this.root.replaceChildren();
    this.#changed();
  }

  #chip(species) {
    const name = speciesName(species);
    return make(
      "li",
      { class: "chip", "data-id": species.id },
      make("button", { type: "button", class: "chip-name", "aria-expanded": "false", text: name }),
      this.options.name ? make("input", { type: "hidden", name: this.options.name, value: species.id }) : null,
      make("button", { type: "button", class: "chip-remove", "aria-label": `Remove ${name}`, text: "×" }),
    );
  }

  #click(event) {
    const chip = event.target.closest(".chip");
    if (event.target.closest(".chip-remove")) this.#remove(chip);
    else if (event.target.closest(".chip-name")) this.#toggleCard(chip);
  }

  #remove(chip) {
    const items = this.items;
    const index = items.indexOf(chip);
    const next = items[index + 1] ?? items[index - 1];
    this.#closeCard();
    chip.remove();
    this.#changed();
    if (next && !next.hidden) next.querySelector(".chip-remove").focus();
    else this.options.focusOut();
  }

  #removeAll() {
    const items = this.items;
    this.#closeCard();
    this.clear();
    this.options.emptied(items.length, () => {
      const chosen = new Set(this.ids);
      this.root.prepend(...items.filter((chip) => !chosen.has(Number(chip.dataset.id))));
      this.#changed();
    });
    this.options.focusOut();
  }

  #changed() {
    this.#fold();
    this.options.changed();
  }

  #fold() {
    const items = this.items;
    const { fold, clear } = this.options.tools;
    const foldable = items.length >= SHOWN + FOLDED_AT_LEAST;
    items.forEach((chip, index) => {
      chip.hidden = foldable && !this.unfolded && index >= SHOWN;
    });
    fold.hidden = !foldable;
    fold.textContent = this.unfolded ? "Show fewer" : `and ${items.length - SHOWN} more`;
    fold.setAttribute("aria-expanded", String(this.unfolded));
    clear.hidden = items.length < 2;
    clear.textContent = `Remove all ${items.length}`;
  }

  async #toggleCard(chip) {
    const button = chip.querySelector(".chip-name");
    const open = button.getAttribute("aria-expanded") === "true";
    this.#closeCard();
    if (open) return;
    this.cards += 1;
    const card = make("li", { class: "chip-card", id: `${this.root.id}-card-${this.cards}` });
    card.append(make("p", { class: "muted small", text: "Loading …" }));
    button.setAttribute("aria-expanded", "true");
    button.setAttribute("aria-controls", card.id);
    chip.after(card);
    try {
      const species = await this.options.details(Number(chip.dataset.id));
      card.replaceChildren(...this.#about(species));
    } catch (error) {
      card.replaceChildren(make("p", { class: "small", role: "alert", text: error.message }));
    }
  }

  #about(species) {
    const groups = species.groups.map((group) =>
      button(`+ ${groupTitle(group)} (${sizeOf(group)})`, () => {
        this.#closeCard({ focus: true });
        this.options.addGroup(group);
      }),
    );
    return [
      species.thumbnail_url ? make("img", { src: species.thumbnail_url, alt: "", width: 64, height: 64 }) : null,
      make(
        "div",
        { class: "chip-about" },
        make("p", {}, make("i", { text: species.scientific_name })),
        make("p", { class: "small muted", text: [lineageOf(species), imagesOf(species)].filter(Boolean).join(" · ") }),
        groups.length
          ? make("div", { class: "row" }, ...groups)
          : make("p", { class: "small muted", text: "No other species of its genus, family or look-alike group." }),
      ),
    ].filter(Boolean);
  }

  #closeCard({ focus = false } = {}) {
    this.root.querySelector(".chip-card")?.remove();
    const button = this.root.querySelector('.chip-name[aria-expanded="true"]');
    if (!button) return;
    button.setAttribute("aria-expanded", "false");
    button.removeAttribute("aria-controls");
    if (focus) button.focus();
  }
}

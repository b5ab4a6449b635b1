/** The large picture of a flagged image, with the same actions and keys as its card. */
import { paintActions } from "./flag-card.js";

/** @typedef {import("./flag-card.js").FlagCard} FlagCard */

export class FlagViewer {
  /**
   * @param {HTMLDialogElement} dialog
   * @param {{act: (name: string) => void, step: (by: number) => void, closed: (card: FlagCard) => void}} does
   */
  constructor(dialog, does) {
    this.dialog = dialog;
    this.card = null;
    const find = (name) => dialog.querySelector(`[data-${name}]`);
    this.parts = Object.fromEntries(
      ["title", "picture", "missing", "about", "problem", "note", "actions"].map((name) => [name, find(name)]),
    );
    dialog.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (event.target === dialog || button?.matches("[data-close]")) dialog.close();
      else if (button?.dataset.act) does.act(button.dataset.act);
      else if (button?.dataset.step) does.step(Number(button.dataset.step));
    });
    // The browser gives the focus back to where it was when the dialog opened.
    dialog.addEventListener("close", () => does.closed(this.card));
    this.parts.note.addEventListener("input", () => {
      this.card.parts.note.value = this.parts.note.value;
    });
    this.parts.picture.addEventListener("error", () => this.#missing(true));
    this.parts.picture.addEventListener("load", () => this.#missing(false));
  }

  get open() {
    return this.dialog.open;
  }

  /** Shows a card's picture, or the present state of the card that is shown. */
  show(card) {
    const { title, picture, about, problem, note, actions } = this.parts;
    if (this.card !== card) {
      this.card = card;
      this.#missing(false);
      picture.src = card.item.url;
      picture.width = card.item.width;
      picture.height = card.item.height;
      picture.alt = card.species ? `${card.title}, ${card.species}` : card.title;
    }
    title.textContent = [card.title, card.species].filter(Boolean).join(" · ");
    const flags = card.flags.map((flag) => (flag.note ? `${flag.label} (${flag.note})` : flag.label));
    about.textContent = card.result || flags.join(" · ");
    problem.textContent = card.problem;
    note.value = card.parts.note.value;
    note.disabled = card.state !== "open" || card.busy;
    const held = actions.contains(document.activeElement);
    paintActions(actions, card.actions, card.busy);
    if (!this.dialog.open) {
      this.dialog.showModal();
      title.focus();
    } else if (held && !actions.contains(document.activeElement)) {
      title.focus();
    }
  }

  #missing(missing) {
    this.parts.missing.hidden = !missing;
    this.parts.picture.hidden = missing;
  }
}

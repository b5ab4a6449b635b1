/** A dialog that shows the pictures of a row one by one, as large as the window allows. */

import { modal } from "./panel-tools.js";

export class ExampleDialog {
  /** @param {HTMLDialogElement} dialog */
  constructor(dialog) {
    this.dialog = dialog;
    this.modal = modal(dialog);
    this.picture = dialog.querySelector("[data-example-picture]");
    this.steps = [...dialog.querySelectorAll("[data-example-step]")];
    for (const button of this.steps) {
      button.addEventListener("click", () => this.step(Number(button.dataset.exampleStep)));
    }
    dialog.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (by) this.step(by);
    });
  }

  /**
   * @param {{title: string, url: string, note?: string}[]} examples
   * @param {number} index the one to begin with
   */
  open(examples, index) {
    this.examples = examples;
    this.show(index);
    this.modal.open(this.dialog.querySelector(".panel-foot [data-close]"));
  }

  step(by) {
    const index = this.index + by;
    if (index >= 0 && index < this.examples.length) this.show(index);
  }

  show(index) {
    this.index = index;
    const { title, url, note } = this.examples[index];
    this.dialog.querySelector("[data-example-title]").textContent = title;
    this.dialog.querySelector("[data-example-note]").textContent = note || "";
    this.picture.src = url;
    this.picture.alt = note ? `${title}: ${note}` : title;
    const many = this.examples.length;
    for (const button of this.steps) {
      // Focus would be lost from a button that becomes disabled, so it only says that it is.
      const end = button.dataset.exampleStep === "-1" ? index === 0 : index === many - 1;
      button.setAttribute("aria-disabled", String(end));
      button.hidden = many === 1;
    }
    const place = this.dialog.querySelector("[data-example-place]");
    place.textContent = many === 1 ? "" : `${index + 1} of ${many}`;
  }
}

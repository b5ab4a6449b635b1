/** Messages over the top of the stage: they come and go without moving anything. */
import { make } from "./panel-tools.js";

export class Notices {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.shown = new Map();
  }

  /**
   * Shows a notice, or changes the one with the same id.
   * @param {string} id
   * @param {{kind?: "info"|"success"|"warning"|"error", text: string, actions?: {label: string, run?: () => void,
   *   href?: string}[]}} notice a link opens in a new tab, since this page must stay
   */
  show(id, { kind = "info", text, actions = [] }) {
    const known = this.shown.get(id);
    const told = JSON.stringify([kind, text, actions.map(({ label }) => label)]);
    if (known?.told === told) {
      known.runs = actions;
      return;
    }
    const entry = { told, runs: actions };
    const buttons = actions.map(({ label, href }, index) =>
      href
        ? make("a", { class: "button compact", href, target: "_blank", rel: "noopener", text: label })
        : make("button", {
            type: "button",
            class: "button compact",
            text: label,
            on: { click: () => entry.runs[index].run() },
          }),
    );
    entry.element = make(
      "div",
      { class: `notice ${kind}`, "data-notice": id, role: kind === "error" ? "alert" : "status" },
      make("span", { text }),
      buttons.length ? make("span", { class: "row" }, ...buttons) : null,
    );
    if (known) known.element.replaceWith(entry.element);
    else this.root.append(entry.element);
    this.shown.set(id, entry);
  }

  hide(id) {
    this.shown.get(id)?.element.remove();
    this.shown.delete(id);
  }
}

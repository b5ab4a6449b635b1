/** What became of a pasted list: how many were added, which names were not found, what they may mean. */
import { counted, make } from "../label/panel-tools.js";
import { calledBy } from "./option-rows.js";

export class Report {
  /**
   * @param {HTMLElement} root
   * @param {{add: (species: object[]) => void, closed: () => void}} options
   */
  constructor(root, { add, closed }) {
    this.root = root;
    this.addSpecies = add;
    this.closed = closed;
  }

  /**
   * @param {{names: number, found: number, added: number, missing: string[],
   *   suggestions: {name: string, species: object[]}[], outside?: object[]}} outcome
   */
  list({ names, found, added, missing, suggestions, outside = [] }) {
    const near = new Map(suggestions.map(({ name, species }) => [name, species]));
    const known = found - added;
    const sentences = [
      `${counted(names, "name")} read, ${counted(added, "species", "species")} added`,
      known ? `, ${known} chosen before.` : ".",
    ];
    const told = [make("p", { text: sentences.join("") })];
    if (missing.length) {
      told.push(
        make("p", { class: "picker-missing-head", text: `${counted(missing.length, "name")} not found:` }),
        make(
          "ul",
          { class: "picker-missing", tabindex: missing.length > 6 ? "0" : null },
          ...missing.map((name) => this.#missing(name, near.get(name))),
        ),
      );
    }
    if (outside.length) {
      const which = outside.map(calledBy).join(", ");
      told.push(make("p", { text: `In the corpus, but not among these candidates: ${which}.` }));
    }
    this.#show(missing.length || outside.length ? "warning" : "success", told);
  }

  /** A sentence, with something to do about it. */
  say(text, { kind = "info", action = null } = {}) {
    const button = action
      ? make("button", {
          type: "button",
          class: "button compact",
          text: action.label,
          on: {
            click: () => {
              this.hide();
              action.run();
            },
          },
        })
      : null;
    this.#show(kind, [make("p", { text }), button]);
  }

  hide() {
    this.root.hidden = true;
    this.root.replaceChildren();
  }

  #missing(name, species = []) {
    const item = make("li", {}, make("span", { class: "picker-missing-name", text: name }));
    if (!species.length) return item;
    item.append(make("span", { class: "muted", text: "did you mean" }));
    for (const one of species) {
      item.append(
        make("button", {
          type: "button",
          class: "button compact",
          title: one.scientific_name,
          text: calledBy(one),
          on: {
            click: () => {
              this.addSpecies([one]);
              const next = item.nextElementSibling ?? item.previousElementSibling;
              item.remove();
              (next?.querySelector("button") ?? this.root.querySelector(".picker-report-close"))?.focus();
            },
          },
        }),
      );
    }
    return item;
  }

  #show(kind, parts) {
    this.root.className = `picker-report notice ${kind}`;
    const close = make("button", {
      type: "button",
      class: "button quiet compact picker-report-close",
      "aria-label": "Remove this message",
      text: "✕",
      on: {
        click: () => {
          this.hide();
          this.closed();
        },
      },
    });
    this.root.replaceChildren(make("div", {}, ...parts), close);
    this.root.hidden = false;
  }
}

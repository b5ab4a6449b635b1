/** All keys by group, each of which can be replaced by pressing another. */
import { keysOfEvent, shownKey } from "./keymap.js";
import { make, modal } from "./panel-tools.js";

const MOST_KEYS = 4;
const MODIFIER = /^(Shift|Control|Alt|Meta|AltGraph)$/;

class KeysDialog {
  constructor(studio) {
    this.studio = studio;
    this.keymap = studio.keymap;
    this.dialog = studio.root.querySelector("[data-keys]");
    this.groups = this.dialog.querySelector("[data-keys-groups]");
    this.state = this.dialog.querySelector("[data-keys-state]");
    /** The place that the next key pressed is for: `{name, index}`; an index past the last adds one. */
    this.asking = null;
    this.modal = modal(this.dialog, { closed: () => this.#stopAsking() });
    const reset = this.dialog.querySelector("[data-keys-reset]");
    reset.addEventListener("click", () => this.#apply({}, "All keys are as usual."));
    this.dialog.addEventListener("keydown", (event) => this.#pressed(event), true);
    this.dialog.addEventListener("cancel", (event) => {
      if (!this.asking) return;
      event.preventDefault();
      this.#stopAsking();
    });
    studio.action("keys_help", () => this.open());
  }

  open() {
    this.#tell("");
    this.#render();
    this.modal.open();
  }

  #tell(text, ...buttons) {
    this.state.replaceChildren(text, ...buttons);
  }

  #render(focus = null) {
    const groups = new Map();
    for (const action of this.keymap.actions) {
      groups.set(action.group, [...(groups.get(action.group) ?? []), action]);
    }
    this.groups.replaceChildren(
      ...[...groups].map(([group, actions]) =>
        make(
          "section",
          { class: "keys-group" },
          make("h3", { text: group }),
          make("ul", {}, ...actions.map((action) => this.#row(action))),
        ),
      ),
    );
    if (focus) this.groups.querySelector(`[data-place="${focus}"]`)?.focus();
  }

  #row({ name, label, context }) {
    const keys = this.keymap.keys(name);
    const places = keys.map((key, index) => this.#place(name, label, key, index));
    if (keys.length < MOST_KEYS) places.push(this.#place(name, label, null, keys.length));
    const twin = this.keymap.actions.some((other) => other.label === label && other.name !== name);
    return make(
      "li",
      { "data-keys-of": name },
      make("span", { class: "keys-label", text: twin && context !== "both" ? `${label} (${context})` : label }),
      make("span", { class: "keys-places" }, ...places),
      make("button", {
        type: "button",
        class: "keys-undo",
        text: "Reset",
        "aria-label": `Reset the keys of ${label}`,
        disabled: !this.keymap.isChanged(name),
        on: { click: () => this.#reset(name) },
      }),
    );
  }

  #place(name, label, key, index) {
    const asking = this.asking?.name === name && this.asking.index === index;
    const shown = asking ? "Press a key" : key === null ? "+" : shownKey(key);
    const purpose = key === null ? `Add a key for ${label}` : `${label}: ${shownKey(key)}. Replace`;
    return make("button", {
      type: "button",
      class: `keys-key${asking ? " asking" : ""}${key === null ? " add" : ""}`,
      "data-place": `${name} ${index}`,
      "aria-label": asking ? `Press the key for ${label}` : purpose,
      text: shown,
      on: { click: () => this.#ask(name, label, index) },
    });
  }

  #ask(name, label, index) {
    this.asking = { name, label, index };
    const several = index < this.keymap.keys(name).length && this.keymap.keys(name).length > 1;
    this.#tell(
      `Press the key for “${label}”, or Escape to leave it as it is. `,
      ...(several ? [this.#button("Remove this key", () => this.#remove())] : []),
    );
    this.#render(`${name} ${index}`);
  }

  #stopAsking() {
    if (!this.asking) return;
    const { name, index } = this.asking;
    this.asking = null;
    this.#tell("");
    this.#render(`${name} ${index}`);
  }

  #button(text, run) {
    return make("button", { type: "button", class: "button compact", text, on: { click: run } });
  }

  #pressed(event) {
    if (!this.asking) return;
    if (event.key === "Escape" || event.key === "Tab" || MODIFIER.test(event.key) || event.isComposing) return;
    if (event.target.closest("[data-keys-state]") && (event.key === "Enter" || event.key === " ")) return;
    event.preventDefault();
    event.stopPropagation();
    const key = this.#written(event);
    if (key && !event.repeat) this.#take(key);
  }

  /** Of the ways to write a key, the one that works on other layouts too. */
  #written(event) {
    const keys = keysOfEvent(event);
    return keys.find((key) => /^[\x20-\x7e]+$/.test(key)) ?? keys[0];
  }

  #take(key) {
    const { name, label, index } = this.asking;
    const rivals = this.keymap.rivals(name, key);
    if (!rivals.length) {
      this.#give(name, label, index, key, []);
      return;
    }
    const others = rivals.map((rival) => `“${rival.label}”`).join(" and ");
    const alone = rivals.some((rival) => this.keymap.keys(rival.name).length === 1);
    const old = this.keymap.keys(name)[index];
    const swap = alone ? (old ? ` It gets ${shownKey(old)} instead.` : "") : "";
    if (alone && !old) {
      this.#tell(`${shownKey(key)} is the only key of ${others}. Give that another key first.`);
      return;
    }
    this.#tell(
      `${shownKey(key)} is a key of ${others}.${swap} `,
      this.#button("Take it over", () => this.#give(name, label, index, key, rivals)),
      this.#button("Leave it", () => this.#stopAsking()),
    );
    this.state.querySelector("button").focus();
  }

  #give(name, label, index, key, rivals) {
    const own = this.keymap.changed();
    const keys = [...this.keymap.keys(name)];
    const old = keys[index];
    keys[index] = key;
    own[name] = [...new Set(keys)];
    for (const rival of rivals) {
      const left = this.keymap.keys(rival.name).filter((one) => one !== key);
      own[rival.name] = left.length ? left : [old];
    }
    this.#apply(own, `“${label}” has ${shownKey(key)} now.`, `${name} ${index}`);
  }

  #remove() {
    const { name, label, index } = this.asking;
    const own = this.keymap.changed();
    own[name] = this.keymap.keys(name).filter((_, place) => place !== index);
    this.#apply(own, `“${label}” has one key less.`, `${name} 0`);
  }

  #reset(name) {
    const own = this.keymap.changed();
    delete own[name];
    const action = this.keymap.byName.get(name);
    for (const key of action.keys) {
      // Another action may have got this one's usual key meanwhile: it goes back to its own as well.
      for (const rival of this.keymap.rivals(name, key)) delete own[rival.name];
    }
    this.#apply(own, `“${action.label}” has its usual keys.`, `${name} 0`);
  }

  /** Puts keys in force at once, then has them kept; what the server refuses is taken back. */
  async #apply(own, done, focus = null) {
    const before = this.keymap.changed();
    this.asking = null;
    this.keymap.assign(own);
    this.#tell(done);
    this.#render(focus);
    try {
      await this.studio.preferences.saveKeys(this.keymap.changed());
    } catch (error) {
      if (error.status === 400) {
        this.keymap.assign(before);
        this.#render(focus);
        this.#tell(error.errors[0]?.detail ?? error.message);
      } else {
        this.#tell(`In force on this page, but not kept: ${error.message}`);
      }
    }
  }
}

/** @param {import("./studio.js").Studio} studio */
export function mount(studio) {
  new KeysDialog(studio);
}

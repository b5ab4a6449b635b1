/** Keys and what they do: read from events, compared, written as people read them. */
import { api } from "../api.js";
import { button, isGone, isTyping, make, modal } from "../dom.js";

/** What the keys of a US keyboard write, for layouts whose own characters aren't Latin. */
const BY_CODE = {
  Minus: "-_",
  Equal: "=+",
  BracketLeft: "[{",
  BracketRight: "]}",
  Backslash: "\\|",
  Slash: "/?",
  Comma: ",<",
  Period: ".>",
  Semicolon: ";:",
  Quote: "'\"",
  Backquote: "`~",
};
const NO_KEYS = ["Process", "Dead", "Unidentified", "Shift", "Control", "Alt", "Meta", "AltGraph", "CapsLock"];
/** These belong to the button, tab or slider that has the focus. */
const ACTIVATING = ["Space", "Enter"];
const MOVING = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown"];
/** Actions that a held key may repeat; a judgment takes a press of its own. */
const REPEATED = /^(zoom_(in|out)|back|brighter|darker|(more|less)_contrast|grid_(left|right|up|down)|undo|redo)$/;

function characterOfCode(event) {
  const letter = /^Key([A-Z])$/.exec(event.code);
  if (letter) return letter[1].toLowerCase();
  const digit = /^(?:Digit|Numpad)(\d)$/.exec(event.code);
  if (digit) return digit[1];
  return BY_CODE[event.code]?.[event.shiftKey ? 1 : 0] ?? null;
}

/**
 * The ways to write a pressed key, best first; empty for modifiers and while an input method composes.
 * A character that isn't Latin is followed by what its place on a Latin keyboard would write.
 * @param {KeyboardEvent} event @returns {string[]}
 */
export function keysOfEvent(event) {
  if (event.isComposing || NO_KEYS.includes(event.key)) return [];
  const named = event.key.length > 1;
  const written = event.key === " " ? "Space" : named ? event.key : event.key.toLowerCase();
  // AltGr and Option write characters, for which both count as not held.
  const graph = event.getModifierState("AltGraph");
  const control = (event.ctrlKey || event.metaKey) && !graph ? "Ctrl+" : "";
  const alt = event.altKey && !graph ? "Alt+" : "";
  const shift = event.shiftKey && (named || written === "Space" || control) ? "Shift+" : "";
  const keys = [`${control}${alt}${shift}${written}`];
  if (!named && !/^[\x21-\x7e]$/.test(event.key)) {
    const latin = characterOfCode(event);
    if (latin) keys.push(`${control}${alt}${shift}${latin}`);
  }
  if (alt && !control && /^[^\w\s]$/.test(written)) keys.push(written);
  return keys;
}

export class Keymap extends EventTarget {
  /**
   * @param {{actions: {name: string, label: string, group: string, context: "both"|"single"|"grid"|"graded", keys: string[]}[],
   *   signs: Object<string, string>}} keymap the actions, and how people read keys with long names
   * @param {Object<string, string[]>} own the keys that this person has
   */
  constructor({ actions, signs }, own) {
    super();
    this.actions = actions;
    this.signs = signs;
    /** Whether the query asks for grades: their keys go before all others. */
    this.graded = false;
    this.byName = new Map(actions.map((action) => [action.name, action]));
    this.own = new Map();
    this.assign(own);
  }

  /** The keys of an action as they are now. */
  keys(name) {
    return this.own.get(name) ?? this.byName.get(name)?.keys ?? [];
  }

  /** A key as people read it: "R", "←", "Ctrl+Z". */
  sign(key) {
    const [, held, rest] = /^((?:Ctrl\+|Alt\+|Shift\+)*)(.+)$/.exec(key);
    return held + (this.signs[rest] ?? (rest.length === 1 ? rest.toUpperCase() : rest));
  }

  /** The keys of an action as people read them. */
  shown(name) {
    return this.keys(name).map((key) => this.sign(key));
  }

  /** The action of the first of `keys` that has one in a view; null where none has. */
  find(view, keys) {
    for (const key of keys) {
      for (const contexts of [this.graded ? ["graded"] : [], ["both", view]]) {
        const bound = this.actions.find(
          ({ name, context }) => contexts.includes(context) && this.keys(name).includes(key),
        );
        if (bound) return bound.name;
      }
    }
    return null;
  }

  /** The other actions that have `key` in a view in which `name` works too. */
  rivals(name, key) {
    const { context } = this.byName.get(name);
    return this.actions.filter(
      (other) =>
        other.name !== name &&
        (context === "graded") === (other.context === "graded") &&
        (context === "both" || other.context === "both" || other.context === context) &&
        this.keys(other.name).includes(key),
    );
  }

  isChanged(name) {
    return this.own.has(name);
  }

  /** The keys that differ from the defaults, by action. */
  changed() {
    return Object.fromEntries(this.own);
  }

  /** Replaces all keys; actions not named get their defaults. */
  assign(own) {
    this.own.clear();
    for (const [name, keys] of Object.entries(own)) {
      const usual = this.byName.get(name)?.keys;
      if (usual && keys.length && keys.join(" ") !== usual.join(" ")) this.own.set(name, keys);
    }
    this.dispatchEvent(new Event("change"));
  }
}

/** Whether a key belongs to what has the focus: text to a field, space to a button, arrows to a slider. */
function belongsToFocus(target, key) {
  if (!(target instanceof Element) || isGone(target)) return false;
  if (target.isContentEditable) return true;
  if (target.matches("input[type=range], [role=tab], [role=radio]")) return MOVING.includes(key);
  if (isTyping(target)) return true;
  return ACTIVATING.includes(key) && target.matches("button:not(.term-word), a[href], summary, input, [role=button]");
}

/** Lets keys do what the studio's keymap says. @param {Studio} studio */
export function listen(studio) {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || studio.blocked) return;
    const keys = keysOfEvent(event);
    if (!keys.length || belongsToFocus(event.target, keys[0])) return;
    const action = studio.keymap.find(studio.view, keys);
    if (!action) return;
    event.preventDefault();
    if (!event.repeat || REPEATED.test(action)) studio.run(action, event);
  });
}

/** All keys by group, each of which can be replaced by pressing another. */

const MOST_KEYS = 4;
const MODIFIER = /^(Shift|Control|Alt|Meta|AltGraph)$/;

export class KeysDialog {
  /** @param {HTMLDialogElement} dialog @param {Keymap} keymap */
  constructor(dialog, keymap) {
    this.dialog = dialog;
    this.keymap = keymap;
    this.groups = this.dialog.querySelector("[data-keys-groups]");
    this.state = this.dialog.querySelector("[data-keys-state]");
    /** The place that the next key pressed is for: `{name, index}`; an index past the last adds one. */
    this.awaited = null;
    this.openDialog = modal(this.dialog);
    this.saves = Promise.resolve();
    this.dialog.addEventListener("close", () => this.#stopAwaiting());
    const reset = this.dialog.querySelector("[data-keys-reset]");
    reset.addEventListener("click", () => this.#apply({}, "All keys are reset."));
    this.dialog.addEventListener("keydown", (event) => this.#pressed(event), true);
    this.dialog.addEventListener("cancel", (event) => {
      if (!this.awaited) return;
      event.preventDefault();
      this.#stopAwaiting();
    });
  }

  open() {
    this.#say("");
    this.#render();
    this.openDialog();
  }

  #say(text, ...buttons) {
    this.state.replaceChildren(text, ...buttons);
  }

  #render(focus = null) {
    const groups = new Map();
    for (const action of this.keymap.actions) {
      if (action.context === "graded" && !this.keymap.graded) continue;
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
      button("Reset", () => this.#reset(name), {
        class: "keys-undo",
        "aria-label": `Reset the keys of ${label}`,
        disabled: !this.keymap.isChanged(name),
      }),
    );
  }

  #place(name, label, key, index) {
    const awaited = this.awaited?.name === name && this.awaited.index === index;
    const shown = awaited ? "Press a key" : key === null ? "+" : this.keymap.sign(key);
    const purpose = key === null ? `Add a key for ${label}` : `${label}: ${this.keymap.sign(key)}. Replace`;
    return button(shown, () => this.#await(name, label, index), {
      class: `keys-key${awaited ? " awaited" : ""}${key === null ? " add" : ""}`,
      "data-place": `${name} ${index}`,
      "aria-label": awaited ? `Press a key for ${label}` : purpose,
    });
  }

  #await(name, label, index) {
    this.awaited = { name, label, index };
    const several = index < this.keymap.keys(name).length && this.keymap.keys(name).length > 1;
    this.#say(
      `Press a key for “${label}”, or Escape to cancel. `,
      ...(several ? [button("Remove this key", () => this.#remove())] : []),
    );
    this.#render(`${name} ${index}`);
  }

  #stopAwaiting() {
    if (!this.awaited) return;
    const { name, index } = this.awaited;
    this.awaited = null;
    this.#say("");
    this.#render(`${name} ${index}`);
  }

  #pressed(event) {
    if (!this.awaited) return;
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
    const { name, label, index } = this.awaited;
    const rivals = this.keymap.rivals(name, key);
    if (!rivals.length) {
      this.#give(name, label, index, key, []);
      return;
    }
    const others = rivals.map((rival) => `“${rival.label}”`).join(" and ");
    const alone = rivals.some((rival) => this.keymap.keys(rival.name).length === 1);
    const old = this.keymap.keys(name)[index];
    const swap = alone ? (old ? ` It gets ${this.keymap.sign(old)} instead.` : "") : "";
    if (alone && !old) {
      this.#say(`${this.keymap.sign(key)} is the only key of ${others}. Give that another key first.`);
      return;
    }
    this.#say(
      `${this.keymap.sign(key)} is a key of ${others}.${swap} `,
      button("Reassign", () => this.#give(name, label, index, key, rivals)),
      button("Cancel", () => this.#stopAwaiting()),
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
      const left = this.keymap.keys(rival.name).filter((held) => held !== key);
      own[rival.name] = left.length ? left : [old];
    }
    this.#apply(own, `“${label}” has ${this.keymap.sign(key)} now.`, `${name} ${index}`);
  }

  #remove() {
    const { name, label, index } = this.awaited;
    const own = this.keymap.changed();
    own[name] = this.keymap.keys(name).filter((_, place) => place !== index);
    this.#apply(own, `“${label}” has one key fewer.`, `${name} 0`);
  }

  #reset(name) {
    const own = this.keymap.changed();
    delete own[name];
    const action = this.keymap.byName.get(name);
    for (const key of action.keys) {
      // Another action may have this one's default key now: it gets its own default back as well.
      for (const rival of this.keymap.rivals(name, key)) delete own[rival.name];
    }
    this.#apply(own, `“${action.label}” has its default keys again.`, `${name} 0`);
  }

  /** Applies keys at once, then saves them; a refusal restores the old ones. */
  #apply(own, done, focus = null) {
    const before = this.keymap.changed();
    this.awaited = null;
    this.keymap.assign(own);
    this.#say(done);
    this.#render(focus);
    // One save after the other, or an earlier one could come last.
    this.saves = this.saves.then(() => this.#save(before, focus));
  }

  async #save(before, focus) {
    try {
      await api("/api/preferences/labeling/", { method: "PUT", body: { keys: this.keymap.changed() } });
    } catch (error) {
      if (error.status === 400) {
        this.keymap.assign(before);
        this.#render(focus);
        this.#say(error.errors[0]?.detail ?? error.message);
      } else {
        this.#say(`In use on this page, but not saved: ${error.message}`);
      }
    }
  }
}

/** @param {Studio} studio */
export function mount(studio) {
  const dialog = new KeysDialog(studio.root.querySelector("[data-keys]"), studio.keymap);
  studio.action("keys_help", () => dialog.open());
}

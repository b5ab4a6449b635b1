/** Keys and what they do: read from events, compared, written as people read them. */
import { isTyping } from "./panel-tools.js";

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
const SHOWN = {
  ArrowLeft: "←",
  ArrowRight: "→",
  ArrowUp: "↑",
  ArrowDown: "↓",
  Backspace: "⌫",
  Delete: "Del",
  PageUp: "Page ↑",
  PageDown: "Page ↓",
};
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

/** A key as people read it: "R", "←", "Ctrl+Z". */
export function shownKey(key) {
  const [, held, rest] = /^((?:Ctrl\+|Alt\+|Shift\+)*)(.+)$/.exec(key);
  return held + (SHOWN[rest] ?? (rest.length === 1 ? rest.toUpperCase() : rest));
}

export class Keymap extends EventTarget {
  /**
   * @param {{name: string, label: string, group: string, context: "both"|"single"|"grid", keys: string[]}[]} actions
   * @param {Object<string, string[]>} own the keys that this person has
   */
  constructor(actions, own) {
    super();
    this.actions = actions;
    this.byName = new Map(actions.map((action) => [action.name, action]));
    this.own = new Map();
    this.assign(own);
  }

  /** The keys of an action as they are now. */
  keys(name) {
    return this.own.get(name) ?? this.byName.get(name)?.keys ?? [];
  }

  /** The keys of an action as people read them. */
  shown(name) {
    return this.keys(name).map(shownKey);
  }

  /** The action of the first of `keys` that has one in a view; null where none has. */
  find(view, keys) {
    for (const key of keys) {
      const found = this.actions.find(
        ({ name, context }) => (context === "both" || context === view) && this.keys(name).includes(key),
      );
      if (found) return found.name;
    }
    return null;
  }

  /** The other actions that have `key` in a view in which `name` works too. */
  rivals(name, key) {
    const { context } = this.byName.get(name);
    return this.actions.filter(
      (other) =>
        other.name !== name &&
        (context === "both" || other.context === "both" || other.context === context) &&
        this.keys(other.name).includes(key),
    );
  }

  isChanged(name) {
    return this.own.has(name);
  }

  /** The keys that differ from the usual ones, by action. */
  changed() {
    return Object.fromEntries(this.own);
  }

  /** Puts all keys in force at once; actions not named get their usual ones. */
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
  if (!(target instanceof Element)) return false;
  if (target.isContentEditable) return true;
  if (target.matches("input[type=range], [role=tab], [role=radio]")) return MOVING.includes(key);
  if (isTyping(target)) return true;
  return ACTIVATING.includes(key) && target.matches("button, a[href], summary, input, [role=button]");
}

/** Lets keys do what the studio's keymap says. @param {import("./studio.js").Studio} studio */
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

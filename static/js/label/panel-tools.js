/** What the studio's panels share: elements, dialogs that give the focus back, times in words. */

/**
 * An element with its attributes and children. `text` is its text; `on` holds listeners by event;
 * an attribute that is null, undefined or false is left out, and true is an empty one.
 * @param {string} tag
 * @param {Object<string, *>} [attributes]
 * @param {...(Node|string|null)} children
 * @returns {HTMLElement}
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") element.textContent = value;
    else if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** "1 image", "3 images". */
export function counted(number, one, many = `${one}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

/** What a failed request means to the person: `what` is the sentence for a lost connection. */
export function trouble(error, what) {
  return error.status === 0 ? `There is no connection to the server. ${what}` : error.message;
}

/**
 * A function that has `run` done soon, once for all its calls, when the next frame is on screen: what
 * stands beside the picture must not hold the picture up.
 * @param {() => void} run
 * @returns {() => void}
 */
export function afterPaint(run) {
  let wanted = false;
  return () => {
    if (wanted) return;
    wanted = true;
    requestAnimationFrame(() =>
      setTimeout(() => {
        wanted = false;
        run();
      }),
    );
  };
}

/** Whether a key typed there is meant as text. */
export function isTyping(target) {
  return target.matches("textarea, select, input:not([type=checkbox], [type=radio], [type=button])");
}

/**
 * Makes a `<dialog>` modal with what every panel wants: `[data-close]` and a click beside it close
 * it. The browser itself gives the focus back.
 * @param {HTMLDialogElement} dialog
 * @param {{closed?: () => void}} [options]
 * @returns {{open: (first?: HTMLElement) => void}}
 */
export function modal(dialog, { closed = () => {} } = {}) {
  for (const button of dialog.querySelectorAll("[data-close]")) {
    button.addEventListener("click", () => dialog.close());
  }
  let pressedBeside = false;
  dialog.addEventListener("pointerdown", (event) => {
    pressedBeside = event.target === dialog;
  });
  dialog.addEventListener("click", (event) => {
    // Not when a drag began inside, such as one that marks text.
    if (event.target === dialog && pressedBeside) dialog.close();
  });
  dialog.addEventListener("close", () => closed());
  return {
    open(first) {
      if (dialog.open) return;
      dialog.showModal();
      first?.focus();
    },
  };
}

const UNITS = [
  ["year", 31_557_600],
  ["month", 2_629_800],
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const exact = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

/** "3 minutes ago", for a date at or before `now`. */
export function ago(date, now = new Date()) {
  const seconds = Math.max(0, (now - date) / 1000);
  for (const [unit, length] of UNITS) {
    if (seconds >= length) return relative.format(-Math.floor(seconds / length), unit);
  }
  return seconds < 10 ? "just now" : `${Math.floor(seconds)} seconds ago`;
}

/** The moment on the reader's own clock. */
export function moment(date) {
  return exact.format(date);
}

export const RELEVANCE_NAMES = { relevant: "Relevant", not_relevant: "Not relevant", unsure: "Unsure" };

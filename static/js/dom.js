/** Helpers for elements, buttons and dialogs. */

/**
 * An element with its attributes and children. `text` is its text; `on` holds listeners by event; an attribute that is
 * null, undefined or false is left out, and true is an empty one.
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

/**
 * A button that calls `click`.
 * @param {string} text
 * @param {(event: MouseEvent) => void} click
 * @param {Object<string, *>} [attributes] by default it has the class "button compact"
 */
export function button(text, click, attributes = {}) {
  return make("button", { type: "button", class: "button compact", text, on: { click }, ...attributes });
}

/**
 * A function that has `run` done soon, once for all its calls, when the next frame is on screen: what stands beside the
 * image must not hold it up.
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

/** Whether an element went with its dialog: until the browser's next frame it keeps the focus. */
export function isGone(target) {
  return target.matches("dialog:not([open]) *");
}

/** Whether a key typed there is meant as text. */
export function isTyping(target) {
  return target.matches("textarea, select, input:not([type=checkbox], [type=radio], [type=button])") && !isGone(target);
}

/**
 * Wires a `<dialog>`: `[data-close]` and a click beside it close it, and the browser gives the focus back.
 * @param {HTMLDialogElement} dialog
 * @returns {(first?: HTMLElement) => void} opens it with the focus on `first`; does nothing while it is open
 */
export function modal(dialog) {
  for (const closer of dialog.querySelectorAll("[data-close]")) closer.addEventListener("click", () => dialog.close());
  let pressedBeside = false;
  dialog.addEventListener("pointerdown", (event) => {
    pressedBeside = event.target === dialog;
  });
  dialog.addEventListener("click", (event) => {
    // Not when a drag began inside, such as one that marks text.
    if (event.target === dialog && pressedBeside) dialog.close();
  });
  return (first) => {
    if (dialog.open) return;
    dialog.showModal();
    first?.focus();
  };
}

/**
 * Submits a form as soon as a mouse or a finger chooses in it. Arrow keys change a closed select at each step, so with
 * keys the form waits for its button.
 * @param {HTMLFormElement} form
 */
export function submitWhenChosen(form) {
  let keyed = false;
  form.addEventListener("keydown", () => (keyed = true));
  form.addEventListener("pointerdown", () => (keyed = false));
  form.addEventListener("change", ({ target }) => {
    if (!keyed && target.matches("select")) form.requestSubmit();
  });
}

/** Writes the state of a dialog into its line of status. */
export function showState(node, text, problem = false) {
  node.textContent = text;
  node.classList.toggle("problem", problem);
}

/** How many of these elements stand in the first row. */
export function columnsOf(elements) {
  const tops = [...elements].map((element) => element.offsetTop);
  const second = tops.findIndex((top) => top > tops[0]);
  return second < 0 ? Math.max(1, tops.length) : second;
}

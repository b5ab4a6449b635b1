/** For admins: pin the image on screen to the query's guidelines, or take it off. */

import { api } from "../api.js";
import { trouble } from "./panel-tools.js";

/**
 * @param {import("./studio.js").Studio} studio
 * @param {HTMLElement} root the reference section
 * @param {() => Promise<void>} changed called after an example was pinned or unpinned
 * @returns {{show: (pinned: {image: number, relevant: boolean, note: string}[]) => void} | null}
 *   null where the user may not pin
 */
export function mountPinning(studio, root, changed) {
  const panel = root.querySelector("[data-reference-pin]");
  if (!panel) return null;
  const note = panel.querySelector("[data-pin-note]");
  const state = panel.querySelector("[data-pin-state]");
  const buttons = [...panel.querySelectorAll("[data-pin]")];
  let pinned = new Map();
  let shown = null; // the image that the note was filled in for

  function refresh() {
    const image = studio.current?.image ?? null;
    const standing = pinned.get(image);
    for (const button of buttons) {
      const kind = button.dataset.pin;
      button.disabled = image === null;
      if (kind === "unpin") button.hidden = !standing;
      else button.setAttribute("aria-pressed", String(standing?.relevant === (kind === "relevant")));
    }
    if (image !== shown) {
      shown = image;
      note.value = standing?.note || "";
      state.textContent = "";
    }
    if (!state.textContent && standing) {
      state.textContent = `Pinned as ${standing.relevant ? "a relevant" : "a not relevant"} example.`;
    }
  }

  async function act(kind) {
    const image = studio.current?.image;
    if (!image) return;
    const path = `${studio.api}examples/`;
    state.textContent = "Saving …";
    try {
      if (kind === "unpin") await api(`${path}${image}/`, { method: "DELETE" });
      else {
        const body = { image, relevant: kind === "relevant", note: note.value.trim() };
        await api(path, { method: "POST", body });
      }
    } catch (error) {
      state.textContent = trouble(error, "Nothing was changed; try again when it is back.");
      return;
    }
    const text = { relevant: "Pinned as a relevant example.", not_relevant: "Pinned as a not relevant example.", unpin: "Unpinned." };
    if (kind === "unpin") {
      note.value = "";
      buttons.find((button) => button.dataset.pin === "relevant").focus();
    }
    await changed();
    if (studio.current?.image === image) state.textContent = text[kind];
    else studio.announce(text[kind]);
  }

  for (const button of buttons) button.addEventListener("click", () => act(button.dataset.pin));
  studio.on("rank", refresh);
  return {
    show(examples) {
      pinned = new Map(examples.map((one) => [one.image, one]));
      refresh();
    },
  };
}

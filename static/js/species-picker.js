/** Turns each [data-picker] of a form into a picker of species, which says "picked" when its choice changes. */
import { Picker } from "./species/picker.js";

for (const root of document.querySelectorAll("[data-picker]")) {
  new Picker(root, { changed: () => root.dispatchEvent(new CustomEvent("picked", { bubbles: true })) });
}

/** Turns each [data-picker] of a form into a picker of species. */
import { Picker } from "./species/picker.js";

document.querySelectorAll("[data-picker]").forEach((root) => new Picker(root));

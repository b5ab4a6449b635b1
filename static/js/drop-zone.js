/**
 * Drop zones around file inputs. The inputs stay, for keys, screen readers and browsers without scripts; each input of
 * the page gets one, but those within [data-own-drop].
 */
import { make } from "./dom.js";

const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
const zones = new Set();

/** Shows while files are dragged over the page where they may be dropped; elsewhere a drop would leave the page. */
function watchPage() {
  const show = (on) => {
    for (const zone of zones) zone.classList.toggle("wanted", on);
  };
  document.addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    if (!event.target.closest?.(".drop-zone")) event.dataTransfer.dropEffect = "none";
    show(true);
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) show(false);
  });
  document.addEventListener("drop", (event) => {
    if (hasFiles(event)) event.preventDefault();
    show(false);
  });
}

/**
 * Makes an element a drop zone.
 * @param {HTMLElement} zone
 * @param {(transfer: DataTransfer) => void} take
 */
export function dropZone(zone, take) {
  if (!zones.size) watchPage();
  zones.add(zone);
  zone.classList.add("drop-zone");
  zone.addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.dataTransfer.dropEffect = "copy";
    zone.classList.add("over");
  });
  zone.addEventListener("dragleave", (event) => {
    if (!zone.contains(event.relatedTarget)) zone.classList.remove("over");
  });
  zone.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    zone.classList.remove("over");
    take(event.dataTransfer);
  });
}

/** Whether an input's attribute `accept` names the ending of a file. */
export function isAccepted(accept, name) {
  const endings = accept.split(",").map((one) => one.trim().toLowerCase());
  const named = endings.filter((one) => one.startsWith("."));
  return !named.length || named.some((ending) => name.toLowerCase().endsWith(ending));
}

function enhance(input) {
  const note = make("span", { class: "hint drop-hint", role: "status", text: "Or drop it here." });
  input.after(note);
  dropZone(input.closest(".field") ?? input.parentElement, ({ files }) => {
    if (!files.length) return;
    const wrong = [...files].find((file) => !isAccepted(input.accept, file.name));
    if (wrong || (files.length > 1 && !input.multiple)) {
      note.textContent = wrong ? `“${wrong.name}” isn't taken here: choose ${input.accept}.` : "Drop one file.";
      return;
    }
    input.files = files;
    note.textContent = `Chosen: ${[...files].map((file) => file.name).join(", ")}`;
    input.dispatchEvent(new Event("change", { bubbles: true }));
  });
}

for (const input of document.querySelectorAll('input[type="file"]')) {
  if (!input.closest("[data-own-drop]")) enhance(input);
}

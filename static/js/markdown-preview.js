/** Below a text area, its Markdown as the server's pages show it; while it is open, it follows what is written. */
import { api } from "./api.js";

/** Milliseconds without a key after which the text is sent. */
const DELAY = 400;

function mount(details) {
  const field = document.getElementById(details.dataset.previewOf);
  const shown = details.querySelector(".markdown");
  let timer = null;
  let shows = null;

  async function render() {
    const text = field.value;
    if (!details.open || text === shows) return;
    shows = text;
    try {
      const body = { text, heading: Number(details.dataset.heading) };
      const { html } = await api("/api/markdown/", { method: "POST", body });
      // An answer may come after that of a later text.
      if (shows === text) shown.innerHTML = html || "Nothing is written yet."; // the server lets no HTML of the text through
    } catch (error) {
      if (shows !== text) return;
      shows = null;
      shown.textContent = `There is no preview: ${error.message}`;
    }
  }

  details.addEventListener("toggle", render);
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(render, DELAY);
  });
}

for (const details of document.querySelectorAll("[data-preview-of]")) mount(details);

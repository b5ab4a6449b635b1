/** The comments on the image on screen, and how many there are, where others' may be read. */
import { Thread } from "../comments.js";
import { modal } from "../dom.js";
import { sentence } from "../words.js";

/** @param {Studio} studio */
export function mount(studio) {
  const dialog = studio.root.querySelector("[data-comments]");
  const badge = studio.root.querySelector("[data-comments-count]");
  const open = modal(dialog);
  let counts = new Map();

  const render = () => {
    const count = counts.get(studio.store.entry(studio.rank)?.image) ?? 0;
    badge.hidden = !count;
    badge.textContent = count;
  };
  const thread = new Thread(dialog, studio.api, ({ image, hidden, results }) => {
    counts.set(image, hidden ? 0 : results.length);
    render();
  });
  studio.changes.addEventListener("comments", () => {
    counts = new Map(studio.changes.comments.map(({ image, comments }) => [image, comments]));
    render();
  });
  studio.on("rank", render);
  studio.action("comments", () => {
    const entry = studio.store.entry(studio.rank);
    if (!entry) return;
    dialog.querySelector("[data-comments-about]").textContent = sentence(studio.source.where(entry.rank));
    thread.open(entry.image);
    open(thread.text);
  });
}

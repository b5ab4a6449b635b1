/** What the labeling page shows of a blind queue besides its images: how many are left to judge. */
import { counted, number } from "../words.js";
import { AuditReader } from "./audit.js";

/** @param {Studio} studio its source is a BlindSource */
export function mount(studio) {
  new AuditReader(studio);
  const show = (name, text) => {
    studio.root.querySelector(`[data-audit-show="${name}"]`).textContent = text;
  };
  const render = () => {
    const { outline } = studio.store;
    if (!outline) return;
    show("to-judge", number(outline.left));
    show(
      "left",
      outline.left
        ? `${counted(outline.left, "image")} left to judge.`
        : "No more images of this query for you to judge.",
    );
  };
  studio.on("progress", render);
  studio.on("state", render);
}

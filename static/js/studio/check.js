/** Lets a reviewer mark the image on screen, which they have decided, as one to check people with. */
import { api } from "../api.js";

/** @param {Studio} studio */
export function mount(studio) {
  const pressed = studio.root.querySelector("[data-check]");
  if (!pressed) return;
  const entry = () => studio.store.entry(studio.rank);
  const render = () => {
    pressed.disabled = !["relevant", "not_relevant"].includes(entry()?.relevance);
  };
  for (const event of ["rank", "labels"]) studio.on(event, render);
  pressed.addEventListener("click", async () => {
    const { image } = entry();
    try {
      await studio.outbox.drained();
      await api(`${studio.api}checks/`, { method: "POST", body: { image, marked: true } });
      studio.say("People will be checked with this image.");
    } catch (error) {
      studio.say(`It was not marked: ${error.message}`);
    }
  });
}

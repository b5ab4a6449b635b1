/** The practice's keys: the person's own, each pressing the button or link that names it. */
import { isTyping } from "./dom.js";
import { whyUnseen } from "./seen.js";
import { keysOfEvent } from "./studio/keys.js";

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.repeat || isTyping(event.target)) return;
  const keys = keysOfEvent(event);
  const named = [...document.querySelectorAll("[data-keys]")];
  const pressed = named.find((button) => button.dataset.keys.split(" ").some((key) => keys.includes(key)));
  if (!pressed) return;
  event.preventDefault();
  const image = document.querySelector(".practice-image img");
  const unseen = pressed.name === "answer" && whyUnseen(image.complete && image.naturalWidth ? image : null, image);
  if (unseen) document.querySelector("[data-practice-said]").textContent = unseen;
  else pressed.click();
});

/** The account page and pages with a secret to copy. */
import { button } from "./dom.js";
import { Keymap, KeysDialog } from "./studio/keys.js";

/** A button that copies a secret; browsers give pages their clipboard on secure origins only. */
function mountCopying(secret) {
  if (!navigator.clipboard) return;
  const copy = button("Copy", async () => {
    await navigator.clipboard.writeText(secret.textContent);
    copy.textContent = "Copied";
  });
  secret.after(copy);
}

/** Offers the browser's time zone where the form holds another. */
function mountZone(offer) {
  const field = document.querySelector("select[name=time_zone]");
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  offer.textContent = `Use ${zone}, as this browser`;
  const known = [...field.options].some((option) => option.value === zone);
  const show = () => {
    offer.hidden = !known || field.value === zone;
  };
  offer.addEventListener("click", () => {
    field.value = zone;
    show();
    field.focus();
  });
  field.addEventListener("change", show);
  show();
}

function mountKeys(opener) {
  const given = (id) => JSON.parse(document.getElementById(id).textContent);
  const dialog = new KeysDialog(document.querySelector("[data-keys]"), new Keymap(given("keymap"), given("keys")));
  opener.addEventListener("click", () => dialog.open());
}

for (const [selector, mount] of [
  ["[data-copied]", mountCopying],
  ["[data-zone-offer]", mountZone],
  ["[data-keys-open]", mountKeys],
]) {
  for (const node of document.querySelectorAll(selector)) mount(node);
}

/** Lets only the draw that was shown be applied: with another field it must be previewed again. */

const form = document.querySelector("[data-split-form]");
const apply = document.querySelector("[data-split-apply]");
const state = document.querySelector("[data-split-state]");
if (apply) {
  const chosen = () => new URLSearchParams(new FormData(form)).toString();
  const shown = chosen();
  const unchanged = state.textContent;
  form.addEventListener("input", () => {
    apply.disabled = chosen() !== shown;
    state.textContent = apply.disabled ? "The fields have changed: preview the draw again first." : unchanged;
  });
}

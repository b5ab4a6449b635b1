/** The draw of splits: what was previewed can't be applied once a field has changed. */
const form = document.querySelector("[data-draw]");
const apply = document.querySelector("[data-draw-apply]");

if (apply) {
  const status = document.querySelector("[data-draw-status]");
  const said = status.textContent;
  const shown = new URLSearchParams(new FormData(form)).toString();
  form.addEventListener("input", () => {
    apply.disabled = new URLSearchParams(new FormData(form)).toString() !== shown;
    status.textContent = apply.disabled ? "A field has changed: preview the draw again." : said;
  });
}

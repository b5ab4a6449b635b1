/** Ticking drafts: all at once or one by one, with the number to be opened. */
for (const form of document.querySelectorAll("[data-choose]")) {
  const boxes = [...form.querySelectorAll(`input[name="${form.dataset.choose}"]`)];
  const every = form.querySelector("[data-choose-all]");
  const all = every.querySelector("input");
  const count = form.querySelector("[data-choose-count]");
  const send = form.querySelector("[data-choose-send]");

  const show = () => {
    const chosen = boxes.filter((box) => box.checked).length;
    all.checked = chosen === boxes.length;
    all.indeterminate = chosen > 0 && chosen < boxes.length;
    send.disabled = chosen === 0;
    send.textContent = chosen === 1 ? "Open 1 query" : `Open ${chosen.toLocaleString("en")} queries`;
    if (chosen === 0) send.textContent = "Open queries";
    count.textContent = chosen === 0 ? "Tick the queries to open." : "";
  };

  all.addEventListener("change", () => {
    for (const box of boxes) box.checked = all.checked;
    show();
  });
  form.addEventListener("change", show);
  form.addEventListener("submit", () => {
    count.textContent = "Opening …";
    // Not at once: a disabled button would keep the form from being sent.
    setTimeout(() => (send.disabled = true), 0);
  });
  window.addEventListener("pageshow", show);
  every.hidden = false;
  show();
}

/** The leaderboard's page: sorting at once, choices that apply at once, and a limit to the runs drawn. */
import "./board-sort.js";
import { submitWhenChosen } from "./dom.js";

// The address says how the table is sorted, so that it can be sent on and a reload keeps it.
document.addEventListener("board-sorted", (event) => {
  const { button, wanted } = event.detail;
  if (!button.href) return;
  const address = new URL(button.href);
  if (wanted === "ascending") address.searchParams.set("order", "asc");
  else address.searchParams.delete("order");
  history.replaceState(null, "", address);
});

for (const form of document.querySelectorAll("[data-board-choice]")) submitWhenChosen(form);

for (const form of document.querySelectorAll("[data-board-runs]")) {
  const most = Number(form.dataset.boardRuns);
  const boxes = [...form.querySelectorAll('input[name="run"][type="checkbox"]')];
  const limit = () => {
    const full = boxes.filter((box) => box.checked).length >= most;
    for (const box of boxes) box.disabled = full && !box.checked;
  };
  form.addEventListener("change", limit);
  limit();
}

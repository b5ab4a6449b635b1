/**
 * An exported leaderboard: one [data-board-section] at a time, filters of the methods in all tables, and the columns.
 * Without it everything is shown. No imports: exports hold this file.
 */
const sections = [...document.querySelectorAll("[data-board-section]")];
const tabs = [...document.querySelectorAll(".board-tabs a")];
const filters = document.querySelector("[data-board-filter]");

function showSection() {
  const chosen = sections.find((section) => `#${section.id}` === location.hash) ?? sections[0];
  for (const section of sections) section.hidden = section !== chosen;
  for (const tab of tabs) {
    if (tab.hash === `#${chosen.id}`) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  }
  showRows();
}

function showRows() {
  const words = filters.querySelector("input").value.toLowerCase().split(/\s+/);
  const choices = [...filters.querySelectorAll("select")].filter((select) => select.value);
  for (const table of document.querySelectorAll("table[data-board]")) {
    const rows = [...table.tBodies].flatMap((body) => [...body.rows]);
    for (const row of rows) {
      const name = row.querySelector(".board-name").textContent.toLowerCase();
      row.hidden = !(
        words.every((word) => name.includes(word)) &&
        choices.every((select) => row.dataset[select.name] === select.value)
      );
    }
    const bounds = table.closest("[data-bounds-part]");
    if (bounds) bounds.hidden = rows.every((row) => row.hidden);
  }
  countRows();
}

function countRows() {
  const table = document.querySelector("[data-board-section]:not([hidden]) table[data-board]");
  const rows = [...table.querySelectorAll("tbody tr")];
  const shown = rows.filter((row) => !row.hidden).length;
  const methods = `method${rows.length === 1 ? "" : "s"}`;
  filters.querySelector("output").textContent =
    shown === rows.length
      ? `${shown} ${methods}`
      : `${shown} of ${rows.length} ${methods}. Places, groups and charts are those among all.`;
}

function showColumn(box) {
  for (const table of box.closest("[data-boards]").querySelectorAll("table[data-board]")) {
    const column = [...table.tHead.rows[0].cells].findIndex((cell) => cell.dataset.key === box.value);
    for (const row of table.rows) row.cells[column].hidden = !box.checked;
  }
}

for (const tab of tabs) {
  // Without a jump to the section.
  tab.addEventListener("click", (event) => {
    event.preventDefault();
    history.replaceState(null, "", tab.hash);
    showSection();
  });
}
for (const columns of document.querySelectorAll(".board-columns")) {
  columns.addEventListener("change", (event) => showColumn(event.target));
}
if (filters) {
  filters.addEventListener("input", showRows);
  filters.addEventListener("reset", () => setTimeout(showRows));
  filters.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", showSection);
  showSection();
}

/**
 * Sorts a table[data-board] by the header that is pressed, at once, and with it the others in the same [data-boards].
 * Without it, headers are links.
 * Rows without a figure stay last; equal ones keep their order. No imports: exports hold this file.
 */
const text = new Intl.Collator("en", { sensitivity: "base" });

function compare(a, b, direction) {
  if (a === "" || b === "") return (a === "") - (b === "");
  const numbers = Number(a) - Number(b);
  return direction * (Number.isNaN(numbers) ? text.compare(a, b) : numbers);
}

function sort(header) {
  const now = header.getAttribute("aria-sort");
  const opposite = now === "ascending" ? "descending" : "ascending";
  const wanted = now ? opposite : header.querySelector(".board-sort").dataset.sort;
  const column = [...header.parentElement.children].indexOf(header);
  const boards = header.closest("[data-boards]") ?? header.closest("div");
  for (const table of boards.querySelectorAll("table[data-board]")) sortTable(table, column, wanted);
  return wanted;
}

function sortTable(table, column, wanted) {
  const header = table.tHead.rows[0].children[column];
  const value = (row) => row.children[column].dataset.value ?? "";
  const direction = wanted === "ascending" ? 1 : -1;
  const order = (a, b) => compare(value(a), value(b), direction);
  for (const body of table.tBodies) {
    // A family's first row is the run that the others re-rank.
    const head = "families" in table.dataset ? [body.rows[0]] : [];
    body.append(...head, ...[...body.rows].slice(head.length).sort(order));
  }
  table.append(...[...table.tBodies].sort((a, b) => order(a.rows[0], b.rows[0])));
  for (const other of header.parentElement.children) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", wanted);
}

for (const table of document.querySelectorAll("table[data-board]")) {
  table.tHead.addEventListener("click", (event) => {
    const button = event.target.closest(".board-sort");
    if (!button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const wanted = sort(button.closest("th"));
    table.dispatchEvent(new CustomEvent("board-sorted", { bubbles: true, detail: { button, wanted } }));
  });
}

/**
 * Sorts a table[data-board] by the header that is pressed, at once. Without it, headers are links.
 * Rows without a figure stay last; equal ones keep their order. No imports: exports hold this file.
 */
const text = new Intl.Collator("en", { sensitivity: "base" });

function compare(a, b, direction) {
  if (a === "" || b === "") return (a === "") - (b === "");
  const numbers = Number(a) - Number(b);
  return direction * (Number.isNaN(numbers) ? text.compare(a, b) : numbers);
}

function sort(header) {
  const button = header.querySelector(".board-sort");
  const now = header.getAttribute("aria-sort");
  const opposite = now === "ascending" ? "descending" : "ascending";
  const wanted = now ? opposite : button.dataset.sort;
  const column = [...header.parentElement.children].indexOf(header);
  const body = header.closest("table").tBodies[0];
  const value = (row) => row.children[column].dataset.value ?? "";
  const rows = [...body.rows];
  rows.sort((a, b) => compare(value(a), value(b), wanted === "ascending" ? 1 : -1));
  body.append(...rows);
  for (const other of header.parentElement.children) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", wanted);
  return wanted;
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

/** The columns of an uploaded table: nothing is imported until what was changed has been looked at. */

const form = document.querySelector("[data-columns]");

/** Fields that two columns are read as. */
function doubled(selects) {
  const kept = (select) => select.value === "" || select.value.startsWith("kept:");
  const seen = new Map();
  for (const select of selects.filter((one) => !kept(one))) {
    seen.set(select.value, [...(seen.get(select.value) ?? []), select]);
  }
  return [...seen.values()].filter((same) => same.length > 1);
}

if (form) {
  const selects = [...form.querySelectorAll('select[name^="column-"]')];
  const problem = form.querySelector("[data-columns-problem]");
  const look = form.querySelector("[data-columns-look]");
  const importing = document.querySelector("[data-import]");
  const hint = document.querySelector("[data-import-hint]");

  form.addEventListener("change", () => {
    const [same] = doubled(selects);
    problem.hidden = !same;
    look.disabled = Boolean(same);
    if (same) {
      const names = same.map((select) => `“${select.labels[0].textContent.trim()}”`).join(" and ");
      problem.textContent = `${names} are both read as “${same[0].selectedOptions[0].text}”. Choose one.`;
    }
    for (const select of selects) select.setAttribute("aria-invalid", String(Boolean(same?.includes(select))));
    importing.disabled = true;
    hint.hidden = false;
    hint.textContent = "Look again first: columns were changed.";
    look.classList.add("primary");
  });
}

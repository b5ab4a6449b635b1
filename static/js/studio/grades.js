/** The four grades of a query that asks for them, by buttons and keys, each with its reason if one stands in the field. */

/** @param {Studio} studio */
export function mount(studio) {
  /** The least grade that is relevant. */
  const least = studio.page.least_relevant_grade;
  const reason = studio.root.querySelector("[data-reason]");
  const give = (grade) => {
    if (studio.view !== "single") {
      studio.say("Grades are given in the single view.");
      return;
    }
    const between = grade === 1 || grade === 2;
    studio.views.single.mark(grade >= least ? "relevant" : "not_relevant", {
      grade,
      reason: between && reason ? reason.value.trim() : "",
    });
  };
  for (const grade of [0, 1, 2, 3]) studio.action(`grade_${grade}`, () => give(grade));
  if (!reason) return;
  // A reason is of the image on the screen.
  studio.on("rank", () => {
    reason.value = "";
  });
  reason.addEventListener("keydown", (event) => {
    if (event.key === "Enter") reason.blur();
  });
}

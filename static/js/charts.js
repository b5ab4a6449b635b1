/** Draws each [data-vega] from the Vega-Lite specification in it, once its place is displayed. */
const OPTIONS = {
  mode: "vega-lite",
  renderer: "svg",
  actions: false,
  // Expressions are interpreted: the content-security policy forbids evaluating them.
  ast: true,
  defaultStyle: false,
  tooltip: false,
  patch: layOutNames,
};

/** Vega-Lite has no layout of labels: names stand beside their points, none over another, and those without room are left out. */
function layOutNames(spec) {
  const names = spec.marks.find((mark) => mark.name === "names_marks");
  if (names) {
    names.transform = [
      {
        type: "label",
        size: { signal: "[max(width, 1), height]" },
        anchor: ["right", "left", "top", "bottom"],
        offset: [8],
        avoidMarks: ["points_marks"],
      },
    ];
  }
  return spec;
}

let library;

function vega() {
  // An exported page contains it.
  library ??= window.vegaEmbed ? Promise.resolve() : import(document.querySelector("[data-vega-source]").href);
  return library;
}

/** Widens the drawing to `width` of its own pixels, with the empty space at its left. */
function frame(svg, width) {
  const [drawn, height] = ["width", "height"].map((name) => Number(svg.getAttribute(name)));
  const whole = Math.max(width, drawn);
  svg.setAttribute("viewBox", `${drawn - whole} 0 ${whole} ${height}`);
}

async function draw(node) {
  const place = node.querySelector("[data-vega-place]");
  try {
    await vega();
    await window.vegaEmbed(place, JSON.parse(node.querySelector("script").textContent), OPTIONS);
    const svg = place.querySelector("svg");
    // The label of its container describes it.
    svg.setAttribute("aria-hidden", "true");
    frame(svg, Number(node.dataset.vega));
  } catch (error) {
    place.textContent = "This chart can’t be drawn here; its figures are in the table.";
    throw error;
  }
}

// A chart that isn't displayed has no width to fill.
const displayed = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      displayed.unobserve(target);
      draw(target);
    }
  },
  { rootMargin: "100000px" },
);
for (const node of document.querySelectorAll("[data-vega]")) displayed.observe(node);

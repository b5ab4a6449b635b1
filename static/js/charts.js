/** Draws each [data-vega] from the Vega-Lite specification in it, once its place is displayed. */
const OPTIONS = {
  mode: "vega-lite",
  renderer: "svg",
  actions: false,
  // Expressions are interpreted: the content-security policy forbids evaluating them.
  ast: true,
  defaultStyle: false,
  tooltip: false,
};

let library;

function vega() {
  // An exported page contains it.
  library ??= window.vegaEmbed
    ? Promise.resolve()
    : import(document.querySelector("[data-vega-source]").href);
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

// One of a chart's sizes is displayed; which one depends on the window.
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
document.querySelectorAll("[data-vega]").forEach((node) => displayed.observe(node));

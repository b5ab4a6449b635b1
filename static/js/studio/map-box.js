/** A box on a map of the world: drawn with mouse or finger, or typed as four numbers. It may cross the 180th meridian. */
const NAMESPACE = "http://www.w3.org/2000/svg";
const WORLDS = [-360, 0, 360];
const CLOSEST = 16;
/** A shorter drag was a click. */
const DRAG_PIXELS = 5;

/**
 * Degrees; with west > east the box crosses the 180th meridian.
 * @typedef {{west: number, south: number, east: number, north: number}} Box
 */

/** A longitude as numbers are written, -180 to 180. */
function longitude(degrees) {
  const within = (((degrees + 180) % 360) + 360) % 360;
  return within - 180;
}

/**
 * The box between two points of the map, which goes on to the left and right of the world.
 * @param {{x: number, y: number}} from longitude and latitude, the longitude of any size
 * @param {{x: number, y: number}} to
 * @param {number} decimals to which it is rounded
 * @returns {Box}
 */
function boxBetween(from, to, decimals = 1) {
  const round = (value) => Number(value.toFixed(decimals));
  const lat = (y) => round(Math.min(90, Math.max(-90, y)));
  const [left, right] = [Math.min(from.x, to.x), Math.max(from.x, to.x)];
  const [south, north] = [lat(Math.min(from.y, to.y)), lat(Math.max(from.y, to.y))];
  if (right - left >= 360) return { west: -180, south, east: 180, north };
  const west = round(longitude(left));
  const east = round(longitude(right));
  return { west: west === 180 ? -180 : west, south, east: east === -180 ? 180 : east, north };
}

/** The problem with four typed values ("" where one is missing); "" for a valid box or no values at all. */
function boxProblem(values) {
  const given = Object.values(values).filter((value) => value !== "");
  if (!given.length) return "";
  if (given.length < 4) return "Fill in all four numbers.";
  const { west, south, east, north } = values;
  if ([west, east].some((value) => !(Math.abs(value) <= 180))) return "West and east are from -180 to 180.";
  if ([south, north].some((value) => !(Math.abs(value) <= 90))) return "South and north are from -90 to 90.";
  if (Number(south) > Number(north)) return "South must not be greater than north.";
  return "";
}

/** "12° W to 30° E, 35° N to 60° N". */
export function boxInWords({ west, south, east, north }) {
  const side = (value, positive, negative) => {
    if (!value) return "0°";
    return `${Math.abs(value)}° ${value > 0 ? positive : negative}`;
  };
  return `${side(west, "E", "W")} to ${side(east, "E", "W")}, ${side(south, "N", "S")} to ${side(north, "N", "S")}`;
}

export class MapBox {
  /**
   * @param {HTMLElement} root as templates/labeling/studio/_filters.html draws it
   * @param {{changed: (box: Box|null) => void}} options
   */
  constructor(root, { changed }) {
    const part = (name) => root.querySelector(`[data-map-${name}]`);
    this.changed = changed;
    this.view = part("view");
    this.boxes = part("boxes");
    this.problem = part("problem");
    this.tools = { closer: part("in"), farther: part("out"), move: part("move"), clear: part("clear") };
    this.edges = Object.fromEntries(
      [...root.querySelectorAll("[data-map-edge]")].map((input) => [input.dataset.mapEdge, input]),
    );
    /** @type {Box|null} */
    this.box = null;
    this.zoom = 1;
    this.center = { x: 0, y: 0 };
    this.#land(part("land"));
    this.#listen();
    this.#show();
  }

  /** Sets the box, or none, without calling `changed`. */
  set(box) {
    this.box = box;
    for (const [edge, input] of Object.entries(this.edges)) input.value = box ? String(box[edge]) : "";
    this.#showProblem("");
    this.#draw();
  }

  #land(group) {
    for (const offset of WORLDS) {
      const land = document.createElementNS(NAMESPACE, "use");
      land.setAttribute("href", group.dataset.land);
      land.setAttribute("x", String(offset));
      group.append(land);
    }
  }

  #listen() {
    const { closer, farther, move, clear } = this.tools;
    closer.addEventListener("click", () => this.#zoomTo(this.zoom * 2));
    farther.addEventListener("click", () => this.#zoomTo(this.zoom / 2));
    move.addEventListener("click", () => {
      const on = move.getAttribute("aria-pressed") !== "true";
      move.setAttribute("aria-pressed", String(on));
      this.view.classList.toggle("moving", on);
    });
    clear.addEventListener("click", () => this.#take(null));
    for (const input of Object.values(this.edges)) input.addEventListener("input", () => this.#typed());
    this.view.addEventListener("pointerdown", (event) => this.#press(event));
    this.view.addEventListener("pointermove", (event) => this.#drag(event));
    this.view.addEventListener("pointerup", (event) => this.#release(event));
    this.view.addEventListener("pointercancel", () => this.#cancel());
    this.view.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        this.#zoomTo(this.zoom * 2 ** (-Math.sign(event.deltaY) / 2), this.#point(event));
      },
      { passive: false },
    );
    document.addEventListener(
      "keydown",
      (event) => {
        if (event.key !== "Escape" || !this.pressed) return;
        event.preventDefault();
        event.stopPropagation();
        this.#cancel();
      },
      true,
    );
  }

  get #moving() {
    return this.tools.move.getAttribute("aria-pressed") === "true";
  }

  /** Where on the map an event is, in degrees; the longitude may be beyond 180. */
  #point({ clientX, clientY }) {
    const { left, top, width, height } = this.view.getBoundingClientRect();
    return {
      x: this.center.x + ((clientX - left) / width - 0.5) * (360 / this.zoom),
      y: this.center.y - ((clientY - top) / height - 0.5) * (180 / this.zoom),
    };
  }

  #press(event) {
    if (event.button !== 0 || this.pressed) return;
    event.preventDefault();
    this.view.setPointerCapture(event.pointerId);
    this.pressed = { x: event.clientX, y: event.clientY, from: this.#point(event), center: { ...this.center } };
  }

  #drag(event) {
    const { pressed } = this;
    if (!pressed) return;
    pressed.dragged ||= Math.hypot(event.clientX - pressed.x, event.clientY - pressed.y) >= DRAG_PIXELS;
    if (!pressed.dragged) return;
    if (this.#moving) {
      this.center = { ...pressed.center };
      const here = this.#point(event);
      this.center = { x: pressed.center.x + pressed.from.x - here.x, y: pressed.center.y + pressed.from.y - here.y };
      this.#show();
    } else {
      this.#draw({ from: pressed.from, to: this.#point(event) });
    }
  }

  #release(event) {
    const { pressed } = this;
    this.pressed = null;
    if (!pressed?.dragged || this.#moving) return;
    const box = boxBetween(pressed.from, this.#point(event), this.zoom > 2 ? 2 : 1);
    if (box.north > box.south && box.west !== box.east) this.#take(box);
    else this.#draw();
  }

  #cancel() {
    this.pressed = null;
    this.#draw();
  }

  #take(box) {
    this.set(box);
    this.changed(box);
  }

  #typed() {
    const values = Object.fromEntries(Object.entries(this.edges).map(([edge, input]) => [edge, input.value.trim()]));
    const problem = boxProblem(values);
    this.#showProblem(problem);
    const none = problem || values.west === "";
    const before = JSON.stringify(this.box);
    this.box = none ? null : Object.fromEntries(Object.entries(values).map(([edge, value]) => [edge, Number(value)]));
    this.#draw();
    if (JSON.stringify(this.box) !== before) this.changed(this.box);
  }

  #showProblem(problem) {
    this.problem.textContent = problem;
    this.problem.hidden = !problem;
  }

  #zoomTo(zoom, at = this.center) {
    const before = this.zoom;
    this.zoom = Math.min(CLOSEST, Math.max(1, zoom));
    const ratio = before / this.zoom;
    this.center = { x: at.x + (this.center.x - at.x) * ratio, y: at.y + (this.center.y - at.y) * ratio };
    this.#show();
  }

  /** Applies the view: latitudes end at the poles, longitudes wrap around. */
  #show() {
    const [width, height] = [360 / this.zoom, 180 / this.zoom];
    const most = 90 - height / 2;
    this.center = { x: longitude(this.center.x), y: Math.min(most, Math.max(-most, this.center.y)) };
    this.view.setAttribute("viewBox", `${this.center.x - width / 2} ${-this.center.y - height / 2} ${width} ${height}`);
    this.tools.closer.disabled = this.zoom >= CLOSEST;
    this.tools.farther.disabled = this.zoom <= 1;
    this.#draw();
  }

  /** Draws the box that there is, or the one that is being drawn. */
  #draw(drawn = null) {
    let span = null;
    if (drawn) {
      const { from, to } = drawn;
      const [south, north] = [Math.min(from.y, to.y), Math.max(from.y, to.y)];
      span = { x: Math.min(from.x, to.x), width: Math.abs(to.x - from.x), south, north };
    } else if (this.box) {
      const { west, south, east, north } = this.box;
      span = { x: west, width: east - west + (west > east ? 360 : 0), north, south };
    }
    this.boxes.replaceChildren();
    for (const offset of span ? WORLDS : []) {
      const rect = document.createElementNS(NAMESPACE, "rect");
      rect.setAttribute("x", String(span.x + offset));
      rect.setAttribute("y", String(-span.north));
      rect.setAttribute("width", String(span.width));
      rect.setAttribute("height", String(span.north - span.south));
      this.boxes.append(rect);
    }
    this.tools.clear.disabled = !this.box && Object.values(this.edges).every(({ value }) => !value);
  }
}

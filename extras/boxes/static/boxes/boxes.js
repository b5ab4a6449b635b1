/** Drawing boxes on the relevant images of a query: one drag a box, one key an image. */
import { api, uuid } from "../js/api.js";
import { button, isTyping, make } from "../js/dom.js";
import { whyUnseen } from "../js/seen.js";
import { keysOfEvent } from "../js/studio/keys.js";
import { counted } from "../js/words.js";

/** Screen pixels from an edge within which it is taken hold of: a finger's are larger. */
const HOLD = { mouse: 7, pen: 9, touch: 20 };
/** Screen pixels of a drag below which it is a click. */
const CLICK = 4;
/** The share of an image's larger side by which an arrow key moves or changes a box. */
const STEP = 0.01;
const RETRY = 3000;
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
/** What keys do, as `keysOfEvent` writes them. */
const ACTIONS = {
  Enter: "save",
  Space: "save",
  0: "none",
  Backspace: "remove",
  Delete: "remove",
  ArrowLeft: "back",
  z: "undo",
  "Ctrl+z": "undo",
  g: "group",
  b: "make",
};
const SVG = "http://www.w3.org/2000/svg";

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** What is to be sent, kept in this browser until the server has it: one person's, of one query. */
class Unsent {
  constructor(address, key, changed) {
    Object.assign(this, { address, key, changed, sending: false });
    window.addEventListener("online", () => this.send());
    window.addEventListener("beforeunload", (event) => this.all.length && event.preventDefault());
  }

  get all() {
    return JSON.parse(localStorage.getItem(this.key) ?? "[]");
  }

  #keep(all) {
    localStorage.setItem(this.key, JSON.stringify(all));
    this.changed(all.length);
  }

  add(set) {
    this.#keep([...this.all, set]);
    this.send();
  }

  /** Sends the oldest first, one after the other, and tries again where the server can't be reached. */
  async send() {
    if (this.sending) return;
    this.sending = true;
    let refused = "";
    try {
      for (let [first] = this.all; first; [first] = this.all) {
        try {
          await api(this.address, { method: "POST", body: first });
        } catch (error) {
          if (error.status === 0 || error.status >= 500 || error.status === 429) {
            setTimeout(() => this.send(), RETRY);
            break;
          }
          refused = `Image ${first.image} was not saved: ${error.message}`;
        }
        this.#keep(this.all.filter((one) => one.client_id !== first.client_id));
      }
    } finally {
      this.sending = false;
      this.changed(this.all.length, refused);
    }
  }
}

/** An image with its boxes, which are drawn, moved and deleted. */
class Canvas {
  constructor(root, { most, say, changed }) {
    Object.assign(this, { root, most, say, changed, task: null, boxes: [], selected: null, steps: [] });
  }

  /** @param {object|null} task as the API has it */
  show(task, boxes) {
    this.task = task;
    this.boxes = boxes.map((box) => ({ bbox: [...box.bbox], group: box.group }));
    this.selected = null;
    this.steps = [];
    const { width, height } = task;
    const image = svg("image", { href: task.url, width, height });
    image.addEventListener("load", () => (image.dataset.loaded = ""));
    this.layer = svg("g");
    this.svg = svg(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "The image with its boxes" },
      image,
      this.layer,
    );
    this.svg.addEventListener("pointerdown", (event) => this.#down(event));
    this.root.replaceChildren(this.svg);
    this.draw();
  }

  clear(text) {
    this.task = null;
    this.root.replaceChildren(make("p", { class: "empty", text }));
  }

  /** How many pixels of the image a screen pixel is. */
  get scale() {
    return 1 / (this.svg.getScreenCTM()?.a || 1);
  }

  draw() {
    const unit = this.scale;
    const others = this.task.others.flatMap(({ boxes }, person) =>
      boxes.map(({ bbox: [x, y, width, height] }) =>
        svg("g", { class: `box-other${person % 2 ? " second" : ""}` }, svg("rect", { x, y, width, height })),
      ),
    );
    const own = this.boxes.map(({ bbox: [x, y, width, height], group }, place) => {
      const tag = 18 * unit;
      const classes = ["box-shape", place === this.selected && "selected", group && "group"];
      const label = svg("text", { x: x + tag / 2, y: y + tag / 2, "font-size": 12 * unit });
      label.textContent = String(place + 1);
      const shape = svg(
        "g",
        {
          class: classes.filter(Boolean).join(" "),
          tabindex: 0,
          role: "button",
          "aria-pressed": place === this.selected,
          "aria-label": `Box ${place + 1}${group ? ", a group" : ""}`,
        },
        svg("rect", { x, y, width, height, class: "box-halo" }),
        svg("rect", { x, y, width, height }),
        svg("rect", { x, y, width: tag, height: tag, class: "box-tag" }),
        label,
      );
      shape.addEventListener("focus", () => this.select(place));
      return shape;
    });
    this.layer.replaceChildren(...others, ...own);
    this.changed();
  }

  select(place) {
    if (place === this.selected) return;
    this.selected = place;
    this.draw();
    if (place !== null) this.layer.querySelectorAll(".box-shape")[place].focus({ preventScroll: true });
  }

  /** Notes how it is before a change. */
  #step() {
    this.steps.push(JSON.stringify(this.boxes));
  }

  undo() {
    const before = this.steps.pop();
    if (before === undefined) return;
    this.boxes = JSON.parse(before);
    this.selected = null;
    this.draw();
  }

  #full() {
    if (this.boxes.length < this.most) return false;
    this.say(`An image has up to ${this.most} boxes. Box more as one group.`);
    return true;
  }

  /** A box in the middle, to be moved by keys. */
  make() {
    if (this.#full()) return;
    const { width, height } = this.task;
    this.#step();
    this.boxes.push({ bbox: [width / 4, height / 4, width / 2, height / 2], group: false });
    this.select(this.boxes.length - 1);
  }

  remove() {
    const place = this.selected ?? this.boxes.length - 1;
    if (place < 0) return;
    this.#step();
    this.boxes.splice(place, 1);
    this.selected = null;
    this.draw();
  }

  group() {
    const box = this.boxes[this.selected ?? this.boxes.length - 1];
    if (!box) return;
    this.#step();
    box.group = !box.group;
    this.draw();
  }

  take(boxes) {
    this.#step();
    this.boxes = boxes.map((box) => ({ bbox: [...box.bbox], group: box.group }));
    this.selected = null;
    this.draw();
  }

  /** Moves the selected box, or with `size` its lower right corner; false without one. */
  nudge(right, down, size) {
    const box = this.boxes[this.selected];
    if (!box) return false;
    this.#step();
    const step = STEP * Math.max(this.task.width, this.task.height);
    this.#place(box, box.bbox, size ? "se" : "move", right * step, down * step);
    this.draw();
    return true;
  }

  #point(event) {
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
    return [clamp(x, 0, this.task.width), clamp(y, 0, this.task.height)];
  }

  /** What a press there takes hold of: `{place, part}`, an edge or corner ("n", "se") or "move"; null for nothing. */
  #held(x, y, kind) {
    const unit = this.scale;
    const near = HOLD[kind] * unit;
    const tag = Math.max(18, kind === "touch" ? 26 : 0) * unit;
    const first = this.selected === null ? [] : [this.selected];
    const places = [...first, ...this.boxes.keys()];
    for (const place of places) {
      const [left, top, width, height] = this.boxes[place].bbox;
      if (x >= left && x <= left + tag && y >= top && y <= top + tag && (width > 2 * tag || height > 2 * tag)) {
        return { place, part: "move" };
      }
      if (x < left - near || x > left + width + near || y < top - near || y > top + height + near) continue;
      // Of a small box the inner edges leave room for a click.
      const within = Math.min(near, width / 4, height / 4);
      const vertical = y < top + within ? "n" : y > top + height - within ? "s" : "";
      const horizontal = x < left + within ? "w" : x > left + width - within ? "e" : "";
      if (vertical || horizontal) return { place, part: vertical + horizontal };
    }
    return null;
  }

  #down(event) {
    if (event.button !== 0 || !this.task) return;
    event.preventDefault();
    const { svg: surface, task } = this;
    surface.setPointerCapture(event.pointerId);
    const start = this.#point(event);
    const held = this.#held(...start, event.pointerType in HOLD ? event.pointerType : "mouse");
    const before = held && [...this.boxes[held.place].bbox];
    let moving = false;

    const move = (moved) => {
      const far = Math.hypot(moved.clientX - event.clientX, moved.clientY - event.clientY);
      if (!moving && far < CLICK) return;
      if (!moving && !held && this.#full()) {
        end();
        return;
      }
      if (!moving) this.#step();
      const [x, y] = this.#point(moved);
      if (held) {
        this.selected = held.place;
        this.#place(this.boxes[held.place], before, held.part, x - start[0], y - start[1]);
      } else {
        if (!moving) this.boxes.push({ bbox: [], group: false });
        this.selected = this.boxes.length - 1;
        this.boxes.at(-1).bbox = [
          Math.min(x, start[0]),
          Math.min(y, start[1]),
          Math.abs(x - start[0]),
          Math.abs(y - start[1]),
        ];
      }
      moving = true;
      this.draw();
    };
    const end = () => {
      surface.removeEventListener("pointermove", move);
      surface.removeEventListener("pointerup", up);
      surface.removeEventListener("pointercancel", up);
    };
    const up = () => {
      end();
      if (task !== this.task) return;
      const drawn = this.boxes[this.selected]?.bbox;
      if (moving && !held && Math.min(drawn[2], drawn[3]) < 1) this.undo();
      else if (!moving) this.select(held?.part === "move" ? held.place : this.#smallest(...start));
      else this.draw();
    };
    surface.addEventListener("pointermove", move);
    surface.addEventListener("pointerup", up);
    surface.addEventListener("pointercancel", up);
  }

  #smallest(x, y) {
    const holds = ({ bbox: [left, top, width, height] }) =>
      x >= left && x <= left + width && y >= top && y <= top + height;
    const area = ({ bbox: [, , width, height] }) => width * height;
    const around = [...this.boxes.entries()]
      .filter(([, box]) => holds(box))
      .sort(([, one], [, other]) => area(one) - area(other));
    return around[0]?.[0] ?? null;
  }

  /** Gives a box the place that it has after a drag from `before`, within the image. */
  #place(box, [x, y, width, height], part, right, down) {
    const most = this.task;
    if (part === "move") {
      box.bbox = [clamp(x + right, 0, most.width - width), clamp(y + down, 0, most.height - height), width, height];
      return;
    }
    let [left, top, farX, farY] = [x, y, x + width, y + height];
    if (part.includes("w")) left = clamp(left + right, 0, farX - 1);
    if (part.includes("e")) farX = clamp(farX + right, left + 1, most.width);
    if (part.includes("n")) top = clamp(top + down, 0, farY - 1);
    if (part.includes("s")) farY = clamp(farY + down, top + 1, most.height);
    box.bbox = [left, top, farX - left, farY - top];
  }
}

class Boxes {
  constructor(root) {
    this.root = root;
    const part = (name) => root.querySelector(`[data-boxes-${name}]`);
    [this.place, this.saved, this.said] = ["place", "saved", "said"].map(part);
    const { api: address, kind, most, query } = root.dataset;
    Object.assign(this, { address, kind, tasks: [], at: 0, done: new Set(), left: 0, more: true });
    const user = document.querySelector('meta[name="user-id"]').content;
    this.unsent = new Unsent(address, `boxes ${user} ${query}`, (waiting, refused) => {
      const done = this.saved.textContent ? "All saved" : "";
      this.saved.textContent = waiting ? `${counted(waiting, "image")} not saved yet` : done;
      if (refused) this.say(refused);
    });
    this.canvas = new Canvas(part("canvas"), {
      most: Number(most),
      say: (text) => this.say(text),
      changed: () => this.#buttons(),
    });
    this.actions = {
      save: () => this.#save(),
      none: () => this.#none(),
      back: () => this.#go(this.at - 1),
      undo: () => this.canvas.undo(),
      remove: () => this.canvas.remove(),
      group: () => this.canvas.group(),
      make: () => this.canvas.make(),
    };
    for (const one of root.querySelectorAll("[data-boxes-do]")) {
      one.addEventListener("click", () => {
        this.actions[one.dataset.boxesDo]();
        one.blur();
      });
    }
    document.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.canvas.task && this.canvas.draw()).observe(root);
  }

  async start() {
    await this.unsent.send();
    await this.#read();
  }

  say(text) {
    this.said.textContent = text;
  }

  /** Reads what waits, and shows the first that isn't done here. */
  async #read() {
    try {
      const { count, results } = await api(`${this.address}?kind=${this.kind}`);
      const known = new Set(this.tasks.map(({ image }) => image));
      const added = results.filter(({ image }) => !known.has(image));
      this.left = count - results.filter(({ image }) => this.done.has(image)).length;
      this.more = added.length > 0 && count > results.length;
      this.tasks.push(...added);
    } catch (error) {
      this.canvas.clear(error.message);
      this.canvas.root.append(button("Try again", () => this.#read()));
      return;
    }
    this.#go(this.at);
  }

  #go(at) {
    if (at < 0) {
      this.say("This is the first image.");
      return;
    }
    this.at = at;
    const task = this.tasks[at];
    if (!task) {
      if (this.more) this.#read();
      else this.canvas.clear(this.kind === "waiting" ? "No image waits for your boxes." : "There are no more images.");
      this.place.textContent = "";
      this.#buttons();
      return;
    }
    const open = this.kind === "own" ? this.tasks.length : this.left;
    this.place.textContent = this.kind === "own" ? `Image ${at + 1} of ${open}` : `${counted(open, "image")} left`;
    this.canvas.show(task, task.own?.boxes ?? []);
    this.#takers(task);
    const next = this.tasks[at + 1];
    if (next) new Image().src = next.url;
  }

  /** Of a disputed image, whose boxes are which, and buttons that take them. */
  #takers({ others }) {
    this.said.replaceChildren(
      ...others.map(({ annotator, boxes }, person) =>
        button(
          `Take ${annotator}’s ${counted(boxes.length, "box", "boxes")} (${person % 2 ? "green" : "pink"})`,
          ({ target }) => {
            this.canvas.take(boxes);
            // Enter saves then.
            target.blur();
          },
        ),
      ),
    );
  }

  #buttons() {
    const { task, boxes, selected } = this.canvas;
    for (const one of this.root.querySelectorAll("[data-boxes-do]")) one.disabled = !task;
    const chosen = boxes[selected ?? boxes.length - 1];
    this.root.querySelector('[data-boxes-do="group"]').setAttribute("aria-pressed", Boolean(task && chosen?.group));
  }

  #save() {
    const { task, boxes } = this.canvas;
    if (!task) return;
    if (!boxes.length) {
      this.say("Draw a box first, or press 0 where none is possible.");
      return;
    }
    this.#store(task, boxes);
  }

  #none() {
    if (this.canvas.task) this.#store(this.canvas.task, []);
  }

  #store(task, boxes) {
    const rounded = boxes.map(({ bbox, group }) => ({ bbox: bbox.map((one) => Math.round(one * 100) / 100), group }));
    task.own = { boxes: rounded };
    if (!this.done.has(task.image)) this.left -= 1;
    this.done.add(task.image);
    this.unsent.add({ image: task.image, boxes: rounded, client_id: uuid() });
    this.#go(this.at + 1);
  }

  #key(event) {
    if (event.defaultPrevented || isTyping(event.target)) return;
    const keys = keysOfEvent(event);
    if (["Enter", "Space"].includes(keys[0]) && event.target.matches("a, button, summary")) return;
    const { canvas } = this;
    const arrow = ARROWS[keys[0]?.replace("Shift+", "")];
    const [named] = keys.flatMap((key) => ACTIONS[key] ?? []);
    if (canvas.task && arrow && canvas.nudge(...arrow, event.shiftKey)) event.preventDefault();
    else if (keys[0] === "Escape" && canvas.task) canvas.select(null);
    else if (named) {
      if (event.repeat && ["save", "none"].includes(named)) return;
      event.preventDefault();
      const stores = canvas.task && (named === "none" || (named === "save" && canvas.boxes.length));
      const unseen = stores && whyUnseen(canvas.root.querySelector("[data-loaded]"), canvas.root);
      if (unseen) this.say(unseen);
      else if (canvas.task || named === "back") this.actions[named]();
    }
  }
}

new Boxes(document.querySelector("#boxes")).start();

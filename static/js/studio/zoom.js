/**
 * Zooms and pans the image in a box: wheel, pinch, drag, double tap, keys.
 *
 * The image has its own pixels as its size and is scaled by a transform, so a scale of 1 shows the original
 * pixels and nothing on the page is laid out again. What stays while stepping through images of different sizes is
 * the enlargement over "fits the box" (or "original pixels") and the relative place that is in the middle.
 */
const STEP = 1.25;
const LARGEST = 4;
const TAP_SLACK = 10;
const TAP_WITHIN = 320;
const SWIPE_AT_LEAST = 48;

export class Zoom extends EventTarget {
  /** Fires "change" after each change, and "swipe" (detail: "left" or "right") of a finger when the image fits. */
  constructor(box) {
    super();
    this.box = box;
    this.img = null;
    this.mode = { kind: "fit" };
    this.center = { x: 0.5, y: 0.5 };
    this.pointers = new Map();
    this.lastTap = null;
    this.#measure();
    new ResizeObserver(() => {
      this.#measure();
      this.#apply();
    }).observe(box);
    this.#listen();
  }

  /** Places another image, as far enlarged as the one before. */
  attach(img) {
    this.img = img;
    if (!img) return;
    if (!this.width) this.#measure();
    img.style.width = `${img.naturalWidth}px`;
    img.style.height = `${img.naturalHeight}px`;
    this.#apply();
  }

  get fitting() {
    const { naturalWidth: width = 1, naturalHeight: height = 1 } = this.img ?? {};
    return Math.min(this.width / width, this.height / height) || 1;
  }

  /** Screen pixels per pixel of the image. */
  get scale() {
    const fitting = this.fitting;
    if (this.mode.kind === "fit") return fitting;
    if (this.mode.kind === "pixels") return 1;
    return this.#limited(fitting * this.mode.factor);
  }

  /** Whether more is there than the box shows. */
  get zoomed() {
    return this.scale > this.fitting * 1.001;
  }

  zoomBy(factor, at = null) {
    const wanted = this.#limited(this.scale * factor);
    const fitting = this.fitting;
    const crossing = (this.scale - fitting) * (wanted - fitting) < 0;
    if (crossing || Math.abs(wanted / fitting - 1) < 0.005) this.fit();
    else this.#to(wanted, { kind: "factor", factor: wanted / fitting }, at);
  }

  zoomIn() {
    this.zoomBy(STEP);
  }

  zoomOut() {
    this.zoomBy(1 / STEP);
  }

  fit() {
    this.mode = { kind: "fit" };
    this.center = { x: 0.5, y: 0.5 };
    this.#apply();
  }

  /** One pixel of the image for one of the page. */
  pixels(at = null) {
    this.#to(1, { kind: "pixels" }, at);
  }

  /** Between fitting and original pixels; twice as large where the image is small. */
  toggle(at = null) {
    if (this.mode.kind !== "fit") this.fit();
    else if (this.fitting < 0.8) this.pixels(at);
    else this.zoomBy(2, at);
  }

  /** Moves what is shown by screen pixels; false when all of the image is there already. */
  pan(right, down) {
    if (!this.zoomed) return false;
    const { width, height } = this.#size();
    this.center = this.#within({ x: this.center.x + right / width, y: this.center.y + down / height });
    this.#apply();
    return true;
  }

  #measure() {
    this.width = this.box.clientWidth;
    this.height = this.box.clientHeight;
  }

  #limited(scale) {
    const fitting = this.fitting;
    return Math.min(Math.max(scale, Math.min(fitting, 1)), Math.max(LARGEST, fitting * 2));
  }

  #size(scale = this.scale) {
    return { width: this.img.naturalWidth * scale, height: this.img.naturalHeight * scale };
  }

  /** The nearest middle at which the image leaves no gap that it could fill. */
  #within({ x, y }, scale = this.scale) {
    const { width, height } = this.#size(scale);
    const held = (value, inside, whole) => {
      const half = Math.min(0.5, inside / whole / 2);
      return Math.min(Math.max(value, half), 1 - half);
    };
    return { x: held(x, this.width, width), y: held(y, this.height, height) };
  }

  /** Changes the scale such that the point of the image under `at` (in the box) stays there. */
  #to(scale, mode, at) {
    if (!this.img) return;
    const from = this.scale;
    const middle = this.#within(this.center, from);
    if (at) {
      const old = this.#size(from);
      const fresh = this.#size(scale);
      const [right, down] = [at.x - this.width / 2, at.y - this.height / 2];
      middle.x += right / old.width - right / fresh.width;
      middle.y += down / old.height - down / fresh.height;
    }
    this.mode = mode;
    this.center = this.#within(middle, scale);
    this.#apply();
  }

  #apply() {
    if (!this.img) return;
    const { scale } = this;
    const { width, height } = this.#size(scale);
    const middle = this.#within(this.center, scale);
    const left = this.width / 2 - middle.x * width;
    const top = this.height / 2 - middle.y * height;
    this.img.style.transform = `translate(${left}px, ${top}px) scale(${scale})`;
    this.box.classList.toggle("zoomed", this.zoomed);
    this.dispatchEvent(new Event("change"));
  }

  #listen() {
    const { box } = this;
    box.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    box.addEventListener("pointerdown", (event) => this.#down(event));
    box.addEventListener("pointermove", (event) => this.#move(event));
    box.addEventListener("pointerup", (event) => this.#up(event));
    box.addEventListener("pointercancel", (event) => this.pointers.delete(event.pointerId));
    box.addEventListener("dragstart", (event) => event.preventDefault());
  }

  #at(event) {
    const { left, top } = this.box.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  }

  #wheel(event) {
    event.preventDefault();
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    // A touchpad's pinch comes as small steps with Ctrl.
    const speed = event.ctrlKey ? 0.01 : 0.0015;
    const moved = Math.min(Math.max(event.deltaY * lines, -240), 240);
    this.zoomBy(Math.exp(-moved * speed), this.#at(event));
  }

  #down(event) {
    if (event.pointerType === "mouse" && event.button !== 0) return;
    this.box.setPointerCapture(event.pointerId);
    const at = this.#at(event);
    this.pointers.set(event.pointerId, { ...at, startX: at.x, startY: at.y, since: event.timeStamp });
    this.alone = this.pointers.size === 1;
  }

  #move(event) {
    const pointer = this.pointers.get(event.pointerId);
    if (!pointer) return;
    const at = this.#at(event);
    if (this.pointers.size === 2) {
      const [other] = [...this.pointers.entries()].find(([id]) => id !== event.pointerId).slice(1);
      const before = Math.hypot(pointer.x - other.x, pointer.y - other.y);
      const after = Math.hypot(at.x - other.x, at.y - other.y);
      const middle = { x: (at.x + other.x) / 2, y: (at.y + other.y) / 2 };
      if (before > 0 && after > 0) this.zoomBy(after / before, middle);
      this.pan((pointer.x - at.x) / 2, (pointer.y - at.y) / 2);
    } else if (this.zoomed) {
      this.pan(pointer.x - at.x, pointer.y - at.y);
    }
    Object.assign(pointer, at);
  }

  #up(event) {
    const pointer = this.pointers.get(event.pointerId);
    this.pointers.delete(event.pointerId);
    if (!pointer || !this.alone || this.pointers.size) return;
    const at = this.#at(event);
    const [right, down] = [at.x - pointer.startX, at.y - pointer.startY];
    if (Math.hypot(right, down) <= TAP_SLACK) {
      if (event.timeStamp - pointer.since < TAP_WITHIN) this.#tap(at, event.timeStamp);
    } else if (event.pointerType === "mouse" || this.zoomed) {
      return;
    } else if (Math.abs(right) >= SWIPE_AT_LEAST && Math.abs(right) > 2 * Math.abs(down)) {
      this.dispatchEvent(new CustomEvent("swipe", { detail: right < 0 ? "left" : "right" }));
    }
  }

  #tap(at, time) {
    const last = this.lastTap;
    const twice = last && time - last.time < TAP_WITHIN && Math.hypot(at.x - last.x, at.y - last.y) < 3 * TAP_SLACK;
    this.lastTap = twice ? null : { ...at, time };
    if (twice) this.toggle(at);
  }
}

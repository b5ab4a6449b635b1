/** One image at a time, as large as the window allows; one key labels it and shows the next. */
import { isGone } from "../dom.js";
import { whyUnseen } from "../seen.js";
import { GRADE_NAMES, RELEVANCE_NAMES } from "../words.js";
import { Zoom } from "./zoom.js";

const AHEAD = 12;
const BEHIND = 4;
/** Files fetched ahead in case the connection is lost: about a minute at one image per second. */
const FAR = 60;
const PAN = 0.2;
const NO_MORE = "There is no image on the screen to label.";

class SingleView {
  constructor(studio, root) {
    this.studio = studio;
    this.root = root;
    this.canvas = root.querySelector("[data-canvas]");
    this.waiting = root.querySelector("[data-image-waiting]");
    this.failed = root.querySelector("[data-image-failed]");
    this.zoom = new Zoom(this.canvas);
    this.rank = null;
    this.active = false;
    /** The rank whose image is on the screen, not merely in the document. */
    this.painted = null;
  }

  enter(rank) {
    this.active = true;
    if (this.studio.state === "ready") this.show(rank);
  }

  leave() {
    this.active = false;
    this.hide();
  }

  hide() {
    this.rank = null;
    this.#unpaint();
    this.canvas.replaceChildren();
    this.zoom.attach(null);
  }

  /** Puts the image of a rank on the screen: at once if it is decoded, so that it is there in the next frame. */
  show(rank) {
    if (!this.active || (rank === this.rank && this.canvas.firstChild)) return;
    this.rank = rank;
    this.#unpaint();
    this.failed.hidden = true;
    const ready = this.studio.store.caches.image.now(rank);
    if (ready) this.#place(ready, rank);
    else this.#await(rank);
    this.#prefetch(rank);
  }

  /** What comes next has changed. */
  ahead() {
    if (this.active && this.rank !== null) this.#prefetch(this.rank);
  }

  /** Whether the image of the present rank has been painted. */
  get onScreen() {
    return this.painted !== null && this.painted === this.studio.rank;
  }

  #unpaint() {
    this.painted = null;
    delete this.root.dataset.painted;
  }

  #place(img, rank) {
    this.waiting.hidden = true;
    img.alt = `Candidate ${rank}`;
    img.decoding = "sync";
    img.draggable = false;
    this.canvas.replaceChildren(img);
    this.zoom.attach(img);
    // After the frame in which it is drawn, not before.
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => {
        if (this.rank !== rank) return;
        this.painted = rank;
        this.root.dataset.painted = rank;
      };
      port2.postMessage(null);
    });
  }

  async #await(rank) {
    this.canvas.replaceChildren();
    this.zoom.attach(null);
    this.waiting.hidden = false;
    try {
      const img = await this.studio.store.caches.image.get(rank);
      if (this.rank === rank) this.#place(img, rank);
    } catch {
      if (this.rank !== rank) return;
      this.waiting.hidden = true;
      this.failed.hidden = false;
      this.studio.announce(`The image could not be loaded: ${this.studio.source.where(rank)}.`);
    }
  }

  retry() {
    const { rank } = this;
    this.rank = null;
    this.show(rank);
  }

  #prefetch(rank) {
    const { store } = this.studio;
    const near = [rank];
    let behind = rank;
    for (let step = 0; step < BEHIND && behind; step += 1) {
      behind = store.previous(behind);
      if (behind) near.push(behind);
    }
    const ahead = new Set([...store.after(rank, AHEAD, { unlabeled: true }), ...store.after(rank, BEHIND)]);
    const { image: cache } = store.caches;
    cache.release([...near, ...ahead]);
    cache.prefetch([...ahead, ...near]);
    cache.fetchAhead(store.after(rank, FAR, { unlabeled: true }));
  }

  /** Judges the image; with a grade and its reason where the query asks for grades. */
  mark(relevance, graded = {}) {
    const { studio } = this;
    if (studio.blocked) return;
    const { rank } = this;
    const image = this.onScreen ? this.canvas.firstChild : null;
    const atEnd = !image && studio.state === "end";
    const unseen = atEnd ? NO_MORE : whyUnseen(image, this.canvas, this.root.parentElement);
    if (unseen) {
      studio.say(unseen);
      return;
    }
    const entry = studio.store.entry(rank);
    const again = !studio.store.needsLabel(rank);
    const revealed = studio.review && !studio.source.votesShown(rank);
    const mark = { image: entry.image, relevance, ...graded };
    if (!studio.judge([mark])) {
      studio.sayWhyNot();
      return;
    }
    studio.announce(`${GRADE_NAMES[graded.grade] ?? RELEVANCE_NAMES[relevance]}, ${studio.source.where(rank)}`);
    if (revealed) studio.say("These are the votes. Change your judgment, or go on.");
    else if (again) this.forward(rank);
    else studio.toNextUnlabeled(rank);
  }

  forward(rank) {
    const { studio } = this;
    studio.go(studio.store.next(rank) ?? studio.store.size + 1);
  }

  /** Goes on without a label. The streak counts in list order, so it can't pass such a gap. */
  skip(event) {
    const { studio } = this;
    if (studio.state !== "ready") return;
    const { rank } = studio;
    const unlabeled = !studio.store.withdrawn.has(rank) && studio.store.needsLabel(rank);
    if (unlabeled && event?.repeat) return;
    if (unlabeled && studio.audit) {
      studio.say("A drawn image can’t be skipped; if you can’t tell, mark it unsure.");
      return;
    }
    this.forward(rank);
    if (!unlabeled) return;
    let waits = "the streak waits there until it is labeled";
    if (studio.review) waits = "it stays undecided";
    else if (studio.learned) waits = "it stays unlabeled";
    studio.say(`Skipped ${studio.source.where(rank)}: ${waits}.`);
  }

  back() {
    const { studio } = this;
    const rank = studio.store.previous(studio.rank ?? 1);
    if (rank) studio.go(rank);
    else studio.say("This is the first image.");
  }

  /** Arrow keys with Shift move the enlarged image, and so do up and down without it. */
  panKey(event) {
    const [right, down] = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, -1],
      ArrowDown: [0, 1],
    }[event.key] ?? [0, 0];
    if ((!right && !down) || (right && !event.shiftKey)) return false;
    if (event.ctrlKey || event.altKey || event.metaKey) return false;
    return this.zoom.pan(right * this.canvas.clientWidth * PAN, down * this.canvas.clientHeight * PAN);
  }
}

function mountZoom(studio, view, root) {
  const { zoom } = view;
  const shown = root.querySelector("[data-zoom-percent]");
  zoom.addEventListener("change", () => {
    const percent = `${Math.round(zoom.scale * 100)} %`;
    shown.textContent = zoom.mode.kind === "fit" ? `Fit · ${percent}` : percent;
  });
  zoom.addEventListener("swipe", ({ detail }) => (detail === "left" ? view.skip() : view.back()));
  studio.action("zoom_in", () => zoom.zoomIn());
  studio.action("zoom_out", () => zoom.zoomOut());
  studio.action("zoom_fit", () => zoom.fit());
  studio.action("zoom_pixels", () => zoom.pixels());
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || studio.blocked || studio.view !== "single") return;
    if (event.target.matches?.("input, textarea, select, [role=tab]") && !isGone(event.target)) return;
    if (view.panKey(event)) event.preventDefault();
  });
}

/** @param {Studio} studio */
export function mount(studio) {
  const root = studio.root.querySelector("[data-single]");
  const view = new SingleView(studio, root);
  studio.views.single = view;
  studio.action("skip", (event) => view.skip(event));
  studio.action("back", () => view.back());
  studio.on("order", () => view.ahead());
  root.querySelector("[data-image-retry]").addEventListener("click", () => view.retry());
  mountZoom(studio, view, root);
  mountTone(studio, root);
  studio.store.addEventListener("image", ({ detail: { rank, kind } }) => {
    if (kind === "image" && rank === view.rank && !view.onScreen) view.retry();
  });
}

/** Brightness and contrast of the image, by sliders and keys, saved for the next session. */

const STEP = 0.1;
const LEAST = 0.3;
const MOST = 3;
const TONES = ["brightness", "contrast"];

const percent = (value) => `${Math.round(value * 100)} %`;

/**
 * @param {Studio} studio
 * @param {HTMLElement} root the single view: its image takes the tone from custom properties of this element
 */
function mountTone(studio, root) {
  const button = root.querySelector("[data-tone-open]");
  const panel = root.querySelector("[data-tone]");
  const sliders = Object.fromEntries(TONES.map((name) => [name, panel.querySelector(`[name="${name}"]`)]));

  const value = (name) => studio.preferences.get(name, 1);

  function render() {
    for (const name of TONES) {
      root.style.setProperty(`--${name}`, value(name));
      sliders[name].value = value(name);
      sliders[name].setAttribute("aria-valuetext", percent(value(name)));
      panel.querySelector(`[data-value="${name}"]`).textContent = percent(value(name));
    }
    const changed = TONES.some((name) => value(name) !== 1);
    root.classList.toggle("toned", changed);
    button.classList.toggle("on", changed);
  }

  function set(name, wanted) {
    const held = Math.round(Math.min(Math.max(wanted, LEAST), MOST) * 100) / 100;
    studio.preferences.set(name, held);
    render();
  }

  function step(name, by) {
    set(name, value(name) + by);
    studio.say(`${name === "brightness" ? "Brightness" : "Contrast"} ${percent(value(name))}`);
  }

  function reset() {
    for (const name of TONES) studio.preferences.set(name, 1);
    render();
  }

  function open(wanted) {
    panel.hidden = !wanted;
    button.setAttribute("aria-expanded", String(wanted));
    if (wanted) sliders.brightness.focus();
  }

  for (const name of TONES) {
    sliders[name].addEventListener("input", () => set(name, Number(sliders[name].value)));
  }
  button.addEventListener("click", () => open(panel.hidden));
  panel.querySelector("[data-tone-reset]").addEventListener("click", reset);
  panel.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    open(false);
    button.focus();
  });
  document.addEventListener("pointerdown", (event) => {
    if (!panel.hidden && !panel.contains(event.target) && !button.contains(event.target)) open(false);
  });
  studio.action("brighter", () => step("brightness", STEP));
  studio.action("darker", () => step("brightness", -STEP));
  studio.action("more_contrast", () => step("contrast", STEP));
  studio.action("less_contrast", () => step("contrast", -STEP));
  studio.action("plain_image", () => {
    reset();
    studio.say("Brightness and contrast are reset");
  });
  render();
}

/** One picture at a time, as large as the window allows; one key labels it and shows the next. */
import { mountTone } from "./tone.js";
import { RELEVANCE_NAMES } from "./panel-tools.js";
import { Zoom } from "./zoom.js";

const AHEAD = 12;
const BEHIND = 4;
/** Files kept ahead for when the connection is gone: at a second an image, about a minute. */
const FAR = 60;
const PAN = 0.2;
const NO_MORE = "There is no image on the screen to label.";
const NOT_YET = "Not labelled: the picture wasn't on the screen yet.";

class SingleView {
  constructor(studio, root) {
    this.studio = studio;
    this.root = root;
    this.canvas = root.querySelector("[data-canvas]");
    this.waiting = root.querySelector("[data-picture-waiting]");
    this.failed = root.querySelector("[data-picture-failed]");
    this.zoom = new Zoom(this.canvas);
    this.rank = null;
    this.active = false;
    /** The rank whose picture is on the screen, not merely in the document. */
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

  /** Puts the picture of a rank on the screen: at once if it is decoded, so that it is there in the next frame. */
  show(rank) {
    if (!this.active || (rank === this.rank && this.canvas.firstChild)) return;
    this.rank = rank;
    this.#unpaint();
    this.failed.hidden = true;
    const ready = this.studio.store.pictureNow(rank);
    if (ready) this.#place(ready, rank);
    else this.#await(rank);
    this.#prefetch(rank);
  }

  /** Whether the picture of the present rank has been painted. */
  get onScreen() {
    return this.painted !== null && this.painted === this.studio.rank;
  }

  #unpaint() {
    this.painted = null;
    delete this.root.dataset.painted;
  }

  #place(picture, rank) {
    this.waiting.hidden = true;
    picture.alt = `Candidate ${rank}`;
    picture.decoding = "sync";
    picture.draggable = false;
    this.canvas.replaceChildren(picture);
    this.zoom.attach(picture);
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
      const picture = await this.studio.store.picture(rank);
      if (this.rank === rank) this.#place(picture, rank);
    } catch {
      if (this.rank !== rank) return;
      this.waiting.hidden = true;
      this.failed.hidden = false;
      this.studio.announce(`The picture at rank ${rank} could not be loaded.`);
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
    const ahead = new Set([
      ...store.visibleRanks(rank + 1, AHEAD, { unlabelled: true }),
      ...store.visibleRanks(rank + 1, BEHIND),
    ]);
    store.release([...near, ...ahead]);
    store.prefetch([...ahead, ...near], "picture");
    store.fetchAhead(store.visibleRanks(rank + 1, FAR, { unlabelled: true }));
  }

  mark(relevance) {
    const { studio } = this;
    if (studio.blocked) return;
    const { rank } = this;
    if (!this.onScreen) {
      studio.say(studio.state === "end" ? NO_MORE : NOT_YET);
      return;
    }
    const entry = studio.store.entry(rank);
    const again = entry.relevance !== null;
    if (!studio.judge([{ image: entry.image, relevance }])) {
      studio.sayWhyNot();
      return;
    }
    studio.announce(`${RELEVANCE_NAMES[relevance]}, rank ${rank}`);
    if (again) this.forward(rank);
    else studio.toNextUnlabelled(rank + 1);
  }

  forward(rank) {
    const { studio } = this;
    studio.go(studio.store.next(rank) ?? studio.store.size + 1);
  }

  /** On without a label. The streak counts in the list's order, so it can't pass such a place. */
  skip(event) {
    const { studio } = this;
    if (studio.state !== "ready") return;
    const { rank } = studio;
    const entry = studio.store.entry(rank);
    const unlabelled = entry && entry.relevance === null && !entry.withdrawn;
    if (unlabelled && event?.repeat) return;
    this.forward(rank);
    if (unlabelled) studio.say(`Skipped rank ${rank}: the streak waits there until it is labelled.`);
  }

  back() {
    const { studio } = this;
    const rank = studio.store.previous(studio.rank ?? 1);
    if (rank) studio.go(rank);
    else studio.say("This is the first one.");
  }

  /** Arrow keys with Shift move the enlarged picture, and so do up and down without it. */
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
    if (event.target.matches?.("input, textarea, select, [role=tab]")) return;
    if (view.panKey(event)) event.preventDefault();
  });
}

/** @param {import("./studio.js").Studio} studio */
export function mount(studio) {
  const root = studio.root.querySelector("[data-single]");
  const view = new SingleView(studio, root);
  studio.views.single = view;
  studio.action("skip", (event) => view.skip(event));
  studio.action("back", () => view.back());
  root.querySelector("[data-picture-retry]").addEventListener("click", () => view.retry());
  mountZoom(studio, view, root);
  mountTone(studio, root);
  studio.store.addEventListener("picture", ({ detail: { rank, kind } }) => {
    if (kind === "picture" && rank === view.rank && !view.onScreen) view.retry();
  });
}

/**
 * More like this: the images nearest to the one on screen, to find what the order of the list
 * misses. Only what is marked here is judged, with the source "similar"; the place in the list and
 * its streak stay where they are.
 */
import { api } from "../api.js";
import { button, columnsOf, isTyping, make, modal, showState } from "../dom.js";
import { number, RELEVANCE_NAMES, speciesName, trouble } from "../words.js";
import { keysOfEvent } from "./keys.js";

const LIMIT = 60;

/** @param {Studio} studio */
export function mount(studio) {
  const dialog = studio.root.querySelector("[data-similar]");
  if (dialog) new SimilarDialog(studio, dialog).start();
}

class SimilarDialog {
  constructor(studio, dialog) {
    const part = (name) => dialog.querySelector(`[data-similar-${name}]`);
    this.studio = studio;
    this.dialog = dialog;
    this.openDialog = modal(dialog);
    dialog.addEventListener("close", () => this.closed());
    this.grid = part("grid");
    this.closer = part("closer");
    this.caption = part("caption");
    this.state = part("state");
    this.retry = part("retry");
    this.back = part("back");
    this.marks = new Map(); // what stands for the images seen here; the list's are the store's to know
    this.marked = new Map(); // what was said since the dialog was opened
    this.trail = []; // the images whose neighbors were shown, the present one last
  }

  get view() {
    return this.trail.at(-1);
  }

  start() {
    this.studio.action("similar", () => this.open());
    this.studio.on("progress", () => this.dialog.open && this.showMeters());
    this.studio.on("labels", ({ images } = {}) => this.dialog.open && this.refresh(images));
    this.studio.outbox.addEventListener("refused", ({ detail }) => this.refused(detail));
    this.retry.addEventListener("click", () => this.load());
    this.back.addEventListener("click", () => this.goBack());
    this.dialog.addEventListener("keydown", (event) => this.key(event));
    this.dialog.addEventListener("cancel", (event) => {
      if (this.closer.hidden) return;
      event.preventDefault();
      this.leaveCloser();
    });
    this.grid.addEventListener("focusin", ({ target }) => {
      const index = [...this.grid.children].indexOf(target.closest("li"));
      if (index >= 0) this.point(index);
    });
    this.closerMarks = markButtons((relevance) => this.mark(this.view.index, relevance));
    this.place = make("p", { class: "similar-closer-place" });
    const step = (by, text, name) => button(text, () => this.move(by), { class: "button", "aria-label": name });
    this.caption.append(
      step(-1, "←", "Previous image"),
      this.closerMarks,
      step(1, "→", "Next image"),
      this.place,
      button("Smaller", () => this.leaveCloser()),
    );
  }

  async open() {
    const { studio } = this;
    const entry = studio.store.entry(studio.rank);
    if (!entry) return;
    this.marks.clear();
    this.marked.clear();
    this.trail = [];
    this.openDialog(this.dialog.querySelector("header [data-close]"));
    this.showMeters();
    this.go({ image: entry.image, rank: this.studio.source.listRank(entry.rank), thumbnail_url: null });
    const origin = this.view;
    const details = await studio.store.details(entry.rank).catch(() => null);
    if (details && this.view === origin) {
      origin.thumbnail_url = details.thumbnail_url;
      this.showOrigin();
    }
  }

  closed() {
    this.trail = [];
    this.leaveCloser();
    this.grid.replaceChildren();
  }

  /** Ask about another image. */
  go({ image, rank, thumbnail_url }) {
    this.trail.push({ image, rank, thumbnail_url, items: null, within: "", index: 0 });
    this.leaveCloser();
    this.grid.replaceChildren();
    this.showOrigin();
    this.load();
  }

  goBack() {
    if (this.trail.length < 2) return;
    this.trail.pop();
    this.leaveCloser();
    this.showOrigin();
    if (this.view.items) this.show();
    else this.load();
  }

  async load() {
    const view = this.view;
    this.retry.hidden = true;
    this.say("Finding the nearest images …");
    this.grid.setAttribute("aria-busy", "true");
    try {
      const before = await this.studio.outbox.pending();
      const answer = await api(`${this.studio.api}similar/?image=${view.image}&limit=${LIMIT}`);
      this.learn(answer.results, [...before, ...(await this.studio.outbox.pending())]);
      view.items = answer.results;
      view.within = answer.within;
    } catch (error) {
      if (view !== this.view) return;
      this.say(trouble(error, "The nearest images could not be loaded."), true);
      this.retry.hidden = false;
      return;
    } finally {
      if (view === this.view) this.grid.removeAttribute("aria-busy");
    }
    if (view === this.view) this.show();
  }

  show() {
    const { items, index } = this.view;
    this.retry.hidden = true;
    this.showOrigin();
    this.grid.replaceChildren(
      ...items.map((item, at) =>
        tile(item, at, {
          mark: (relevance) => this.mark(at, relevance),
          closer: () => this.lookCloser(at),
          more: () => this.go(item),
        }),
      ),
    );
    for (const at of items.keys()) this.showTile(at);
    this.say(items.length ? "" : "There is no other image to compare it with.");
    if (items.length) this.focus(index);
    else this.dialog.querySelector("header [data-close]").focus();
  }

  showOrigin() {
    const { rank, thumbnail_url, within } = this.view;
    const img = this.dialog.querySelector("[data-similar-origin]");
    if (thumbnail_url) img.src = thumbnail_url;
    else img.removeAttribute("src");
    const of = rank ? `the image at rank ${number(rank)}` : "an image outside the list";
    const where = { filter: " within the species filter", corpus: " in the whole corpus" }[within] ?? "";
    const text = `Nearest to ${of}${where}. Marks are saved as labels; your place in the list stays.`;
    this.dialog.querySelector("[data-similar-about]").textContent = text;
    this.back.hidden = this.trail.length < 2;
  }

  showMeters() {
    const { review, store } = this.studio;
    if (!review) {
      const { streak, stop } = store.progress;
      this.dialog.querySelector("[data-similar-streak]").textContent = `${streak} of ${stop.required}`;
    }
    const said = [...this.marked.values()].filter(Boolean);
    const relevant = said.filter((relevance) => relevance === "relevant").length;
    const text = said.length ? `${said.length}, ${relevant} relevant` : "0";
    this.dialog.querySelector("[data-similar-marked]").textContent = text;
  }

  /** What the server says stands, and on top of it what waits to be sent. */
  learn(items, waiting) {
    const own = new Map(waiting.map(({ image, relevance }) => [image, relevance]));
    for (const { image, relevance } of items) {
      this.marks.set(image, own.has(image) ? own.get(image) : relevance);
    }
  }

  /** What stands for an image: the page's own knowledge first, which is ahead of the server's. */
  standing(item) {
    const rank = this.studio.store.rankOf(item.image);
    if (rank) return this.studio.store.entry(rank)?.relevance ?? null;
    return this.marks.get(item.image) ?? null;
  }

  /** Label an image, or take the same label back. */
  mark(index, relevance) {
    const item = this.view.items[index];
    const before = this.standing(item);
    const after = before === relevance ? null : relevance;
    const mark = { image: item.image, relevance: after, from: before, source: "similar" };
    if (!this.studio.judge([mark], { fromDialog: true })) {
      this.say(this.studio.closed || "Images can't be labeled now.", true);
      return;
    }
    this.marks.set(item.image, after);
    this.marked.set(item.image, after);
    this.showTile(index);
    this.showMeters();
    this.say(`Image ${index + 1}: ${after ? RELEVANCE_NAMES[after].toLowerCase() : "label removed"}.`);
  }

  refused({ record, result, stands }) {
    if (!this.dialog.open || !this.marks.has(record.image)) return;
    if (stands !== undefined) this.marks.set(record.image, stands);
    this.marked.delete(record.image);
    this.refresh([record.image]);
    this.showMeters();
    this.say(`A label was not saved: ${result.detail}`, true);
  }

  refresh(images) {
    this.view?.items?.forEach((item, index) => {
      if (!images || images.includes(item.image)) this.showTile(index);
    });
  }

  showTile(index) {
    const item = this.view.items[index];
    const element = this.grid.children[index]?.querySelector(".similar-tile");
    if (!element) return;
    const relevance = this.standing(item);
    showMark(element, relevance);
    element.setAttribute("aria-label", tileName(item, index, relevance));
    if (!this.closer.hidden && index === this.view.index) showMark(this.closerMarks, relevance);
  }

  /** The tile that keys belong to. */
  point(index) {
    this.view.index = index;
    roving(this.grid, index);
  }

  focus(index) {
    this.point(index);
    this.grid.children[index].querySelector(".similar-tile").focus();
  }

  move(by) {
    const index = this.view.index + by;
    if (!this.view.items || index < 0 || index >= this.view.items.length) return;
    if (this.closer.hidden) this.focus(index);
    else this.lookCloser(index);
  }

  lookCloser(index) {
    const item = this.view.items[index];
    this.point(index);
    this.grid.hidden = true;
    this.closer.hidden = false;
    const img = this.closer.querySelector("img");
    img.src = item.url;
    img.alt = speciesName(item.species) || `Image ${index + 1}`;
    this.place.textContent = `${index + 1} of ${this.view.items.length} · ${placeOf(item)}`;
    showMark(this.closerMarks, this.standing(item));
    if (!this.closer.contains(document.activeElement)) this.closerMarks.querySelector("button").focus();
  }

  leaveCloser() {
    if (this.closer.hidden) return;
    this.closer.hidden = true;
    this.closer.querySelector("img").removeAttribute("src");
    this.grid.hidden = false;
    if (this.dialog.open && this.view?.items?.length) this.focus(this.view.index);
  }

  key(event) {
    if (isTyping(event.target) || !this.view?.items?.length) return;
    const { index, items } = this.view;
    const action = this.studio.keymap.find("single", keysOfEvent(event));
    const run = {
      relevant: () => this.mark(index, "relevant"),
      not_relevant: () => this.mark(index, "not_relevant"),
      unsure: () => this.mark(index, "unsure"),
      similar: () => this.go(items[index]),
    }[action];
    if (run) {
      event.preventDefault();
      if (!event.repeat) run();
      return;
    }
    this.walk(event);
  }

  walk(event) {
    const closer = !this.closer.hidden;
    const row = closer ? 1 : columnsOf(this.grid.children);
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -row, ArrowDown: row }[event.key];
    if (by) this.move(by);
    else if (event.key === "Home") this.move(-this.view.index);
    else if (event.key === "End") this.move(this.view.items.length - 1 - this.view.index);
    else if (event.key === "Backspace") this.goBack();
    else if (event.key === "Enter" && event.target.matches(".similar-tile")) this.lookCloser(this.view.index);
    else return;
    event.preventDefault();
  }

  say(text, problem = false) {
    showState(this.state, text, problem);
  }
}

const MARKS = [
  ["relevant", "R"],
  ["not_relevant", "N"],
  ["unsure", "U"],
];

/**
 * The three buttons that mark an image, as `[data-mark]`.
 * @param {(relevance: string) => void} mark
 * @returns {HTMLElement}
 */
function markButtons(mark) {
  const buttons = MARKS.map(([relevance, letter]) =>
    button(letter, () => mark(relevance), {
      class: `similar-mark ${relevance}`,
      "data-mark": relevance,
      "aria-label": RELEVANCE_NAMES[relevance],
      title: RELEVANCE_NAMES[relevance],
      "aria-pressed": "false",
    }),
  );
  return make("div", { class: "similar-marks", role: "group", "aria-label": "Label" }, ...buttons);
}

/** Show on the buttons made by `markButtons` what stands. */
function showMark(root, relevance) {
  root.dataset.relevance = relevance || "none";
  for (const button of root.querySelectorAll("[data-mark]")) {
    button.setAttribute("aria-pressed", String(button.dataset.mark === relevance));
  }
}

/** Where an image stands, e.g. "0.83 · in the list at rank 812". */
function placeOf(item) {
  const rank = item.rank ? `in the list at rank ${number(item.rank)}` : "not in the list";
  return `${item.score.toFixed(2)} · ${rank}`;
}

/**
 * One tile of the grid.
 * @param {{image: number, thumbnail_url: string, score: number, rank: number|null, species: object|null}} item
 * @param {number} index place among the nearest, from 0
 * @param {{mark: (relevance: string) => void, closer: () => void, more: () => void}} does
 */
function tile(item, index, does) {
  const name = speciesName(item.species);
  const img = make("img", {
    src: item.thumbnail_url,
    alt: name,
    loading: index < 24 ? "eager" : "lazy",
    decoding: "async",
    on: { click: does.closer },
  });
  const more = button("≈", does.more, {
    class: "similar-more",
    "aria-label": "More like this one",
    title: "More like this one",
  });
  const element = make(
    "div",
    { class: "similar-tile", role: "group", tabindex: "-1", "data-image": item.image },
    make("div", { class: "similar-image" }, img, more),
    make("p", { class: "similar-place", text: placeOf(item) }),
    markButtons(does.mark),
  );
  return make("li", {}, element);
}

/** The name of a tile for screen readers, with what stands. */
function tileName(item, index, relevance) {
  const name = speciesName(item.species);
  const stands = relevance ? `labeled ${RELEVANCE_NAMES[relevance].toLowerCase()}` : "no label";
  return [`Image ${index + 1}`, name, placeOf(item).replace(" · ", ", "), stands].filter(Boolean).join(", ");
}

/** Make one tile the one that Tab reaches, with its buttons; the others are reached by arrows. */
function roving(grid, index) {
  grid.querySelectorAll(".similar-tile").forEach((element, at) => {
    const order = at === index ? "0" : "-1";
    element.tabIndex = Number(order);
    for (const button of element.querySelectorAll("button")) button.tabIndex = Number(order);
  });
}

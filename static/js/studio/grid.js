/** The grid: a page of thumbnails on which what is relevant is marked, submitted whole. */
import { isTyping, make } from "../dom.js";
import { counted, RELEVANCE_NAMES, sentence } from "../words.js";
import { Marks } from "./grid-marks.js";
import { allowedSize, DEFAULT_TILES, neighbor, Painter, steppedSize, TileBoard, tilesUnder } from "./grid-tiles.js";

/** Focus within one of these stays there when the page of images changes. */
const PANELS = "dialog, [data-filters]";

class GridView {
  /** @param {Studio} studio */
  constructor(studio) {
    this.studio = studio;
    this.store = studio.store;
    this.root = studio.root.querySelector("[data-grid]");
    this.marks = new Marks(`grid-marks ${studio.user.id} ${studio.source.given.address ?? studio.api}`);
    this.submitted = new Map();
    /** Of the page before, what was not on screen and so not submitted. */
    this.left = [];
    this.ranks = [];
    this.index = 0;
    this.active = false;
    this.clicks = [];
    const bar = studio.root.querySelector("[data-bar=grid]");
    this.tools = new GridTools(studio, this.root, bar, () => this.#resized());
    this.board = new TileBoard(this.root.querySelector("[data-tiles]"), () => this.#changed());
    new ResizeObserver(() => this.active && this.board.arrange(this.size)).observe(this.board.element);
  }

  /** The number of tiles wanted on a page. */
  get size() {
    return this.tools.size;
  }

  get rank() {
    return this.ranks[this.index] ?? null;
  }

  /** How many marks are not submitted yet, on this page and others. */
  get unsubmitted() {
    return this.marks.size;
  }

  enter(rank) {
    this.active = true;
    this.studio.notices.hide("grid-back");
    // Before the first candidate is known there is nothing to show yet.
    if (this.studio.state === "ready") this.show(rank);
  }

  leave() {
    this.active = false;
    this.root.hidden = true;
    this.studio.notices.hide("grid-left");
  }

  hide() {
    this.root.hidden = true;
  }

  /** Shows the page with this rank: the present one if it holds it, else one that begins there. */
  show(rank) {
    if (!this.active) return;
    this.root.hidden = false;
    const index = this.ranks.indexOf(rank);
    const stands = index >= 0 && this.ranks.every((shown) => this.store.visible(shown));
    if (stands) this.#point(index);
    else this.#open(this.store.visibleRanks(rank, this.size), rank);
  }

  /** Marks the tile in focus. */
  mark(relevance) {
    if (!this.#markable(this.index)) return;
    const entry = this.#entry(this.index);
    this.marks.set(entry, relevance);
    this.#drawTile(this.index);
    this.#sum();
    this.#announceMark(entry, relevance);
  }

  toggle() {
    if (!this.#markable(this.index)) return;
    const entry = this.#entry(this.index);
    this.marks.set(entry, this.marks.toggled(entry, "relevant"));
    this.#drawTile(this.index);
    this.#sum();
    this.#announceMark(entry, this.marks.shown(entry));
  }

  #announceMark({ rank }, relevance) {
    const mark = relevance ? `marked ${RELEVANCE_NAMES[relevance].toLowerCase()}` : "not marked";
    this.studio.announce(`${sentence(this.studio.source.where(rank))}, ${mark}`);
  }

  move(direction) {
    const to = neighbor(this.index, direction, this.board);
    if (to !== this.index) this.studio.go(this.ranks[to]);
  }

  /** Judges what was on screen: the marked as marked, the rest not relevant; then the next page stands here. */
  submit() {
    if (!this.ranks.length) return;
    if (this.board.covered) {
      this.studio.say("Nothing was submitted: a panel covers the images. Close it first.");
      return;
    }
    const on = this.ranks.filter((_, index) => this.board.isSeen(index));
    const left = this.ranks.filter((_, index) => !this.board.isSeen(index));
    if (!on.length) {
      this.studio.say("Nothing was submitted: no image of this page is on screen yet.");
      return;
    }
    const judgments = this.marks.judgments(on.map((rank) => this.store.entry(rank)));
    if (judgments.length && !this.studio.judge(judgments)) {
      this.studio.sayWhyNot();
      return;
    }
    for (const { image, relevance } of judgments) this.submitted.set(image, relevance);
    this.marks.settle(on.map((rank) => this.store.entry(rank)));
    this.#advance(left.filter((rank) => this.store.entry(rank).relevance === null));
    this.#announce(judgments);
  }

  /** Shows the page before (by < 0) or after this one and submits nothing. */
  page(by) {
    if (!this.ranks.length) return;
    const { store, size } = this;
    const [first, last] = [this.ranks[0], this.ranks.at(-1)];
    const ranks = by > 0 ? store.after(last, size) : pageBefore(store, first, size);
    if (ranks.length) this.#open(ranks, ranks[0]);
    else this.studio.say(by > 0 ? "This is the last page." : "This is the first page.");
  }

  /** Shows the tile in focus as large as the window allows; one click or key leads back. */
  openSingle() {
    if (this.rank === null) return;
    this.studio.setView("single");
    this.studio.notices.show("grid-back", {
      text: "Opened from the grid.",
      actions: [{ label: "Back to the grid", run: () => this.studio.setView("grid") }],
    });
  }

  wire() {
    const { studio } = this;
    const only = (run) => () => this.active && studio.state === "ready" && run();
    for (const side of ["left", "right", "up", "down"]) {
      studio.action(
        `grid_${side}`,
        only(() => this.move(side)),
      );
    }
    studio.action(
      "grid_toggle",
      only(() => this.toggle()),
    );
    studio.action("grid_submit", (event) => only(() => event?.repeat || this.submit())());
    studio.action(
      "grid_page_back",
      only(() => this.page(-1)),
    );
    studio.action(
      "grid_page_forward",
      only(() => this.page(1)),
    );
    studio.action(
      "grid_larger",
      only(() => this.tools.resize(steppedSize(this.size, -1))),
    );
    studio.action(
      "grid_smaller",
      only(() => this.tools.resize(steppedSize(this.size, 1))),
    );
    studio.action(
      "grid_open",
      only(() => this.openSingle()),
    );
    studio.on("labels", ({ images }) => this.#labeled(images));
    studio.on("list", () => this.#again());
    studio.on("matching", () => this.#again());
    studio.on("rank", () => this.#stillBeside());
    studio.on("order", () => this.active && this.#fetch());
    studio.on("state", ({ state }) => {
      this.root.hidden = !this.active || state !== "ready";
    });
    this.store.addEventListener("withdrawn", () => this.#again());
    this.store.addEventListener("image", ({ detail }) => {
      if (detail.kind === "thumbnail") this.#reload(detail.rank);
    });
    this.#wireTiles();
  }

  #wireTiles() {
    const { element } = this.board;
    new Painter(element, {
      geometry: () => this.board.geometry,
      fingersPaint: () => this.tools.fingersPaint,
      begin: (index) => this.#begin(index),
      paint: (index) => this.#paint(index),
      end: () => this.#sum(),
    });
    element.addEventListener("focusin", ({ target }) => {
      const index = this.board.indexOf(target);
      if (index >= 0 && index !== this.index) this.studio.go(this.ranks[index]);
    });
    element.addEventListener("dblclick", (event) => {
      const { left, top } = element.getBoundingClientRect();
      const point = { x: event.clientX - left, y: event.clientY - top };
      const [index] = tilesUnder(point, point, this.board.geometry);
      const [first] = this.clicks;
      if (index === undefined || first?.index !== index) return;
      this.marks.set(this.#entry(index), first.before);
      this.#drawTile(index);
      this.#sum();
      this.openSingle();
    });
  }

  #begin(index) {
    if (this.board.isFailed(index)) {
      this.board.load(index, this.store);
      return;
    }
    if (index !== this.index) this.studio.go(this.ranks[index]);
    if (!this.#markable(index)) return;
    const entry = this.#entry(index);
    const before = this.marks.isDraft(entry) ? this.marks.shown(entry) : null;
    this.clicks = [this.clicks.at(-1), { index, before }].filter(Boolean);
    this.color = this.marks.toggled(entry, this.tools.brush);
    this.marks.set(entry, this.color);
    this.#drawTile(index);
    this.#sum();
  }

  #paint(index) {
    if (this.color === undefined || !this.board.isLoaded(index)) return;
    const entry = this.#entry(index);
    const off = entry.relevance === null ? null : "not_relevant";
    this.marks.set(entry, this.color === this.tools.brush ? this.tools.brush : off);
    this.#drawTile(index);
  }

  #entry(index) {
    return this.store.entry(this.ranks[index]);
  }

  #markable(index) {
    if (this.rank === null || this.studio.state !== "ready" || this.studio.blocked) return false;
    if (this.studio.closed) {
      this.studio.sayWhyNot();
      return false;
    }
    if (this.board.isLoaded(index)) return true;
    this.studio.say("Not marked: the image isn't on the screen yet.");
    return false;
  }

  #drawTile(index) {
    const entry = this.#entry(index);
    const where = this.studio.source.where(entry.rank);
    this.board.draw(index, { ...entry, where }, this.marks.shown(entry), this.marks.isDraft(entry));
  }

  #point(index) {
    this.index = index;
    const { activeElement } = document;
    const elsewhere = activeElement && (isTyping(activeElement) || activeElement.closest(PANELS));
    this.board.point(index, !elsewhere && this.active);
  }

  /** Shows these ranks, the focus on `rank` or else on the first. */
  #open(ranks, rank) {
    if (!ranks.length) ranks = lastPage(this.store, this.size);
    this.ranks = ranks;
    this.root.querySelector("[data-grid-none]").hidden = ranks.length > 0;
    this.board.element.hidden = !ranks.length;
    this.index = Math.max(0, ranks.indexOf(rank));
    if (!this.left.some((unseen) => ranks.includes(unseen))) this.studio.notices.hide("grid-left");
    this.#makeRoom();
    this.board.fill(ranks, this.store, this.size);
    for (const index of ranks.keys()) this.#drawTile(index);
    const [first, last] = [ranks[0], ranks.at(-1)];
    const { kind, from, to } = this.#span();
    this.tools.place(kind, ranks.length ? `${from}–${to}` : "–");
    this.board.element.setAttribute("aria-label", `Candidates, ${kind.toLowerCase()} ${from} to ${to}`);
    Object.assign(this.root.dataset, { first: first ?? "", last: last ?? "" });
    this.#elsewhere();
    this.#changed();
    this.#fetch();
    if (ranks.length) this.#point(this.index);
    if (ranks.length && this.studio.rank !== this.rank) this.studio.go(this.rank);
  }

  /** Lays the page out below the notices that stand now, so that they cover no tile; later ones move none. */
  #makeRoom() {
    const { root } = this.studio.notices;
    const height = root.childElementCount ? root.offsetHeight : 0;
    this.root.style.setProperty("--notices", `${height}px`);
  }

  /** The page keeps its first tile, or starts at the focused one where that would drop out. */
  #resized() {
    if (!this.active || !this.ranks.length) return;
    const from = this.index < this.size ? this.ranks[0] : this.rank;
    this.#open(this.store.visibleRanks(from, this.size), this.rank);
  }

  #advance(left) {
    const ranks = following(this.store, this.ranks, left, this.size);
    if (!ranks.length) {
      this.studio.go(this.store.size + 1);
      return;
    }
    this.left = left;
    if (left.length) this.#noticeLeft();
    this.#open(ranks, ranks[0]);
  }

  #noticeLeft() {
    const { left } = this;
    const were = left.length === 1 ? "was not on screen, so it was" : "were not on screen, so they were";
    const them = left.length === 1 ? "it" : "them";
    const again = () => {
      for (const rank of left) this.#reload(rank);
    };
    this.studio.notices.show("grid-left", {
      kind: "warning",
      text: `${counted(left.length, "image")} ${were} not submitted. This page begins with ${them}.`,
      actions: [{ label: "Load again", run: again }],
    });
  }

  #reload(rank) {
    const index = this.ranks.indexOf(rank);
    if (index >= 0 && !this.board.isLoaded(index)) this.board.load(index, this.store);
  }

  #announce(judgments) {
    const relevant = judgments.filter(({ relevance }) => relevance === "relevant").length;
    const sum = judgments.length
      ? `${counted(judgments.length, "image")} submitted, ${relevant} of them relevant.`
      : "Nothing on the page was changed.";
    const { kind, from, to } = this.#span();
    const next = this.ranks.length ? ` ${kind} ${from} to ${to}.` : "";
    this.studio.announce(sum + next);
  }

  /** Where the page stands: the ranks of the list, or places. */
  #span() {
    const { source } = this.studio;
    const [from, to] = [this.ranks[0], this.ranks.at(-1)].map((rank) => source.placeOf(rank));
    return { kind: source.placesName, from, to };
  }

  /** Says that marks on other pages are still to be submitted. */
  #elsewhere() {
    const here = new Set(this.ranks);
    const ranks = this.marks.images
      .map((image) => this.store.rankOf(image))
      .filter((rank) => rank !== null && !here.has(rank) && this.store.visible(rank));
    this.tools.elsewhere(ranks);
  }

  /** A tile came on screen or failed. */
  #changed() {
    this.root.dataset.seen = this.board.seen;
    this.#sum();
    const settled = this.ranks.every((_, index) => this.board.isLoaded(index) || this.board.isFailed(index));
    if (settled) this.#fetch();
    const there = (rank) => this.board.isLoaded(this.ranks.indexOf(rank));
    if (this.left.length && this.left.every((rank) => this.ranks.includes(rank) && there(rank))) {
      this.left = [];
      this.studio.notices.hide("grid-left");
    }
  }

  /** Has the next page's thumbnails decoded, and lets go of what is far. */
  #fetch() {
    if (!this.ranks.length) return;
    const next = following(this.store, this.ranks, [], this.size);
    const further = next.length ? this.store.after(next.at(-1), this.size) : [];
    const before = pageBefore(this.store, this.ranks[0], this.size);
    this.store.caches.thumbnail.prefetch([...next, ...further, ...before]);
  }

  #sum() {
    const sum = { relevant: 0, unsure: 0, not_relevant: 0 };
    this.ranks.forEach((_, index) => {
      if (this.board.isSeen(index)) sum[this.marks.outcome(this.#entry(index))] += 1;
    });
    this.tools.sum(sum);
  }

  #labeled(images) {
    const entries = images.map((image) => this.store.entry(this.store.rankOf(image))).filter(Boolean);
    for (const entry of entries) {
      // What an undo takes back is marked again, so that the page can be corrected and submitted.
      const was = this.submitted.get(entry.image);
      if (entry.relevance !== null || was === undefined) continue;
      if (was !== "not_relevant") this.marks.set(entry, was);
      this.submitted.delete(entry.image);
    }
    this.marks.settle(entries);
    if (!this.active) return;
    for (const { rank } of entries) {
      const index = this.ranks.indexOf(rank);
      if (index >= 0) this.#drawTile(index);
    }
    this.#sum();
  }

  /** Which ranks are shown has changed. */
  #again() {
    if (!this.active || this.studio.state !== "ready") return;
    const rank = this.rank ?? 1;
    this.#open(this.store.visibleRanks(this.ranks[0] ?? rank, this.size), rank);
  }

  #stillBeside() {
    if (!this.active && !this.ranks.includes(this.studio.rank)) this.studio.notices.hide("grid-back");
  }
}

/** @param {Studio} studio */
export function mount(studio) {
  const grid = new GridView(studio);
  studio.views.grid = grid;
  grid.wire();
}

/** The controls around the tiles: how many, whole or cropped, what a click marks, whether a finger paints. */

class GridTools {
  /**
   * @param {Studio} studio
   * @param {HTMLElement} root the grid's section
   * @param {HTMLElement} bar the bar under it
   * @param {() => void} resized called when another number or form of tiles is chosen
   */
  constructor(studio, root, bar, resized) {
    this.preferences = studio.preferences;
    this.root = root;
    this.bar = bar;
    this.resized = resized;
    this.size = allowedSize(this.preferences.get("grid_size", DEFAULT_TILES));
    this.brush = "relevant";
    this.fingersPaint = false;
    this.slider = root.querySelector("[data-grid-size]");
    this.slider.addEventListener("input", () => this.resize(this.slider.valueAsNumber));
    this.#showSize();
    this.#wireWhole();
    this.#wirePaint();
    for (const button of bar.querySelectorAll("[data-brush]")) {
      button.addEventListener("click", () => this.#take(button.dataset.brush));
    }
    const elsewhere = root.querySelector("[data-grid-elsewhere]");
    elsewhere.addEventListener("click", () => studio.go(Number(elsewhere.dataset.rank)));
  }

  /** Chooses another number of tiles; out of bounds, the nearest allowed. */
  resize(size) {
    const wanted = allowedSize(size);
    const same = wanted === this.size;
    this.size = wanted;
    this.#showSize();
    if (same) return;
    this.preferences.set("grid_size", wanted);
    this.resized();
  }

  /** Where the page stands in the list: "Ranks", "1–40". */
  place(kind, text) {
    this.root.querySelector("[data-grid-kind]").textContent = kind;
    this.root.querySelector("[data-grid-place]").textContent = text;
  }

  /**
   * Says that marks on other pages are still to be submitted.
   * @param {number[]} ranks of the marked
   */
  elsewhere(ranks) {
    const button = this.root.querySelector("[data-grid-elsewhere]");
    button.hidden = !ranks.length;
    if (!ranks.length) return;
    const first = Math.min(...ranks);
    button.dataset.rank = first;
    const marks = counted(ranks.length, "mark");
    button.setAttribute("aria-label", `${marks} on other pages not submitted, go to rank ${first}`);
    button.title = "Not submitted yet; click to go there";
    const words = make("span", { class: "grid-word", text: `${marks.replace(/^\S+/, "")} elsewhere` });
    button.replaceChildren(String(ranks.length), words, " ↩");
  }

  /** What submitting would make: numbers by relevance. */
  sum(numbers) {
    for (const [relevance, number] of Object.entries(numbers)) {
      this.bar.querySelector(`[data-sum=${relevance}]`).textContent = number;
    }
  }

  #showSize() {
    this.slider.value = this.size;
    this.root.querySelector("[data-grid-count]").textContent = this.size;
  }

  #wireWhole() {
    const whole = this.root.querySelector("[data-grid-whole]");
    const tiles = this.root.querySelector("[data-tiles]");
    // What a crop cuts off was not on screen, so it must be chosen.
    whole.checked = Boolean(this.preferences.get("grid_whole", true));
    const fit = () => tiles.toggleAttribute("data-whole", whole.checked);
    whole.addEventListener("change", () => {
      this.preferences.set("grid_whole", whole.checked);
      fit();
      this.resized();
    });
    fit();
  }

  #wirePaint() {
    const paint = this.root.querySelector("[data-grid-paint]");
    paint.addEventListener("click", () => {
      this.fingersPaint = !this.fingersPaint;
      paint.setAttribute("aria-pressed", String(this.fingersPaint));
    });
  }

  #take(brush) {
    this.brush = brush;
    for (const button of this.bar.querySelectorAll("[data-brush]")) {
      button.setAttribute("aria-pressed", String(button.dataset.brush === brush));
    }
  }
}

/** @typedef {CandidateStore} Store */

/** `size` ranks that end before `rank`, or the first ones where fewer are before it. */
export function pageBefore(store, rank, size) {
  let first = store.previous(rank);
  if (first === null) return [];
  for (let step = 1; step < size; step += 1) first = store.previous(first) ?? first;
  return store.visibleRanks(first, size);
}

/** The last page of what the filter shows; empty where it shows nothing. */
export function lastPage(store, size) {
  return pageBefore(store, store.size + 1, size);
}

/**
 * The page after `ranks` is submitted: what is left of it, then what comes after it, from the next unlabeled on;
 * at the end of the list, from the first gap on.
 * @param {Store} store
 * @param {number[]} ranks
 * @param {number[]} left those of them that were not submitted
 * @param {number} size
 * @returns {number[]} empty when all is labeled
 */
export function following(store, ranks, left, size) {
  const after = store.next(ranks.at(-1) ?? 0, { unlabeled: true });
  const from = after ?? (left.length ? null : store.next(0, { unlabeled: true }));
  const more = from === null ? [] : store.visibleRanks(from, size);
  return [...left, ...more.filter((rank) => !left.includes(rank)).slice(0, size - left.length)];
}

/** The grid of images: the rows in sight, by mouse and by keys. */
import { isTyping, make } from "../dom.js";
import { GAP, inSight, layout, positionAfter, room } from "./rows.js";
import { rangeOf } from "./selection.js";

const CAPTION = 22;
/** Pixels below which a tile has no room for its name. */
const NAMED = 110;

/**
 * Events: "move" (detail: the position), "wantall" (all that match are to be selected), "leave" (to the text).
 */
export class Grid extends EventTarget {
  /** @param {HTMLElement} root @param {HTMLElement} bar above it @param {import("./selection.js").Selection} selection */
  constructor(root, bar, selection) {
    super();
    this.root = root;
    this.bar = bar;
    this.list = root.querySelector("ol");
    this.selection = selection;
    this.size = 160;
    this.matches = null;
    this.current = 0;
    this.selecting = false;
    /** By position. */
    this.drawn = new Map();
    const soon = () => {
      this.frame ??= requestAnimationFrame(() => {
        this.frame = undefined;
        this.draw();
      });
    };
    this.changed = soon;
    window.addEventListener("scroll", soon, { passive: true });
    new ResizeObserver(() => this.#resize()).observe(root);
    selection.addEventListener("change", () => this.#showSelection());
    this.list.addEventListener("click", (event) => this.#clicked(event));
    document.addEventListener("keydown", (event) => this.#pressed(event));
  }

  /** Shows other matches from a position on. */
  show(matches, position = 0) {
    this.matches?.stop();
    this.matches?.removeEventListener("change", this.changed);
    this.matches = matches;
    matches.addEventListener("change", this.changed);
    this.current = position;
    this.drawn.clear();
    this.list.replaceChildren();
    this.#measure();
    if (position) this.scrollTo(position);
    else if (this.root.getBoundingClientRect().top < this.#covered) window.scrollTo(0, 0);
    this.draw();
  }

  resize(size) {
    this.size = size;
    this.#resize();
  }

  get length() {
    return this.matches ? room(this.layout, this.matches.length) : 0;
  }

  /** The first position in sight. */
  get position() {
    const row = Math.max(0, Math.round(this.#top / this.layout.row));
    return Math.min(this.length - 1, row * this.layout.columns);
  }

  /** Scrolls so that a position is in sight, at the top where it wasn't. */
  scrollTo(position) {
    const { row, columns } = this.layout;
    const top = Math.floor(position / columns) * row;
    const height = window.innerHeight - this.#covered;
    this.root.style.height = `${Math.ceil(this.length / columns) * row}px`;
    if (top >= this.#top && top + row <= this.#top + height) return;
    const below = top > this.#top && top < this.#top + 2 * height;
    const by = below ? top + row - this.#top - height + GAP : top - this.#top - GAP;
    window.scrollBy({ top: by, behavior: "instant" });
  }

  focus(position = this.current) {
    if (!this.length) return;
    this.#moveTo(Math.min(position, this.length - 1));
  }

  draw() {
    if (!this.matches) return;
    const { list, layout: laid, matches } = this;
    const height = window.innerHeight - this.#covered;
    const { first, last, offset, height: all } = inSight(laid, this.length, this.#top, height);
    this.root.style.height = `${all}px`;
    list.style.transform = `translateY(${offset}px)`;
    for (const [position, tile] of this.drawn) {
      if (position >= first && position < last) continue;
      // Its file isn't wanted any more.
      tile.querySelector("img").removeAttribute("src");
      tile.remove();
      this.drawn.delete(position);
    }
    let next = list.firstChild;
    for (let position = first; position < last; position += 1) {
      const known = this.drawn.get(position);
      const tile = known ?? this.#tile(position);
      if (known) next = known.nextSibling;
      else list.insertBefore(tile, next);
      this.#fill(tile, position);
    }
    matches.want(first, last);
  }

  get #top() {
    return this.#covered - this.root.getBoundingClientRect().top;
  }

  /** How much of the window the bar above the grid covers. */
  get #covered() {
    return this.bar.getBoundingClientRect().height;
  }

  #measure() {
    const caption = this.size < NAMED ? 0 : CAPTION;
    const width = this.root.clientWidth;
    this.layout = layout({ width, size: this.size, caption });
    this.list.style.gridTemplateColumns = `repeat(${this.layout.columns}, minmax(0, 1fr))`;
    this.list.style.gridAutoRows = `${this.layout.row - GAP}px`;
    this.list.classList.toggle("unnamed", !caption);
  }

  /** The same image stays at the top. */
  #resize() {
    if (!this.matches) return;
    const { position } = this;
    const isInside = this.#top > 0;
    this.#measure();
    if (isInside) {
      const row = Math.floor(position / this.layout.columns) * this.layout.row;
      this.root.style.height = `${Math.ceil(this.length / this.layout.columns) * this.layout.row}px`;
      window.scrollBy({ top: row - this.#top, behavior: "instant" });
    }
    this.draw();
  }

  #tile(position) {
    const tile = make(
      "li",
      { class: "tile", "data-position": position, "aria-posinset": position + 1, "aria-setsize": this.length },
      make("a", { tabindex: position === this.current ? "0" : "-1" }, make("img", { alt: "", draggable: "false" })),
      make("input", { type: "checkbox", class: "tile-check", tabindex: "-1", "aria-label": "Select" }),
      make("span", { class: "tile-marks" }),
      make("span", { class: "tile-name" }),
    );
    this.drawn.set(position, tile);
    return tile;
  }

  #fill(tile, position) {
    const id = this.matches.idAt(position);
    if (id === undefined || tile.dataset.filled) return;
    const [link, check, marks, name] = tile.children;
    if (!tile.dataset.id) {
      tile.dataset.id = id;
      link.href = `/images/${id}/`;
      link.setAttribute("aria-label", `Image ${id}`);
      check.setAttribute("aria-label", `Select image ${id}`);
      this.#select(tile, id);
      const score = this.matches.scoreAt(position);
      if (score !== null) marks.append(make("span", { class: "tile-score", text: score.toFixed(3) }));
    }
    const shown = this.matches.tile(id);
    if (shown === undefined) return;
    tile.dataset.filled = "";
    if (shown === null) {
      tile.classList.add("gone");
      name.textContent = "not there any more";
      return;
    }
    link.firstChild.src = shown.thumbnail_url;
    link.setAttribute("aria-label", [shown.name, `image ${id}`].filter(Boolean).join(", "));
    name.textContent = shown.name || shown.file_name.split("/").pop() || id;
    tile.title = shown.file_name;
    if (shown.flagged) marks.append(make("span", { class: "tile-flag", text: "⚑", title: "Flagged" }));
    if (shown.withdrawn) marks.append(make("span", { class: "tile-flag", text: "withdrawn" }));
  }

  #select(tile, id) {
    const selected = this.selection.has(id);
    tile.classList.toggle("selected", selected);
    tile.querySelector(".tile-check").checked = selected;
  }

  #showSelection() {
    for (const tile of this.drawn.values()) if (tile.dataset.id) this.#select(tile, Number(tile.dataset.id));
  }

  #clicked(event) {
    const tile = event.target.closest(".tile");
    if (!tile?.dataset.id) return;
    const position = Number(tile.dataset.position);
    const isCheck = event.target.matches(".tile-check");
    const isLink = event.target.closest("a");
    if (!isCheck && !isLink) return;
    if (isLink && (event.ctrlKey || event.metaKey)) return;
    if (isLink && !event.shiftKey && !this.selecting && !this.selection.size) return;
    // A click on the checkbox is undone at its end; the selection alone says how it stands.
    if (!isCheck) event.preventDefault();
    if (event.shiftKey) this.selectTo(position);
    else this.selection.toggle(Number(tile.dataset.id), position);
    this.#moveTo(position);
  }

  /** Selects the range from the last choice to a position. */
  async selectTo(position) {
    const { matches, selection } = this;
    const anchor = selection.anchor ?? this.current;
    const ids = await matches.ids(...rangeOf(anchor, position));
    if (matches !== this.matches) return;
    selection.anchor = anchor;
    selection.add(ids);
  }

  #moveTo(position) {
    this.drawn.get(this.current)?.querySelector("a").setAttribute("tabindex", "-1");
    this.current = position;
    this.scrollTo(position);
    this.draw();
    const link = this.drawn.get(position)?.querySelector("a");
    link?.setAttribute("tabindex", "0");
    link?.focus({ preventScroll: true });
  }

  #pressed(event) {
    if (event.defaultPrevented || !this.matches || isTyping(event.target)) return;
    if (event.altKey || document.querySelector("dialog[open]")) return;
    const isControl = event.ctrlKey || event.metaKey;
    const isInGrid = this.list.contains(document.activeElement);
    if (isControl && event.key === "a") this.dispatchEvent(new Event("wantall"));
    else if (isControl) return;
    else if (event.key === "Escape") this.selection.clear();
    else if (event.key === "/") this.dispatchEvent(new Event("leave"));
    else if (!isInGrid) return;
    else if (event.key === " ") this.#toggleCurrent();
    else if (event.key === "ArrowUp" && this.current < this.layout.columns) this.dispatchEvent(new Event("leave"));
    else {
      const rows = Math.floor((window.innerHeight - this.#covered) / this.layout.row);
      const next = positionAfter(event.key, this.current, this.layout.columns, rows, this.length);
      if (next === null) return;
      if (event.shiftKey) {
        this.selection.anchor ??= this.current;
        this.selectTo(next);
      }
      this.#moveTo(next);
    }
    event.preventDefault();
  }

  #toggleCurrent() {
    const id = this.matches.idAt(this.current);
    if (id !== undefined) this.selection.toggle(id, this.current);
  }
}

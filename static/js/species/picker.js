/** A combobox over species; each choice becomes a chip, groups and pasted lists become many. */
import { counted, speciesName } from "../words.js";
import { Chips } from "./chips.js";
import { isList, NAMES_AT_ONCE, parseNames, Report } from "./names.js";
import { groupRow, groupTitle, speciesRow } from "./rows.js";
import { CorpusSource } from "./source.js";

const WAIT = 120;
const SPECIES_SHOWN = 7;
const GROUPS_SHOWN = 5;
/** A form that is sent in the address has room for about so many ids. */
const MOST_IN_ADDRESS = 200;

export class Picker {
  /**
   * @param {HTMLElement} root as templates/retrieval/_picker.html draws it
   * @param {{source?: CorpusSource, changed?: (ids: number[]) => void}} [options]
   */
  constructor(root, { source = new CorpusSource(), changed = () => {} } = {}) {
    const part = (name) => root.querySelector(`[data-picker-${name}]`);
    this.source = source;
    this.changed = changed;
    this.input = root.querySelector("input[type=search]");
    this.popup = part("popup");
    this.options = part("options");
    this.note = part("note");
    this.live = part("live");
    this.listButton = part("list");
    this.listBox = part("paste");
    this.listText = this.listBox.querySelector("textarea");
    this.choices = [];
    this.active = -1;
    this.most = this.input.form?.method === "get" && root.dataset.picker ? MOST_IN_ADDRESS : Infinity;
    this.report = new Report(part("report"), {
      add: (species) => this.add(species),
      closed: () => this.input.focus(),
    });
    this.chips = new Chips(part("chips"), {
      name: root.dataset.picker,
      tools: { fold: part("fold"), clear: part("clear") },
      details: (id) => this.source.details(id),
      addGroup: (group) => this.#addGroup(group),
      changed: () => this.changed(this.ids),
      emptied: (count, putBack) => this.#emptied(count, putBack),
      focusOut: () => this.input.focus(),
    });
    this.#listen();
  }

  /** The ids of the chosen species. */
  get ids() {
    return this.chips.ids;
  }

  /** Chooses species; returns how many were not chosen before. */
  add(species) {
    const room = this.most - this.ids.length;
    const chosen = new Set(this.ids);
    const fresh = species.filter(({ id }) => !chosen.has(id));
    const added = this.chips.add(fresh.slice(0, Math.max(0, room)));
    if (fresh.length > room) {
      this.report.say(`At most ${this.most} species can be searched at once: ${fresh.length - added} were left out.`, {
        kind: "warning",
      });
    } else if (added) {
      this.#say(added === 1 ? `${speciesName(fresh[0])} added` : `${added} species added`);
    }
    return added;
  }

  /** Takes all choices away. */
  clear() {
    this.chips.clear();
    this.report.hide();
    this.input.value = "";
    this.#close();
  }

  #listen() {
    this.input.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.#search(), WAIT);
    });
    this.input.addEventListener("keydown", (event) => this.#key(event));
    this.input.addEventListener("blur", () => this.#close());
    this.input.addEventListener("click", () => this.popup.hidden && this.#search());
    this.input.addEventListener("paste", (event) => {
      const text = event.clipboardData?.getData("text/plain") ?? "";
      if (!isList(text)) return;
      event.preventDefault();
      this.#addNames(text);
    });
    // The input keeps the focus while an option is pressed.
    this.popup.addEventListener("pointerdown", (event) => event.preventDefault());
    this.options.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) this.#choose(this.#rows.indexOf(option));
    });
    this.listButton.addEventListener("click", () => this.#toggleList());
    this.listBox.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.#toggleList();
    });
    this.listBox.querySelector("[data-picker-add]").addEventListener("click", async () => {
      if (!this.listText.value.trim()) {
        this.listText.focus();
        return;
      }
      if (await this.#addNames(this.listText.value)) {
        this.listText.value = "";
        this.#toggleList();
      }
    });
  }

  get #rows() {
    return [...this.options.querySelectorAll("[role=option]")];
  }

  async #search() {
    const text = this.input.value.trim();
    this.request?.abort();
    // One letter says little, but one character of Chinese or Japanese can be a name.
    const shortest = /^[\x20-\x7e]*$/.test(text) ? 2 : 1;
    if (text && text.length < shortest) {
      this.#close();
      return;
    }
    const request = new AbortController();
    this.request = request;
    try {
      const { signal } = request;
      const found = await (text
        ? this.source.search(text, { limit: SPECIES_SHOWN, signal })
        : this.source.first(SPECIES_SHOWN));
      if (this.request !== request || document.activeElement !== this.input) return;
      if (found) this.#draw(found, text);
      else this.#close();
    } catch (error) {
      if (error.name !== "AbortError" && this.request === request) this.#drawChoices([], [], error.message);
    }
  }

  #draw({ species, groups, total }, text) {
    const together = groups.slice(0, GROUPS_SHOWN);
    let note = "";
    if (total > species.length) {
      const more = counted(total - species.length, "more species", "more species");
      note = `${more}: type ${text ? "more letters" : "a name"}.`;
    } else if (!species.length && !together.length) {
      note = isList(text) ? "Press Enter to look up all these names." : "No species has this name.";
    }
    this.#drawChoices(species, together, note, { point: Boolean(text) });
  }

  /** The first choice is pointed at where somebody typed, so that Enter takes it. */
  #drawChoices(species, groups, note, { point = false } = {}) {
    const chosen = new Set(this.ids);
    const id = (index) => `${this.options.id}-${index}`;
    this.choices = [...species.map((one) => ({ species: one })), ...groups.map((group) => ({ group }))];
    const sections = [
      ["Species", species.map((one, index) => speciesRow(one, { id: id(index), chosen: chosen.has(one.id) }))],
      ["Add together", groups.map((group, index) => groupRow(group, { id: id(species.length + index) }))],
    ];
    const filled = sections.filter(([, rows]) => rows.length);
    this.options.replaceChildren(...filled.map(([title, rows]) => section(title, rows)));
    this.options.hidden = !this.choices.length;
    this.note.textContent = note;
    this.note.hidden = !note;
    this.active = point && this.choices.length ? 0 : -1;
    this.#open();
    this.#mark();
    const parts = [
      species.length || !groups.length ? counted(species.length, "species", "species") : "",
      groups.length ? counted(groups.length, "group") : "",
    ];
    this.#say(this.choices.length ? `${parts.filter(Boolean).join(" and ")} found` : note);
  }

  #mark() {
    this.#rows.forEach((row, index) => {
      row.setAttribute("aria-selected", String(index === this.active));
      if (index === this.active) row.scrollIntoView({ block: "nearest" });
    });
    if (this.active >= 0) this.input.setAttribute("aria-activedescendant", this.#rows[this.active].id);
    else this.input.removeAttribute("aria-activedescendant");
  }

  #key(event) {
    const { key } = event;
    if (event.isComposing) return;
    const open = !this.popup.hidden;
    if (key === "Escape" && open) this.#close();
    else if (key === "ArrowDown" && !open) this.#search();
    else if (key === "ArrowDown" && open) this.#move(1);
    else if (key === "ArrowUp" && open) this.#move(-1);
    else if (key === "Enter" && open && this.active >= 0) this.#choose(this.active);
    else if (key === "Enter" && isList(this.input.value)) this.#addTyped();
    else if (key === "Enter" && this.input.value.trim()) this.#searchAtOnce();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #move(by) {
    const count = this.choices.length;
    if (!count) return;
    this.active = this.active < 0 && by < 0 ? count - 1 : (this.active + by + count) % count;
    this.#mark();
  }

  /** A name that was typed and not chosen from the list is no choice yet, so the form is not sent with it. */
  #searchAtOnce() {
    clearTimeout(this.timer);
    this.#search();
  }

  async #addTyped() {
    const text = this.input.value;
    if (await this.#addNames(text)) this.input.value = "";
  }

  async #choose(index) {
    const choice = this.choices[index];
    if (!choice) return;
    this.input.value = "";
    this.choices = [];
    this.#close();
    this.report.hide();
    if (choice.group) await this.#addGroup(choice.group);
    else if (!this.add([choice.species])) this.#say(`${speciesName(choice.species)} is already chosen`);
  }

  async #addGroup(group) {
    try {
      const { found } = await this.source.resolve({ groups: [group] });
      if (!this.add(found) && this.report.root.hidden) {
        this.report.say(`All species of ${lowered(groupTitle(group))} are already chosen.`);
      }
    } catch (error) {
      this.report.say(error.message, { kind: "error" });
    }
  }

  /** Looks a pasted list up; false when that was not possible. */
  async #addNames(text) {
    const names = parseNames(text);
    this.#close();
    if (names.length > NAMES_AT_ONCE) {
      const most = counted(NAMES_AT_ONCE, "name");
      this.report.say(`The list has ${counted(names.length, "name")}; at most ${most} can be looked up at once.`, {
        kind: "error",
      });
      return false;
    }
    if (!names.length) {
      this.report.say("The list holds no names.", { kind: "warning" });
      return false;
    }
    this.report.say(`Looking ${counted(names.length, "name")} up …`);
    try {
      const { found, ...rest } = await this.source.resolve({ names });
      const before = this.ids.length;
      this.report.hide();
      this.add(found);
      if (this.report.root.hidden) {
        const added = this.ids.length - before;
        this.report.list({ names: names.length, found: found.length, added, ...rest });
      }
      return true;
    } catch (error) {
      this.report.say(error.message, { kind: "error" });
      return false;
    }
  }

  #emptied(count, putBack) {
    this.report.say(`${counted(count, "species", "species")} removed.`, {
      action: { label: "Put back", run: putBack },
    });
  }

  #toggleList() {
    this.listBox.hidden = !this.listBox.hidden;
    this.listButton.setAttribute("aria-expanded", String(!this.listBox.hidden));
    (this.listBox.hidden ? this.listButton : this.listText).focus();
  }

  #say(text) {
    this.live.textContent = text;
  }

  #open() {
    this.popup.hidden = false;
    this.input.setAttribute("aria-expanded", String(!this.options.hidden));
  }

  #close() {
    clearTimeout(this.timer);
    this.request?.abort();
    this.request = null;
    this.popup.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }
}

function lowered(title) {
  return title[0].toLowerCase() + title.slice(1);
}

function section(title, rows) {
  const list = document.createElement("ul");
  list.setAttribute("role", "group");
  list.setAttribute("aria-label", title);
  list.append(...rows);
  return list;
}

/**
 * Flags on the image on screen: what a reviewer should look at, apart from relevance. Each is
 * stored the moment it is set; nothing waits in the browser.
 */
import { api } from "../api.js";
import { isTyping, make, modal, showState } from "../dom.js";
import { counted, trouble } from "../words.js";
import { keysOfEvent } from "./keys.js";

/** The kinds in the order of their number keys; names as in retrieval's ImageFlag. */
const FLAG_KINDS = [
  ["person", "Person or face"],
  ["personal_data", "Personal data"],
  ["no_organism", "No organism"],
  ["not_a_photo", "Spectrogram or drawing"],
  ["wrong_species", "Wrong species"],
  ["poor_quality", "Poor quality"],
  ["duplicate", "Duplicate"],
];
const NAMES = new Map(FLAG_KINDS);

const CONNECTION_NEEDED = "Flags, unlike labels, can't be saved without it.";

/** @param {Studio} studio */
export function mount(studio) {
  const dialog = studio.root.querySelector("[data-flags]");
  if (!dialog) return;
  new FlagsDialog(studio, dialog).start();
  mountMark(studio);
}

/** Over the image: that it has an open flag, and of which kinds. */
function mountMark(studio) {
  const mark = make("p", { class: "flag-mark", "data-flag-mark": true, hidden: true });
  studio.root.querySelector("[data-stage]").append(mark);
  const render = () => {
    const entry = studio.store.entry(studio.rank);
    mark.hidden = !entry?.flagged;
    const kinds = studio.current?.flags ?? [];
    const names = [...new Set(kinds)].map((kind) => NAMES.get(kind)?.toLowerCase() ?? kind);
    mark.textContent = names.length ? `⚑ Flagged: ${names.join(", ")}` : "⚑ Flagged";
  };
  studio.on("rank", render);
  studio.on("labels", render);
}

class FlagsDialog {
  constructor(studio, dialog) {
    this.studio = studio;
    this.dialog = dialog;
    this.openDialog = modal(dialog);
    dialog.addEventListener("close", () => this.saveNote());
    this.note = dialog.querySelector("[data-flags-note]");
    this.state = dialog.querySelector("[data-flags-state]");
    this.retry = dialog.querySelector("[data-flags-retry]");
    this.image = null;
    this.flags = []; // the open ones of the image, by anyone
    this.busy = new Set();
    this.rows = new Map();
  }

  start() {
    const kinds = this.dialog.querySelector("[data-flags-kinds]");
    FLAG_KINDS.forEach(([kind, name], index) => {
      const who = make("span", { class: "flags-who small muted" });
      const button = make(
        "button",
        {
          type: "button",
          class: "button flags-kind",
          "data-kind": kind,
          "aria-pressed": "false",
          "aria-keyshortcuts": String(index + 1),
          disabled: true,
          on: { click: () => this.toggle(kind) },
        },
        make("kbd", { text: String(index + 1), "aria-hidden": "true" }),
        make("span", { class: "flags-name", text: name }),
        who,
      );
      this.rows.set(kind, { button, who });
      kinds.append(button);
    });
    this.studio.action("flag", () => this.open());
    this.note.addEventListener("change", () => this.saveNote());
    this.retry.addEventListener("click", () => this.load());
    this.dialog.addEventListener("keydown", (event) => this.key(event));
  }

  open() {
    const entry = this.studio.store.entry(this.studio.rank);
    if (!entry) return;
    this.image = entry.image;
    this.flags = [];
    this.note.value = "";
    const img = this.dialog.querySelector("[data-flags-image]");
    img.removeAttribute("src");
    const show = (details) => {
      if (details && this.image === entry.image) img.src = details.thumbnail_url;
    };
    this.studio.store.details(entry.rank).then(show, () => {});
    this.render(false);
    this.openDialog(this.dialog.querySelector("header [data-close]"));
    this.load();
  }

  key(event) {
    if (isTyping(event.target)) return;
    const [kind] = keysOfEvent(event).flatMap((key) => FLAG_KINDS[Number(key) - 1]?.[0] ?? []);
    if (!kind || event.repeat) return;
    event.preventDefault();
    this.toggle(kind);
  }

  async load() {
    const image = this.image;
    this.retry.hidden = true;
    this.say("Loading …");
    try {
      const answer = await api(`/api/images/${image}/flags/`);
      if (image !== this.image) return;
      this.flags = answer.results ?? answer;
    } catch (error) {
      if (image !== this.image) return;
      this.say(trouble(error, CONNECTION_NEEDED), true);
      this.retry.hidden = false;
      return;
    }
    this.note.value = this.own()[0]?.note || "";
    this.render(true);
    this.say("");
    if (document.activeElement?.matches("[data-flags] header [data-close]")) {
      this.rows.get(FLAG_KINDS[0][0]).button.focus();
    }
  }

  own(kind) {
    return this.flags.filter((flag) => flag.own && (!kind || flag.kind === kind));
  }

  /** Set one's own flag of a kind, or take it back. */
  async toggle(kind) {
    const image = this.image;
    if (this.busy.has(kind) || this.rows.get(kind).button.disabled) return;
    const [standing] = this.own(kind);
    this.busy.add(kind);
    this.render(true);
    this.say("Saving …");
    try {
      if (standing) {
        await this.remove(image, standing);
        this.say(`Removed: ${NAMES.get(kind)}.`);
      } else {
        await this.add(image, kind, this.note.value.trim());
        this.say(`Saved: ${NAMES.get(kind)}.`);
      }
    } catch (error) {
      const undone = `${NAMES.get(kind)} was not ${standing ? "removed" : "saved"}.`;
      this.say(
        error.status === 0 ? trouble(error, `${undone} ${CONNECTION_NEEDED}`) : `${undone} ${error.message}`,
        true,
      );
    } finally {
      this.busy.delete(kind);
      if (image === this.image) this.render(true);
    }
  }

  async add(image, kind, note) {
    const flag = await api(`/api/images/${image}/flags/`, { method: "POST", body: { kind, note } });
    this.keep(image, [...this.flags.filter((known) => known.id !== flag.id), flag]);
  }

  async remove(image, flag) {
    await api(`/api/images/${image}/flags/${flag.id}/`, { method: "DELETE" });
    this.keep(
      image,
      this.flags.filter((known) => known.id !== flag.id),
    );
  }

  /** The flags of an image as they stand now; marks it in the store, whichever is on screen. */
  keep(image, flags) {
    if (image === this.image) this.flags = flags;
    this.studio.store.setFlags(
      image,
      flags.map((flag) => flag.kind),
    );
  }

  /** A note that was changed after the flags were set goes to each of them. */
  async saveNote() {
    const image = this.image;
    const note = this.note.value.trim();
    const stale = this.own().filter((flag) => flag.note !== note);
    if (stale.length === 0) return;
    this.say("Saving the note …");
    try {
      for (const flag of stale) {
        // Sending no note keeps the old one, so an emptied one needs a new flag.
        if (!note) await this.remove(image, flag);
        await this.add(image, flag.kind, note);
      }
      this.say(note ? "Note saved." : "Note removed.");
    } catch (error) {
      const text = trouble(error, `The note was not saved. ${CONNECTION_NEEDED}`);
      this.say(text, true);
      if (!this.dialog.open) this.studio.notices.show("flag-note", { kind: "warning", text, actions: [] });
    }
  }

  render(ready) {
    for (const [kind, { button, who }] of this.rows) {
      button.disabled = !ready;
      button.setAttribute("aria-pressed", String(this.own(kind).length > 0));
      button.setAttribute("aria-busy", String(this.busy.has(kind)));
      who.textContent = raisedBy(this.flags.filter((flag) => flag.kind === kind));
    }
  }

  say(text, problem = false) {
    showState(this.state, text, problem);
  }
}

/** Who flagged it; annotators learn of the others only how many they are. */
function raisedBy(flags) {
  const named = flags.filter((flag) => flag.own || flag.raised_by);
  const others = flags.length - named.length;
  const names = named.map((flag) => {
    const name = flag.own ? "you" : flag.raised_by;
    return flag.note && !flag.own ? `${name} (${flag.note})` : name;
  });
  if (others) names.push(named.length ? counted(others, "other") : counted(others, "person", "people"));
  return names.length ? `flagged by ${names.join(", ")}` : "";
}

/** The stop panel: which rules hold, what is still open, and the ways out of the query. */
import { api } from "../api.js";
import { inTime } from "./frame.js";
import { counted, make, modal, trouble } from "./panel-tools.js";
import { goTo } from "./strip.js";
import { openEnds, rules, todo, verdict } from "./stop-words.js";

class StopPanel {
  /** @param {import("./studio.js").Studio} studio */
  constructor(studio) {
    this.studio = studio;
    this.store = studio.store;
    this.dialog = studio.root.querySelector("[data-stop]");
    this.modal = modal(this.dialog, { closed: () => this.#closed() });
    this.key = `went-on ${studio.user.id} ${studio.api}`;
    this.detail = null;
    this.attempt = 0;
  }

  get wentOn() {
    return sessionStorage.getItem(this.key) !== null;
  }

  wire() {
    const { studio, dialog } = this;
    studio.action("stop_panel", () => (dialog.open ? dialog.close() : this.open()));
    studio.on("progress", () => this.#progressed());
    studio.on("state", () => this.#progressed());
    studio.on("list", () => dialog.open && this.#fill());
    // Another dialog was in the way when the rule was met.
    document.addEventListener("close", ({ target }) => target !== dialog && this.#progressed(), true);
    studio.outbox.addEventListener("state", () => this.#waiting());
    const run = {
      extend: () => this.#extend(),
      "go-on": () => {
        // At once: the dialog's close event comes later, and an answer of the server may come between.
        this.#remember();
        dialog.close();
      },
      "hand-in": () => this.#handIn(),
      complete: () => this.#complete(),
    };
    for (const button of dialog.querySelectorAll("[data-stop-do]")) {
      button.addEventListener("click", run[button.dataset.stopDo]);
    }
    const form = dialog.querySelector("[data-stop-give-up-form]");
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#giveUp(form);
    });
  }

  open() {
    if (this.dialog.open || !this.store.size) return;
    this.#say("");
    this.#fill();
    this.modal.open(this.#button("go-on"));
    this.#read();
  }

  #button(name) {
    return this.dialog.querySelector(`[data-stop-do="${name}"]`);
  }

  /** Opens by itself when the rule becomes met, once the act that met it is over. */
  #progressed() {
    if (this.studio.state === "loading" || !this.store.size) return;
    const { stop } = this.store.progress;
    this.studio.root.toggleAttribute("data-stop-met", stop.met);
    if (!stop.met) sessionStorage.removeItem(this.key);
    if (this.dialog.open) this.#fill();
    if (!stop.met || stop.exhausted || this.wentOn || this.studio.closed || this.asked) return;
    this.asked = true;
    queueMicrotask(() => {
      this.asked = false;
      if (!this.studio.blocked && this.store.progress.stop.met) this.open();
    });
  }

  #closed() {
    this.attempt += 1;
    this.#busy(false);
    this.#remember();
  }

  /** Whoever went on once isn't asked again until the rule was unmet. */
  #remember() {
    if (this.store.progress.stop.met) sessionStorage.setItem(this.key, "");
  }

  /** What only the server knows: the states that this person may decide. */
  async #read() {
    try {
      this.detail = await api(this.studio.api);
    } catch {
      // The usual way out, handing in, stays; the server says what it thinks of it.
      return;
    }
    if (this.dialog.open) this.#fill();
  }

  #fill() {
    const { progress, list } = this.store;
    const { stop } = progress;
    const title = stop.exhausted ? "The list is exhausted" : stop.met ? "The stop rule is met" : "Where you stand";
    this.dialog.querySelector("[data-stop-title]").textContent = title;
    this.dialog.toggleAttribute("data-met", stop.met);
    this.dialog.querySelector("[data-stop-verdict]").textContent = this.#verdict(progress);
    const lines = rules(progress, list).map((rule) => this.#rule(rule));
    this.dialog.querySelector("[data-stop-rules]").replaceChildren(...lines);
    const pace = progress.seconds_per_image;
    const figures = {
      relevant: progress.relevant.toLocaleString("en"),
      unsure: progress.unsure.toLocaleString("en"),
      active: inTime(progress.active_seconds ?? 0),
      pace: pace === null || pace === undefined ? "–" : `${pace.toFixed(1)} s`,
    };
    for (const [name, value] of Object.entries(figures)) {
      this.dialog.querySelector(`[data-stop-figure="${name}"]`).textContent = value;
    }
    const unsubmitted = this.studio.views.grid?.unsubmitted ?? 0;
    const open = todo(openEnds(this.store), progress.unsure, unsubmitted).map((item) => this.#todo(item));
    this.dialog.querySelector("[data-stop-todo]").replaceChildren(...open);
    this.#offer(progress, list);
  }

  #verdict(progress) {
    return this.studio.closed || verdict(progress);
  }

  #rule({ name, holds, value, of, text, note }) {
    const meter = make("progress", {
      max: String(Math.max(1, of)),
      value: String(Math.min(value, of)),
      "aria-label": name,
    });
    const told = holds ? ", holds" : ", not yet";
    return make(
      "li",
      { "data-holds": holds },
      make("span", { class: "stop-sign", "aria-hidden": "true", text: holds ? "✓" : "·" }),
      make("span", { class: "stop-name", text: name }),
      make("span", { class: "stop-value" }, text, make("span", { class: "visually-hidden", text: told })),
      meter,
      note ? make("span", { class: "stop-note small muted", text: note }) : null,
    );
  }

  #todo({ text, rank }) {
    const there = () => {
      this.dialog.close();
      goTo(this.studio, rank);
    };
    const button = { type: "button", class: "button compact", text: "Go there", on: { click: there } };
    return make("li", {}, make("span", { text }), rank ? make("button", button) : null);
  }

  #offer({ stop, remaining }, list) {
    const may = this.detail?.transitions ?? (this.studio.closed ? [] : ["submitted"]);
    const handIn = this.#button("hand-in");
    handIn.hidden = !may.includes("submitted");
    const complete = this.#button("complete");
    complete.hidden = !may.includes("complete");
    complete.classList.toggle("primary", handIn.hidden);
    this.#button("extend").hidden = this.studio.closed !== "" || remaining > 0 || list.size >= list.total;
    this.dialog.querySelector("[data-stop-early]").hidden = stop.met || handIn.hidden;
    this.dialog.querySelector("[data-stop-give-up]").hidden = handIn.hidden;
    this.#others();
    this.dialog.querySelector("[data-stop-note-hint]").textContent =
      this.studio.user.role === "annotator"
        ? "The stop rule isn't met, so handing in needs a reason."
        : "The stop rule isn't met; a reason helps whoever reads this later.";
  }

  /** Who else still labels, and what that means for the query. */
  #others() {
    const names = (this.detail?.still_labeling ?? []).filter((name) => name !== this.studio.user.name);
    const node = this.dialog.querySelector("[data-stop-others]");
    node.hidden = !names.length;
    const then =
      this.studio.user.role === "annotator"
        ? "Your part ends when you hand in; the query is submitted with the last part."
        : "Submitting or completing the query ends their parts.";
    node.textContent = `Still labeling: ${names.join(", ")}. ${then}`;
  }

  #handIn() {
    const note = this.dialog.querySelector("[data-stop-note]");
    const early = !this.store.progress.stop.met;
    if (early && this.studio.user.role === "annotator" && !note.value.trim()) {
      this.#say("Say why to stop here, or go on.", true);
      note.focus();
      return;
    }
    this.#decide({ state: "submitted", note: early ? note.value.trim() : "" }, "Handing in …");
  }

  #complete() {
    this.#decide({ state: "complete" }, "Completing …");
  }

  #giveUp(form) {
    const reason = form.elements["give-up"].value;
    const note = form.querySelector("textarea");
    if (!reason) {
      this.#say("Choose a reason for giving up.", true);
      return;
    }
    if (reason === "other" && !note.value.trim()) {
      this.#say("Say in the note what the reason is.", true);
      note.focus();
      return;
    }
    this.#decide({ state: "submitted", give_up: reason, note: note.value.trim() }, "Handing in …");
  }

  /** Passes the query on once every label is saved; closing the panel meanwhile calls it off. */
  async #decide(body, doing) {
    this.attempt += 1;
    const { attempt } = this;
    this.#busy(true);
    this.doing = doing;
    this.#waiting();
    await this.studio.outbox.drained();
    if (attempt !== this.attempt) return;
    this.#say(doing);
    try {
      await api(this.studio.api, { method: "PATCH", body });
      window.location.assign(this.studio.root.querySelector("a.back").href);
    } catch (error) {
      if (attempt !== this.attempt) return;
      if (body.state === "complete" && error.errors?.some(({ field }) => field === "note")) {
        // Something is left open: the page that lists it asks for the reason.
        window.location.assign(this.studio.root.dataset.complete);
        return;
      }
      this.#busy(false);
      this.#say(trouble(error, "Nothing was handed in; try again."), true);
    }
  }

  /** While labels are on their way, says how many. */
  #waiting() {
    if (!this.busy) return;
    const { waiting, problem } = this.studio.outbox;
    if (!waiting) {
      this.#say(this.doing);
      return;
    }
    const wait = `${counted(waiting, "label")} still to be saved`;
    this.#say(problem ? `${problem.message} ${wait}; it goes on by itself.` : `${wait} …`, Boolean(problem));
  }

  async #extend() {
    this.#busy(true);
    this.#say("Extending the list …");
    try {
      await this.studio.extend();
      this.dialog.close();
    } catch (error) {
      this.#busy(false);
      this.#say(trouble(error, "The list was not extended."), true);
    }
  }

  #busy(on) {
    this.busy = on;
    const controls = "[data-stop-do]:not([data-stop-do=go-on]), [data-stop-give-up-form] button";
    for (const button of this.dialog.querySelectorAll(controls)) button.disabled = on;
  }

  #say(text, problem = false) {
    const state = this.dialog.querySelector("[data-stop-state]");
    state.textContent = text;
    state.classList.toggle("problem", problem);
  }
}

/** @param {import("./studio.js").Studio} studio */
export function mount(studio) {
  new StopPanel(studio).wire();
}

/** The stop panel: which rules are met, what is still open, and how to leave the query. */
import { api } from "../api.js";
import { button, make, modal, showState } from "../dom.js";
import { counted, duration, number, pace, trouble } from "../words.js";
import { handInState } from "./rules.js";
import { goTo } from "./strip.js";

class StopPanel {
  /** @param {Studio} studio */
  constructor(studio) {
    this.studio = studio;
    this.store = studio.store;
    this.dialog = studio.root.querySelector("[data-stop]");
    this.openDialog = modal(this.dialog);
    this.dialog.addEventListener("close", () => this.#closed());
    this.key = `continued ${studio.user.id} ${studio.api}`;
    this.detail = null;
    this.attempt = 0;
  }

  /** How the query's rule stands. */
  get rule() {
    return handInState(this.store.outline.hand_in, this.store.progress, this.store.list);
  }

  /** Why the panel opens by itself, if it does: "met", "pause" or "". */
  get occasion() {
    const { met, pause } = this.rule;
    return met ? "met" : pause ? "pause" : "";
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
      continue: () => {
        // At once: the dialog's close event comes later, and a server response may come first.
        this.#remember();
        dialog.close();
      },
      "hand-in": () => this.#handIn(),
      complete: () => this.#complete(),
    };
    for (const button of dialog.querySelectorAll("[data-stop-do]")) {
      button.addEventListener("click", run[button.dataset.stopDo]);
    }
    dialog.querySelector("[data-stop-audit]").addEventListener("click", (event) => this.#audit(event));
    const form = dialog.querySelector("[data-stop-give-up-form]");
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#giveUp(form);
    });
  }

  /** @param {HTMLElement} first what gets the focus */
  open(first = this.#button("continue")) {
    if (this.dialog.open || !this.store.size) return;
    this.#say("");
    this.#fill();
    this.openDialog(first);
    this.#read();
  }

  #button(name) {
    return this.dialog.querySelector(`[data-stop-do="${name}"]`);
  }

  /** Opens by itself when the rule becomes met or the streak long enough, once the act that did it is over. */
  #progressed() {
    if (this.studio.state === "loading" || !this.store.size) return;
    const { occasion } = this;
    const { exhausted } = this.store.progress.stop;
    const continued = sessionStorage.getItem(this.key) === occasion;
    const met = occasion === "met";
    this.studio.root.toggleAttribute("data-stop-met", met);
    this.studio.root.querySelector("[data-rule-met]").hidden = !met || this.studio.closed !== "";
    if (!occasion) sessionStorage.removeItem(this.key);
    if (this.dialog.open) this.#fill();
    if (!occasion || exhausted || continued || this.studio.closed || this.opening) return;
    this.opening = true;
    queueMicrotask(() => {
      this.opening = false;
      // On no button, which the next press of the key that labels would activate.
      if (!this.studio.blocked && this.occasion) this.open(this.dialog.querySelector("[data-stop-title]"));
    });
  }

  #closed() {
    this.attempt += 1;
    this.#busy(false);
    this.#remember();
  }

  /** Whoever continued once isn't asked again until the occasion was over. */
  #remember() {
    const { occasion } = this;
    if (occasion) sessionStorage.setItem(this.key, occasion);
  }

  /** What only the server knows: the states that this person may decide, and the certificate. */
  async #read() {
    try {
      this.detail = await api(this.studio.api);
    } catch {
      // Handing in stays possible; the server checks it.
      return;
    }
    this.store.outline.hand_in = this.detail.hand_in;
    this.#progressed();
  }

  #fill() {
    const { progress, list } = this.store;
    const { rule } = this;
    const title = progress.stop.exhausted
      ? "The list is exhausted"
      : { met: "The stop rule is met", pause: "A place to pause", "": "Progress" }[this.occasion];
    this.dialog.querySelector("[data-stop-title]").textContent = title;
    this.dialog.toggleAttribute("data-met", rule.met);
    this.dialog.querySelector("[data-stop-verdict]").textContent = this.studio.closed || verdict(rule, progress);
    const lines = rule.rows.map((row) => this.#row(row));
    this.dialog.querySelector("[data-stop-rules]").replaceChildren(...lines);
    const figures = {
      relevant: number(progress.relevant),
      unsure: number(progress.unsure),
      active: duration(progress.active_seconds ?? 0),
      pace: pace(progress.seconds_per_image),
    };
    for (const [name, value] of Object.entries(figures)) {
      this.dialog.querySelector(`[data-stop-figure="${name}"]`).textContent = value;
    }
    const unsubmitted = this.studio.views.grid?.unsubmitted ?? 0;
    const open = todo(openEnds(this.store), progress.unsure, unsubmitted).map((item) => this.#todo(item));
    this.dialog.querySelector("[data-stop-todo]").replaceChildren(...open);
    this.#offer(rule, progress, list);
  }

  #row({ name, holds, value, of, text, note }) {
    const meter = make("progress", {
      max: String(of || 1),
      value: String(Math.min(value, of)),
      "aria-label": name,
    });
    return make(
      "li",
      { "data-holds": holds },
      make("span", { class: "stop-sign", "aria-hidden": "true", text: holds ? "✓" : "·" }),
      make("span", { class: "stop-name", text: name }),
      make(
        "span",
        { class: "stop-value" },
        text,
        make("span", { class: "visually-hidden", text: holds ? ", met" : ", not met" }),
      ),
      meter,
      note ? make("span", { class: "stop-note small muted", text: note }) : null,
    );
  }

  #todo({ text, rank }) {
    const there = () => {
      this.dialog.close();
      goTo(this.studio, rank);
    };
    return make("li", {}, make("span", { text }), rank ? button("Go there", there) : null);
  }

  #offer({ met, pause }, { remaining }, list) {
    const may = this.detail?.transitions ?? (this.studio.closed ? [] : ["submitted"]);
    const handIn = this.#button("hand-in");
    handIn.hidden = !may.includes("submitted");
    const complete = this.#button("complete");
    complete.hidden = !may.includes("complete");
    const audit = this.dialog.querySelector("[data-stop-audit]");
    const done = handIn.hidden && !complete.hidden ? complete : handIn;
    const unmet = pause ? audit : this.#button("continue");
    const primary = met || this.studio.closed ? done : unmet;
    for (const button of [handIn, complete, audit, this.#button("continue")]) {
      button.classList.toggle("primary", button === primary);
    }
    this.#button("extend").hidden = this.studio.closed !== "" || remaining > 0 || list.size >= list.total;
    this.dialog.querySelector("[data-stop-early]").hidden = met || handIn.hidden;
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
    const early = !this.rule.met;
    if (early && this.studio.user.role === "annotator" && !note.value.trim()) {
      this.#say("Give a reason for stopping here, or continue labeling.", true);
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
      this.#say("Describe the reason in the note.", true);
      note.focus();
      return;
    }
    this.#decide({ state: "submitted", give_up: reason, note: note.value.trim() }, "Handing in …");
  }

  /** Changes the query's state once every label is saved; closing the panel meanwhile cancels it. */
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
      window.location.assign(this.studio.page.handed_in);
    } catch (error) {
      if (attempt !== this.attempt) return;
      if (body.state === "complete" && error.errors?.some(({ field }) => field === "note")) {
        // Something is left open: the page that lists it asks for the reason.
        window.location.assign(this.studio.page.complete);
        return;
      }
      this.#busy(false);
      this.#say(trouble(error, "Nothing was handed in; try again."), true);
      // The rule may stand otherwise than this page knew.
      this.#read();
    }
  }

  /** To the audit once every label is saved: what is labeled must not be drawn. */
  async #audit(event) {
    if (!this.studio.outbox.waiting) return;
    event.preventDefault();
    const { href } = event.currentTarget;
    this.attempt += 1;
    const { attempt } = this;
    this.#busy(true);
    this.doing = "Opening the audit …";
    this.#waiting();
    await this.studio.outbox.drained();
    if (attempt === this.attempt) window.location.assign(href);
  }

  /** Says how many labels are still to be saved. */
  #waiting() {
    if (!this.busy) return;
    const { waiting, problem } = this.studio.outbox;
    if (!waiting) {
      this.#say(this.doing);
      return;
    }
    const wait = `${counted(waiting, "label")} still to be saved`;
    this.#say(problem ? `${problem.message} ${wait}; this page keeps trying.` : `${wait} …`, Boolean(problem));
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
    const controls = "[data-stop-do]:not([data-stop-do=continue]), [data-stop-give-up-form] button";
    for (const button of this.dialog.querySelectorAll(controls)) button.disabled = on;
  }

  #say(text, problem = false) {
    showState(this.dialog.querySelector("[data-stop-state]"), text, problem);
  }
}

/** @param {Studio} studio */
export function mount(studio) {
  new StopPanel(studio).wire();
}

/** Whether one may stop, in a sentence. */
function verdict({ met, pause, reason, wanting }, { stop, streak, remaining }) {
  if (met && stop.exhausted) return "The list is exhausted: every image is labeled. Hand it in, or step back to check.";
  if (met) return `The stop rule is met: ${reason}. Hand in, or continue if you expect more relevant images.`;
  if (pause) {
    const row = `${number(streak)} candidates in a row are not relevant`;
    return `${row}: a place to pause, not a proof. The stop rule asks for ${wanting}: audit this query.`;
  }
  const end = remaining ? "" : " The end of the list is reached.";
  return `Not yet: ${wanting} needed.${end}`;
}

/**
 * The unlabeled candidates before the last one that was labeled in the list's order, and the first unsure one.
 * @param {CandidateStore} store
 * @returns {{skipped: number, firstSkipped: number, before: number, firstUnsure: number}} ranks, 0 for none
 */
function openEnds(store) {
  const open = { skipped: 0, firstSkipped: 0, before: 0, firstUnsure: 0 };
  let unlabeled = 0;
  let first = 0;
  for (let rank = 1; rank <= store.size; rank += 1) {
    const { relevance, source, withdrawn } = store.entry(rank);
    if (withdrawn) continue;
    if (relevance === "unsure" && !open.firstUnsure) open.firstUnsure = rank;
    if (relevance === null) {
      unlabeled += 1;
      first ||= rank;
    } else if (source === "list" || source === "import") {
      Object.assign(open, { skipped: unlabeled, firstSkipped: first, before: rank });
    }
  }
  return open.skipped ? open : { ...open, firstSkipped: 0 };
}

/** What to check before handing in: a sentence and the rank to go to (0: none). */
function todo({ skipped, firstSkipped, before, firstUnsure }, unsure, unsubmitted) {
  const rows = [];
  if (skipped) {
    const gap = `${counted(skipped, "skipped candidate")} before rank ${number(before)}`;
    rows.push({ text: `${gap}; the streak waits at rank ${number(firstSkipped)}.`, rank: firstSkipped });
  }
  if (unsure && firstUnsure) {
    const count = unsure === 1 ? "it counts" : "they count";
    rows.push({ text: `${number(unsure)} unsure; ${count} as not relevant.`, rank: firstUnsure });
  }
  if (unsubmitted) {
    const are = unsubmitted === 1 ? "is" : "are";
    rows.push({ text: `${counted(unsubmitted, "mark")} in the grid ${are} not submitted.`, rank: 0 });
  }
  return rows;
}

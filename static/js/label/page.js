/** The labelling page: one candidate at a time, one key a judgment. */
import { api, uuid } from "../api.js";
import { Candidates } from "./candidates.js";
import { ActiveClock } from "./clock.js";
import { Outbox } from "./outbox.js";
import { describe, View } from "./view.js";

const KEYS = {
  1: "relevant",
  r: "relevant",
  2: "not_relevant",
  n: "not_relevant",
  3: "unsure",
  u: "unsure",
};

class LabelPage {
  constructor(root) {
    this.base = root.dataset.api;
    this.view = new View(root);
    this.candidates = new Candidates(`${this.base}candidates/`);
    this.clock = new ActiveClock();
    this.rank = null;
    this.wentOn = false;
    this.outbox = new Outbox(`${this.base}judgments/`, {
      onAnswer: (answer) => !this.outbox.waiting && this.#progressed(answer.progress),
      onRefused: (judgment, reason) => this.#refused(judgment, reason),
      onState: (state) => this.view.saved(state),
    });
  }

  async start() {
    try {
      const list = await this.candidates.refresh();
      if (list.state === "building") {
        this.view.building(list);
        setTimeout(() => this.start(), 1000);
        return;
      }
      if (list.state !== "ready" || !this.candidates.size) {
        this.view.nothing(list);
        return;
      }
      this.#progressed(this.candidates.progress);
      await this.toNextUnlabelled(1);
    } catch (error) {
      this.view.failed(error, () => this.start());
    }
  }

  async toNextUnlabelled(from) {
    const rank = await this.candidates.nextUnlabelled(from);
    if (rank === null && from > 1) return this.toNextUnlabelled(1);
    return rank === null ? this.#end() : this.show(rank);
  }

  async show(rank) {
    const candidate = await this.candidates.at(rank);
    if (!candidate) return this.#end();
    this.rank = rank;
    const picture = this.candidates.picture(candidate);
    this.view.candidate(candidate, picture.element);
    picture.ready.catch(() => this.rank === rank && this.view.pictureFailed(candidate));
    this.candidates.prefetch(rank).catch(() => {});
    return undefined;
  }

  #end() {
    this.rank = this.candidates.size + 1;
    this.view.end(this.candidates.list, this.progress, () => this.extend());
  }

  async label(relevance) {
    if (this.view.blocked || this.rank === null || this.rank > this.candidates.size) return;
    const rank = this.rank;
    const candidate = await this.candidates.at(rank);
    if (this.rank !== rank) return;
    const changed = Boolean(candidate.relevance);
    this.outbox.add({
      image: candidate.image,
      relevance,
      client_id: uuid(),
      seconds: this.clock.take(),
      candidate,
      previous: candidate.relevance,
    });
    candidate.relevance = relevance;
    this.#anticipate(rank, relevance, changed);
    this.view.announce(`${describe(relevance)}, ${rank}`);
    await (changed ? this.show(rank + 1) : this.toNextUnlabelled(rank + 1)).catch((error) =>
      this.view.failed(error, () => this.toNextUnlabelled(rank + 1)),
    );
  }

  step(by) {
    if (this.view.blocked || this.rank === null) return;
    const rank = Math.max(1, this.rank + by);
    const known = rank <= this.candidates.size ? this.candidates.byRank.get(this.rank) : null;
    if (by > 0 && !known?.relevance) return;
    this.show(rank).catch((error) => this.view.failed(error, () => this.show(rank)));
  }

  async extend() {
    await api(`${this.base}extend/`, { method: "POST", body: {} });
    this.rank = null;
    await this.start();
  }

  async handIn() {
    this.view.handingIn();
    await this.outbox.drained();
    try {
      await api(this.base, { method: "PATCH", body: { state: "submitted" } });
      window.location.assign("/");
    } catch (error) {
      this.view.refusedHandIn(error);
    }
  }

  goOn() {
    this.wentOn = true;
    this.view.closeStop();
  }

  /**
   * Counts a judgment at the labelled prefix's end before the server has answered, so that the stop rule is met at
   * its number and not some fast keystrokes later. The server's own count replaces it when nothing waits.
   */
  #anticipate(rank, relevance, changed) {
    const known = this.progress;
    if (!known || changed || rank !== known.prefix + 1) return;
    const streak = relevance === "relevant" ? 0 : known.streak + 1;
    this.#progressed({
      ...known,
      prefix: rank,
      judged: known.judged + 1,
      remaining: known.remaining - 1,
      relevant: known.relevant + (relevance === "relevant" ? 1 : 0),
      streak,
      stop: { ...known.stop, met: streak >= known.stop.required },
    });
  }

  #progressed(progress) {
    if (!progress) return;
    this.progress = progress;
    this.view.progress(progress);
    if (progress.stop.met && !progress.stop.exhausted && !this.wentOn) this.view.stop(progress);
    if (!progress.stop.met) this.wentOn = false;
    if (this.rank > this.candidates.size) this.#end();
  }

  #refused(judgment, reason) {
    judgment.candidate.relevance = judgment.previous;
    this.view.refused(judgment.candidate, reason);
  }
}

function wire(page, root) {
  root.addEventListener("click", (event) => {
    const button = event.target.closest("[data-do]");
    if (!button) return;
    const [action, value] = button.dataset.do.split(":");
    if (action === "label") page.label(value);
    else if (action === "step") page.step(Number(value));
    else if (action === "next") page.toNextUnlabelled(1);
    else if (action === "hand-in") page.handIn();
    else if (action === "go-on") page.goOn();
    else if (action === "extend") page.extend().catch((error) => page.view.failed(error));
    else if (action === "retry") page.outbox.retryNow();
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (event.target.matches("input, textarea, select")) return;
    const key = event.key.toLowerCase();
    if (KEYS[key]) page.label(KEYS[key]);
    else if (key === "arrowleft" || key === "backspace") page.step(-1);
    else if (key === "arrowright") page.step(1);
    else if (key === "end") page.toNextUnlabelled(1);
    else return;
    event.preventDefault();
  });
  window.addEventListener("beforeunload", (event) => {
    if (page.outbox.waiting) event.preventDefault();
  });
}

const root = document.getElementById("label-app");
const page = new LabelPage(root);
wire(page, root);
page.start();

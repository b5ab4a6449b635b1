/** One query's judgments on their way to the server, as its page knows them. */
import { uuid } from "../api.js";
import { senderFor, TAB } from "./sender.js";

const secondsOf = (records) => records.reduce((sum, { seconds }) => sum + (seconds ?? 0), 0);

/**
 * Events:
 * - "state": `waiting`, `saved`, `problem`, `durable` or `elsewhere` changed;
 * - "answer" (detail `{results, progress, cursor}`; progress and cursor may be null): some judgments of this query
 *   were answered, also when another tab sent them;
 * - "refused" (detail `{record, result, stands}`): the server refused a judgment. `stands` is the relevance that
 *   the page should now show for the image (null for none), or undefined where a later judgment of it still waits.
 *   Fired again after a reload, until it is dismissed;
 * - "dismissed" (detail `{client_ids}`): in this tab or another;
 * - "remote" (detail `{marks: [{image, relevance, source}]}`): judged in another tab of this browser.
 */
export class Outbox extends EventTarget {
  /** @param {{user: number, query: number, url: string}} place `url` is the query's judgments address */
  constructor({ user, query, url }) {
    super();
    this.user = Number(user);
    this.query = Number(query);
    this.url = url;
    this.saved = 0;
    /** Judgments of the same person's other queries that wait in this browser. */
    this.elsewhere = 0;
    this.counted = 0;
    this.counts = 0;
    this.counting = null;
    this.adding = 0;
    /** Active seconds of what was judged on this page and has no answer yet. */
    this.unsavedSeconds = 0;
    this.sender = senderFor(this.user);
    this.#listen();
    this.#count();
    this.#fireRefused().catch(() => {});
  }

  /** Judgments of this query that the server has not answered for. */
  get waiting() {
    return this.counted + this.adding;
  }

  /** Why waiting judgments can't be sent now; null where they can. */
  get problem() {
    return this.sender.problem;
  }

  /** False where the browser keeps nothing, so that waiting judgments would be lost with the page. */
  get durable() {
    return this.sender.queue.durable;
  }

  /**
   * Stores judgments in the browser and sends them; resolves when they are stored. Never rejects.
   *
   * @param {Judgment[]} judgments in the order made; `client_id` may be missing
   */
  async add(judgments) {
    const at = Date.now();
    const full = judgments.map((judgment) => ({
      client_id: uuid(),
      ...judgment,
      user: this.user,
      query: this.query,
      url: this.url,
      at,
      tab: TAB,
    }));
    if (!full.length) return;
    this.adding += full.length;
    this.unsavedSeconds += secondsOf(full);
    this.counts += 1;
    this.#fireState();
    await this.sender.add(full);
    this.adding -= full.length;
    this.counted += full.length;
    await this.#count();
  }

  /** Sends what waits now; resolves when nothing of this query waits any more. */
  async drained() {
    await this.#count();
    if (this.waiting) this.retryNow();
    while (this.waiting) {
      await new Promise((resolve) => this.addEventListener("state", resolve, { once: true }));
    }
  }

  /** Sends what waits now, without waiting for the end of a pause. */
  retryNow() {
    this.sender.retry();
  }

  /** The judgments of this query that wait, oldest first. */
  pending() {
    return this.sender.queue.waitingFor(this.user, this.query);
  }

  /** The refused judgments of this query that nobody has dismissed: `[{client_id, record, result}]`. */
  refused() {
    return this.sender.queue.refused(this.user, this.query);
  }

  /** Forgets refused judgments that the person has seen. */
  dismiss(clientIds) {
    return this.sender.dismiss(clientIds);
  }

  #listen() {
    const here = (kind, run) =>
      this.sender.addEventListener(kind, ({ detail }) => {
        if (detail.query === this.query) run(detail);
        this.#count();
      });
    here("added", ({ marks }) => this.#fire("remote", { marks }));
    here("answer", (message) => this.#answered(message));
    this.sender.addEventListener("stored", () => this.#count());
    this.sender.addEventListener("problem", () => this.#fireState());
    this.sender.addEventListener("dismissed", ({ detail }) => this.#fire("dismissed", detail));
  }

  async #answered({ settled, progress, cursor }) {
    const results = settled.map(({ result }) => result);
    this.unsavedSeconds -= secondsOf(settled.map(({ record }) => record).filter(({ tab }) => tab === TAB));
    this.saved += results.filter(({ status }) => status !== "refused").length;
    this.#fire("answer", { results, progress, cursor });
    const refused = settled.filter(({ result }) => result.status === "refused");
    if (!refused.length) return;
    const later = await this.pending().catch(() => []);
    const waiting = new Set(later.map(({ image }) => image));
    for (const { record, result } of refused) {
      const stands = waiting.has(record.image) ? undefined : (result.current ?? null);
      this.#fire("refused", { record, result, stands });
    }
  }

  async #fireRefused() {
    for (const { record, result } of await this.refused()) {
      this.#fire("refused", { record, result, stands: undefined });
    }
  }

  /**
   * Counts what waits, and again if something changed meanwhile. While judgments are being added it is not known
   * whether they are counted already; whoever adds them counts afterwards.
   */
  async #count() {
    this.counts += 1;
    this.counting ??= this.#counted();
    await this.counting;
  }

  async #counted() {
    let seen = await null;
    while (seen !== this.counts && !this.adding) {
      seen = this.counts;
      const counts = await this.sender.counts(this.query).catch(() => null);
      if (!counts || seen !== this.counts) continue;
      this.counted = counts.here;
      this.elsewhere = counts.all - counts.here;
    }
    this.counting = null;
    this.#fireState();
  }

  #fireState() {
    const { waiting, saved, problem, durable, elsewhere } = this;
    this.#fire("state", { waiting, saved, problem, durable, elsewhere });
  }

  #fire(kind, detail) {
    this.dispatchEvent(new CustomEvent(kind, { detail }));
  }
}

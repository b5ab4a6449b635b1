/**
 * Sends the waiting judgments of one person, in the order in which they were made, whatever query they are of.
 *
 * One tab of the browser sends at a time (a Web Lock), but nothing depends on that: every sender begins with the
 * oldest judgment that has no answer, and the server counts a judgment that comes twice once. A judgment leaves the
 * queue only when the server has answered for it.
 */
import { api, uuid } from "../api.js";
import { database } from "./database.js";
import { JudgmentQueue } from "./queue.js";

const LARGEST_BATCH = 100;
const TIMEOUT = 20_000;
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 10_000;
const LOGIN_PAUSE = 5000;
/** After an answer the next judgments are gathered for so many times as long as the answer took: a server that many
 * people keep busy gets fewer requests with more in each. */
const MIN_PAUSE_RATIO = 50;
/** Browsers take up to 64 KiB from a page that is being closed. */
const LARGEST_LAST_REQUEST = 60_000;
/** Statuses that may change on a retry; other refusals of a whole request are final. */
const TRANSIENT = new Set([408, 425, 429]);

/** This page among all tabs; a reload is another one. */
export const TAB = uuid();

/** Messages between the tabs of one browser: `{kind, user, ...}`. */
const channel = new BroadcastChannel("inquire-annotator");

/**
 * Runs `work` while no other tab runs it. Over plain HTTP from another host browsers have no locks; then two tabs may
 * send the same judgments, which the server counts once by their client ids.
 */
function alone(name, work) {
  return navigator.locks ? navigator.locks.request(name, work) : work();
}

/** @typedef {{kind: "offline"|"logged_out"|"other_user"|"full"|"server", message: string}} Problem */

/** The judgments as the API takes them: the records without what only this browser needs. */
function bodyOf(records) {
  return records.map(({ seq, user, query, url, tab, spilled, at, ...judgment }) => ({
    ...judgment,
    age: Math.max(0, Date.now() - at) / 1000,
  }));
}

/** What keeps a request from being answered, or null where the server refuses it for good. */
function problemOf(error) {
  if (error.status === undefined) return { kind: "server", message: "The server takes too long to answer." };
  const { status, message } = error;
  if (status === 0) return { kind: "offline", message };
  if (status === 401 || status === 403) return { kind: "logged_out", message: "You are logged out." };
  if (status === 409) return { kind: "other_user", message: "Somebody else is logged in in this browser." };
  if (status === 507) return { kind: "full", message };
  return status >= 500 || TRANSIENT.has(status) ? { kind: "server", message } : null;
}

class Sender extends EventTarget {
  /** @param {number} user primary key of the person whose judgments are sent */
  constructor(user) {
    super();
    this.user = user;
    this.queue = new JudgmentQueue(database);
    /** @type {Problem|null} */
    this.problem = null;
    this.failures = 0;
    this.working = false;
    /** What was requested while it was working: "wake", which a pause also settles, or "retry". */
    this.again = null;
    /** Of a pause after a failure, or of a rest after an answer. */
    this.timer = null;
    /** Judgments made on this page without an answer yet, in order. */
    this.own = new Map();
    /** How many wait that other pages made. */
    this.foreign = 0;
    this.#listen();
    this.wake();
  }

  /**
   * Stores judgments for sending. Never rejects: where the disk fails they stay in memory.
   *
   * @param {QueuedJudgment[]} records
   */
  async add(records) {
    for (const record of records) this.own.set(record.client_id, record);
    await this.queue.add(records);
    const [{ query }] = records;
    const marks = records.map(({ image, relevance, source, grade }) => ({ image, relevance, source, grade }));
    this.#post("added", { query, marks });
    this.#fire("stored");
    this.wake();
  }

  /** Forgets refused judgments that the person has seen, in all tabs. */
  async dismiss(clientIds) {
    await this.queue.dismiss(clientIds);
    this.#post("dismissed", { client_ids: clientIds });
    this.#fire("dismissed", { client_ids: clientIds });
  }

  /** How many judgments wait: `here` for `query`, `all` for all of this person's queries. */
  async counts(query) {
    const counts = await this.queue.counts(this.user, query);
    this.foreign = Math.max(0, counts.all - this.own.size);
    return counts;
  }

  /** Sends what waits, or has it wait for the end of the pause that is on. */
  wake() {
    if (this.timer !== null) return;
    this.again ??= "wake";
    if (!this.working) this.#work();
  }

  /** Sends what waits, now. */
  retry() {
    this.again = "retry";
    if (!this.working) this.#work();
  }

  #listen() {
    for (const kind of ["online", "focus", "pageshow"]) window.addEventListener(kind, () => this.retry());
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.retry());
    window.addEventListener("pagehide", () => this.#sendBeforeLeaving());
    document.addEventListener("freeze", () => this.#sendBeforeLeaving());
    channel.addEventListener("message", ({ data: { kind, user, ...detail } }) => {
      if (user !== this.user) return;
      if (kind === "problem") {
        // What this page alone holds is not in the queue that the other tab speaks of.
        if (this.queue.durable) this.#setProblem(detail.problem);
      } else if (kind === "answer") this.#answered(detail);
      else this.#fire(kind, detail);
      this.wake();
    });
  }

  async #work() {
    this.working = true;
    while (this.again) {
      this.again = null;
      clearTimeout(this.timer);
      this.timer = null;
      try {
        if ((await this.#next()).length) await alone(`sender of ${this.user}`, () => this.#drain());
        else this.#solved();
      } catch {
        this.#failed({ kind: "server", message: "This browser's storage can't be used now." });
      }
    }
    this.working = false;
  }

  #next() {
    return this.queue.head(this.user, LARGEST_BATCH);
  }

  async #drain() {
    for (let batch = await this.#next(); batch.length; batch = await this.#next()) {
      const began = performance.now();
      if (!(await this.#send(batch))) return;
      if (batch.length < LARGEST_BATCH) {
        this.#pause(Math.min(LONGEST_PAUSE, MIN_PAUSE_RATIO * (performance.now() - began)));
        return;
      }
    }
    this.#solved();
  }

  /** Sends one batch; resolves to whether the next one may follow. */
  async #send(batch) {
    let answer;
    try {
      answer = await this.#request(batch[0].url, bodyOf(batch), { signal: AbortSignal.timeout(TIMEOUT) });
    } catch (error) {
      const problem = problemOf(error);
      if (problem) {
        this.#failed(problem);
        return false;
      }
      answer = { results: batch.map((record) => refusal(record, error)) };
    }
    const results = new Map((answer.results ?? []).map((result) => [result.client_id, result]));
    const answered = batch
      .filter((record) => results.has(record.client_id))
      .map((record) => ({ record, result: results.get(record.client_id) }));
    if (!answered.length) {
      this.#failed({ kind: "server", message: "The server's answer could not be understood." });
      return false;
    }
    const settled = await this.queue.settle(answered);
    const { progress = null, cursor = null } = answer;
    const detail = { query: batch[0].query, settled, progress, cursor };
    this.#post("answer", detail);
    this.#answered(detail);
    this.#solved();
    return true;
  }

  #request(url, body, options) {
    return api(url, { method: "POST", headers: { "X-Annotator": String(this.user) }, body, ...options });
  }

  #answered(detail) {
    for (const { record } of detail.settled) this.own.delete(record.client_id);
    this.#fire("answer", detail);
  }

  #solved() {
    this.failures = 0;
    if (!this.problem) return;
    this.#setProblem(null);
    this.#post("problem", { problem: null });
  }

  #failed(problem) {
    this.failures += 1;
    this.#setProblem(problem);
    this.#post("problem", { problem });
    const login = problem.kind === "logged_out" || problem.kind === "other_user";
    this.#pause(login ? LOGIN_PAUSE : Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (this.failures - 1)));
  }

  /** What is waiting now, or comes until then, is sent after about so many milliseconds: pages that a slow moment of
   * the server has stopped together don't come back together. */
  #pause(milliseconds) {
    if (this.again === "wake") this.again = null;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.retry(), milliseconds * (0.5 + Math.random() / 2));
  }

  #setProblem(problem) {
    this.problem = problem;
    this.#fire("problem");
  }

  #post(kind, detail) {
    channel.postMessage({ kind, user: this.user, ...detail });
  }

  #fire(kind, detail) {
    this.dispatchEvent(new CustomEvent(kind, { detail }));
  }

  /**
   * The page may be gone after this: sends what was made on it once more, without waiting for an answer. The records
   * stay in the queue, and the next page asks for their answers.
   */
  #sendBeforeLeaving() {
    // Earlier judgments from other tabs would be overtaken.
    if (!this.own.size || this.foreign) return;
    const [{ url }] = this.own.values();
    const sent = [];
    let size = 0;
    for (const item of bodyOf([...this.own.values()].filter((record) => record.url === url))) {
      size += JSON.stringify(item).length + 1;
      if (size > LARGEST_LAST_REQUEST || sent.length === LARGEST_BATCH) break;
      sent.push(item);
    }
    this.#request(url, sent, { keepalive: true }).catch(() => {});
  }
}

function refusal(record, error) {
  const gone = error.status === 404;
  return {
    client_id: record.client_id,
    image: record.image,
    status: "refused",
    code: gone ? "closed" : "invalid",
    detail: gone ? "The query is gone, or no longer open to you." : error.message,
    relevance: null,
    current: record.expected ?? null,
    rank: null,
  };
}

const senders = new Map();

/**
 * The page's one sender for a person; it begins at once with what waits from earlier pages.
 *
 * Events: "stored" (by this page), "added" (by another tab: {query, marks}), "answer" ({query, settled: [{record,
 * result}], progress, cursor}, whichever tab sent it), "problem", "dismissed" ({client_ids}).
 *
 * @param {number} user
 */
export function senderFor(user) {
  if (!senders.has(user)) senders.set(user, new Sender(user));
  return senders.get(user);
}

/**
 * Sends the waiting judgments of one person, in the order in which they were made, whatever query they are of.
 *
 * One tab of the browser sends at a time (lease.js), but nothing depends on that: every sender begins with the oldest
 * judgment that has no answer, and the server counts a judgment that comes twice once. A judgment leaves the queue
 * only when the server has answered for it.
 */
import { api } from "../api.js";
import { bus, TAB } from "./bus.js";
import { database } from "./idb.js";
import { Lease } from "./lease.js";
import { JudgmentQueue } from "./queue.js";

const LARGEST_BATCH = 100;
const TIMEOUT = 20_000;
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 10_000;
const LOGIN_PAUSE = 5000;
const LEASE_RENEWAL = 3000;
const LOOKED_EVERY = 2000;
const LARGEST_FAREWELL = 60_000;
/** What the server may answer differently a moment later; other refusals of a whole request are final. */
const PASSING = new Set([408, 425, 429]);

/** @typedef {{kind: "offline"|"logged_out"|"other_user"|"full"|"server", message: string}} Problem */

function body(records) {
  return records.map(({ image, relevance, client_id: clientId, seconds, source, expected, at }) => ({
    image,
    relevance,
    client_id: clientId,
    seconds,
    source,
    ...(expected === undefined ? {} : { expected }),
    age: Math.max(0, Date.now() - at) / 1000,
  }));
}

/** What keeps a request from being answered, or null where the server refuses it for good. */
function problemOf(error) {
  if (error.name === "AbortError") return { kind: "server", message: "The server takes too long to answer." };
  const { status, message } = error;
  if (status === 0) return { kind: "offline", message };
  if (status === 401 || status === 403) return { kind: "logged_out", message: "You are logged out." };
  if (status === 409) return { kind: "other_user", message: "Somebody else is logged in in this browser." };
  if (status === 507) return { kind: "full", message };
  return status >= 500 || PASSING.has(status) ? { kind: "server", message } : null;
}

class Sender extends EventTarget {
  /** @param {number} user primary key of the person whose judgments are sent */
  constructor(user) {
    super();
    this.user = user;
    this.queue = new JudgmentQueue(database);
    this.lease = new Lease(database, `sender of ${user}`, TAB);
    /** @type {Problem|null} */
    this.problem = null;
    this.failures = 0;
    this.waitsForLease = false;
    this.working = false;
    /** What came while it was working: "wake", which a failure settles too, or "retry". */
    this.again = null;
    this.timer = null;
    /** Judgments made on this page without an answer yet, in order. */
    this.own = new Map();
    /** How many wait that other pages made. */
    this.foreign = 0;
    this.#listen();
    this.wake();
  }

  /**
   * Keeps judgments for sending. Never rejects: where the disk fails they are held in memory.
   *
   * @param {import("./queue.js").QueuedJudgment[]} records
   */
  async add(records) {
    for (const record of records) this.own.set(record.client_id, record);
    await this.queue.add(records);
    const [{ user, query }] = records;
    const marks = records.map(({ image, relevance, source }) => ({ image, relevance, source }));
    bus.post({ kind: "added", user, query, marks });
    this.dispatchEvent(new CustomEvent("kept"));
    this.wake();
  }

  /** Forgets refused judgments that the person has seen, in all tabs. */
  async dismiss(clientIds) {
    await this.queue.dismiss(clientIds);
    const message = { kind: "dismissed", user: this.user, client_ids: clientIds };
    bus.post(message);
    this.dispatchEvent(new CustomEvent("dismissed", { detail: message }));
  }

  /** How many judgments wait: `here` for `query`, `all` for all of this person's queries. */
  async counts(query) {
    const counts = await this.queue.counts(this.user, query);
    this.foreign = Math.max(0, counts.all - this.own.size);
    return counts;
  }

  /** Sends what waits, unless a pause after a failure is on. */
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
    const retry = () => document.visibilityState === "visible" && this.retry();
    for (const kind of ["online", "focus", "pageshow"]) window.addEventListener(kind, () => this.retry());
    document.addEventListener("visibilitychange", retry);
    window.addEventListener("pagehide", () => this.#farewell());
    document.addEventListener("freeze", () => this.#farewell());
    const ours = (kind, run) =>
      bus.addEventListener(kind, ({ detail }) => detail.user === this.user && run(detail));
    ours("added", (message) => {
      this.dispatchEvent(new CustomEvent("added", { detail: message }));
      this.wake();
    });
    ours("answer", (message) => {
      this.#answered(message);
      this.wake();
    });
    ours("problem", ({ problem }) => {
      this.#setProblem(problem);
      this.wake();
    });
    ours("dismissed", (message) => this.dispatchEvent(new CustomEvent("dismissed", { detail: message })));
    ours("free", () => this.waitsForLease && this.retry());
    if (!bus.works) setInterval(() => this.wake(), LOOKED_EVERY);
  }

  async #work() {
    this.working = true;
    while (this.again) {
      this.again = null;
      clearTimeout(this.timer);
      this.timer = null;
      try {
        await this.#drain();
      } catch {
        this.#failed({ kind: "server", message: "This browser's storage can't be used now." });
      }
    }
    this.working = false;
  }

  async #drain() {
    let batch = await this.#next();
    if (!batch.length) {
      this.#solved();
      return;
    }
    const others = await this.lease.take();
    this.waitsForLease = others > 0;
    if (others) {
      this.#pause(others + 50);
      return;
    }
    const renewal = setInterval(() => this.lease.take().catch(() => {}), LEASE_RENEWAL);
    try {
      // Read again: the tab that had the lease may have sent it meanwhile.
      for (batch = await this.#next(); batch.length; batch = await this.#next()) {
        if (!(await this.#send(batch))) return;
      }
      this.#solved();
    } finally {
      clearInterval(renewal);
      await this.#release();
    }
  }

  #next() {
    return this.queue.head(this.user, LARGEST_BATCH);
  }

  async #release() {
    await this.lease.release();
    bus.post({ kind: "free", user: this.user });
  }

  /** Sends one batch; resolves to whether the next one may follow. */
  async #send(batch) {
    const abort = new AbortController();
    const late = setTimeout(() => abort.abort(), TIMEOUT);
    let answer;
    try {
      answer = await api(batch[0].url, {
        method: "POST",
        headers: { "X-Annotator": String(this.user) },
        body: body(batch),
        signal: abort.signal,
      });
    } catch (error) {
      const problem = problemOf(error);
      if (problem) {
        this.#failed(problem);
        return false;
      }
      answer = { results: batch.map((record) => refusal(record, error)) };
    } finally {
      clearTimeout(late);
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
    const message = { kind: "answer", user: this.user, query: batch[0].query, settled, progress, cursor };
    bus.post(message);
    this.#answered(message);
    this.#solved();
    return true;
  }

  #answered(message) {
    for (const { record } of message.settled) this.own.delete(record.client_id);
    this.dispatchEvent(new CustomEvent("answer", { detail: message }));
  }

  #solved() {
    this.failures = 0;
    if (!this.problem) return;
    this.#setProblem(null);
    bus.post({ kind: "problem", user: this.user, problem: null });
  }

  #failed(problem) {
    this.failures += 1;
    if (this.again === "wake") this.again = null;
    this.#setProblem(problem);
    bus.post({ kind: "problem", user: this.user, problem });
    const login = problem.kind === "logged_out" || problem.kind === "other_user";
    this.#pause(login ? LOGIN_PAUSE : Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (this.failures - 1)));
  }

  #setProblem(problem) {
    this.problem = problem;
    this.dispatchEvent(new CustomEvent("problem"));
  }

  #pause(milliseconds) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.retry(), milliseconds);
  }

  /**
   * The page may be gone after this: sends what was made on it once more, without waiting for an answer. The records
   * stay in the queue, and the next page asks for their answers.
   */
  #farewell() {
    if (this.working) this.#release().catch(() => {});
    // What other tabs made before would be overtaken.
    if (!this.own.size || this.foreign) return;
    const [{ url }] = this.own.values();
    const sent = [];
    let size = 0;
    for (const item of body([...this.own.values()].filter((record) => record.url === url))) {
      size += JSON.stringify(item).length + 1;
      if (size > LARGEST_FAREWELL || sent.length === LARGEST_BATCH) break;
      sent.push(item);
    }
    const headers = { "X-Annotator": String(this.user) };
    api(url, { method: "POST", headers, body: sent, keepalive: true }).catch(() => {});
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
    standing: record.expected ?? null,
    rank: null,
  };
}

const senders = new Map();

/**
 * The page's one sender for a person; it begins at once with what waits from earlier pages.
 *
 * Events: "kept" (by this page), "added" (by another tab: {query, marks}), "answer" ({query, settled: [{record, result}], progress, cursor},
 * whichever tab sent it), "problem", "dismissed" ({client_ids}).
 *
 * @param {number} user
 */
export function senderFor(user) {
  if (!senders.has(user)) senders.set(user, new Sender(user));
  return senders.get(user);
}

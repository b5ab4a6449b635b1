/**
 * Judgments on their way to the server, in the order in which they were made.
 *
 * A judgment leaves the queue only when the server has answered for it. Each carries an id made here, so that a
 * batch sent again after a lost answer counts once.
 */
import { api } from "../api.js";

const LARGEST_BATCH = 50;
const LONGEST_WAIT = 10_000;

export class Outbox {
  /**
   * @param {string} url the query's judgments address
   * @param {{onAnswer: Function, onRefused: Function, onState: Function}} listeners
   *   onAnswer(answer) after a batch was stored; onRefused(judgment, reason); onState({waiting, error}).
   */
  constructor(url, listeners) {
    this.url = url;
    this.listeners = listeners;
    this.queue = [];
    this.sending = false;
    this.failures = 0;
    this.error = null;
  }

  get waiting() {
    return this.queue.length;
  }

  add(judgment) {
    this.queue.push(judgment);
    this.announce();
    this.send();
  }

  /** Resolves when nothing waits any more. */
  async drained() {
    while (this.waiting) await new Promise((resolve) => setTimeout(resolve, 50));
  }

  retryNow() {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.send();
  }

  announce() {
    this.listeners.onState({ waiting: this.waiting, error: this.error });
  }

  async send() {
    if (this.sending || this.timer || !this.queue.length) return;
    this.sending = true;
    const batch = this.queue.slice(0, LARGEST_BATCH);
    try {
      const answer = await api(this.url, {
        method: "POST",
        body: batch.map(({ image, relevance, client_id, seconds }) => ({
          image,
          relevance,
          client_id,
          seconds,
        })),
      });
      this.queue.splice(0, batch.length);
      this.failures = 0;
      this.error = null;
      answer.results.forEach((result, index) => {
        if (result.status === "refused") this.listeners.onRefused(batch[index], result.detail);
      });
      this.listeners.onAnswer(answer);
    } catch (error) {
      if (error.status === 400 || error.status === 404 || error.status === 413) {
        this.queue.splice(0, batch.length);
        batch.forEach((judgment) => this.listeners.onRefused(judgment, error.message));
      } else {
        this.error = error;
        this.failures += 1;
        const wait = Math.min(LONGEST_WAIT, 500 * 2 ** (this.failures - 1));
        this.timer = setTimeout(() => {
          this.timer = undefined;
          this.send();
        }, wait);
      }
    }
    this.sending = false;
    this.announce();
    this.send();
  }
}

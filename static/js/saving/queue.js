/** The judgments that wait for the server and those that it refused, as the browser keeps them. */
import { MemoryDatabase } from "./database.js";

/**
 * A judgment as the API takes it.
 *
 * @typedef {object} Judgment
 * @property {number} image
 * @property {"relevant"|"not_relevant"|"unsure"|null} relevance null takes a judgment back
 * @property {number} [grade] from 0 to 3, where one was given
 * @property {string} [reason] why it has this grade
 * @property {string} client_id
 * @property {number} seconds active time
 * @property {string} source
 * @property {number} [revision] the revision of the order that learns in whose queue the image was met
 * @property {number} [place] where in this queue
 * @property {string|null} [expected] what the person saw as standing before
 */

/**
 * What this browser keeps beside a judgment: `seq` is its place in the order of all judgments of the browser, `user`
 * the primary key of the person who judged, `url` where it is sent, `at` when it was made, in milliseconds since 1970,
 * `tab` the page that it was made on, `spilled` whether the disk has no room for it.
 *
 * @typedef {Judgment & {seq: number, user: number, query: number, url: string, at: number, tab: string,
 *   spilled?: boolean}} QueuedJudgment
 */

export class JudgmentQueue {
  /** @param {MemoryDatabase} database or the browser's */
  constructor(database) {
    this.database = database;
    this.spill = null;
  }

  /** False once judgments are held by this page alone and would end with it. */
  get durable() {
    return this.database.durable && !this.spill;
  }

  /**
   * Keeps records in the order given; resolves when they are on the disk.
   *
   * Where the disk takes no more, they and all later ones are held in memory, behind those on the disk.
   */
  async add(records) {
    if (!this.spill) {
      try {
        await this.database.run(
          ["queue"],
          "readwrite",
          ({ queue }) => Promise.all(records.map((record) => queue.put(record))),
          { durability: "strict" },
        );
        return;
      } catch {
        this.spill ??= new MemoryDatabase();
      }
    }
    await this.spill.run(["queue"], "readwrite", ({ queue }) =>
      Promise.all(records.map((record) => queue.put({ ...record, spilled: true }))),
    );
  }

  /** The oldest judgments of `user`: as many, up to `most`, as are of one query without another between. */
  async head(user, most) {
    const oldest = await this.#all("user", user, most);
    const end = oldest.findIndex((record) => record.query !== oldest[0].query);
    return end < 0 ? oldest : oldest.slice(0, end);
  }

  /** What waits for one query, oldest first. */
  waitingFor(user, query) {
    return this.#all("place", [user, query]);
  }

  /** How many wait for one query, and how many of the same person for all. */
  async counts(user, query) {
    const count = async (database) =>
      database.run(["queue"], "readonly", async ({ queue }) => {
        const [here, all] = await Promise.all([queue.count("place", [user, query]), queue.count("user", user)]);
        return { here, all };
      });
    const stored = await this.#read(count, { here: 0, all: 0 });
    const held = this.spill ? await count(this.spill) : { here: 0, all: 0 };
    return { here: stored.here + held.here, all: stored.all + held.all };
  }

  /**
   * Takes answered judgments out, and keeps the refused ones for the person to see, in one step.
   *
   * @param {{record: QueuedJudgment, result: object}[]} answered
   * @returns {Promise<{record: QueuedJudgment, result: object}[]>} those that were still there: another tab may have
   *   had the same answers
   */
  async settle(answered) {
    const settled = [];
    for (const database of [this.database, this.spill]) {
      const here = answered.filter(({ record }) => Boolean(record.spilled) === (database === this.spill));
      if (!database || !here.length) continue;
      settled.push(
        ...(await database.run(["queue", "refused"], "readwrite", async ({ queue, refused }) => {
          const present = await Promise.all(here.map(({ record }) => queue.get(record.seq)));
          const still = here.filter((_, place) => present[place]);
          await Promise.all(
            still.flatMap(({ record, result }) => {
              const steps = [queue.delete(record.seq)];
              if (result.status === "refused") {
                const { client_id: clientId, user, query } = record;
                steps.push(refused.put({ client_id: clientId, user, query, record, result }));
              }
              return steps;
            }),
          );
          return still;
        })),
      );
    }
    return settled;
  }

  /** The refused judgments of one query, or of all, that the person has not dismissed; oldest first. */
  async refused(user, query = null) {
    const read = async (database) => {
      const refusals = await database.run(["refused"], "readonly", ({ refused }) =>
        query === null ? refused.all("user", user) : refused.all("place", [user, query]),
      );
      return refusals.sort((refusal, other) => refusal.record.seq - other.record.seq);
    };
    return [...(await this.#read(read, [])), ...(this.spill ? await read(this.spill) : [])];
  }

  /** Forgets refused judgments that the person has seen. */
  async dismiss(clientIds) {
    for (const database of [this.database, this.spill].filter(Boolean)) {
      await database.run(["refused"], "readwrite", ({ refused }) =>
        Promise.all(clientIds.map((clientId) => refused.delete(clientId))),
      );
    }
  }

  async #all(index, value, limit) {
    const read = (database) => database.run(["queue"], "readonly", ({ queue }) => queue.all(index, value, limit));
    const stored = await this.#read(read, []);
    if (!this.spill || stored.length === limit) return stored;
    return [...stored, ...(await read(this.spill))].slice(0, limit);
  }

  /** A database that can't be read any more must not hold up what is in memory. */
  async #read(read, nothing) {
    try {
      return await read(this.database);
    } catch (error) {
      if (!this.spill) throw error;
      return nothing;
    }
  }
}

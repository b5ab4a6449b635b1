/**
 * The steps done and undone on a query, stored in the browser.
 *
 * Each tab has a stack of its own, so that two tabs don't undo each other's steps. A tab that is reloaded, or opened
 * after another was closed or has crashed, continues with the stack that was left.
 */
import { uuid } from "../api.js";
import { database } from "./database.js";

const MOST_STEPS = 2000;
const RELOAD_PATIENCE = 1000;
const KEPT_FOR = 30 * 24 * 3600 * 1000;

/**
 * @typedef {object} Step
 * @property {{image: number, from: string|null, to: string|null, source: string}[]} marks where the label has been
 *   changed by somebody since, the label is neither `from` nor `to`: such a mark must not be undone or redone
 */

/** Events: "change" when `canUndo` or `canRedo` may have changed. */
export class UndoStack extends EventTarget {
  /** @param {{user: number, query: number}} place */
  constructor({ user, query }) {
    super();
    this.user = Number(user);
    this.query = Number(query);
    this.done = [];
    this.undone = [];
    this.stack = null;
    /** Resolves when the steps of earlier pages are there, below all that come. */
    this.ready = this.#open().catch(() => {});
    this.writing = this.ready;
  }

  get canUndo() {
    return this.done.length > 0;
  }

  get canRedo() {
    return this.undone.length > 0;
  }

  /** Adds a step; what was undone can't be redone after it. Resolves when it is stored. */
  async push(step) {
    const record = { ...step, user: this.user, query: this.query, undone: false, at: Date.now() };
    await this.ready;
    const gone = this.undone.splice(0);
    this.done.push(record);
    if (this.done.length > MOST_STEPS) gone.push(...this.done.splice(0, this.done.length - MOST_STEPS));
    this.#changed();
    await this.#write(async (undo) => {
      record.stack = this.stack;
      record.id = await undo.put(record);
      await Promise.all(gone.map(({ id }) => undo.delete(id)));
    });
  }

  /** Moves the last done step to the undone ones; resolves to it, or to null where there is none. */
  undo() {
    return this.#move(this.done, this.undone, true);
  }

  /** Moves the last undone step back; resolves to it, or to null. */
  redo() {
    return this.#move(this.undone, this.done, false);
  }

  async #move(from, to, undone) {
    await this.ready;
    const record = from.pop();
    if (!record) return null;
    record.undone = undone;
    to.push(record);
    this.#changed();
    // Only `push` numbers a step, so the numbers follow the order of the steps.
    this.#write((undo) => undo.put(record));
    return { marks: record.marks };
  }

  /** Writes in order; where the disk fails, the steps are lost with the page. */
  #write(work) {
    const write = () => database.run(["undo"], "readwrite", ({ undo }) => work(undo));
    this.writing = this.writing.then(write).catch(() => {});
    return this.writing;
  }

  async #open() {
    const stored = await database.run(["undo"], "readonly", ({ undo }) => undo.all("place", [this.user, this.query]));
    this.stack = await this.#claim(stored.at(-1)?.stack);
    const own = stored.filter(({ stack }) => stack === this.stack);
    this.done.push(...own.filter(({ undone }) => !undone));
    this.undone.push(...own.filter(({ undone }) => undone).reverse());
    this.#changed();
    const old = stored.filter(({ stack, at }) => stack !== this.stack && at < Date.now() - KEPT_FOR);
    if (old.length) this.#write((undo) => Promise.all(old.map(({ id }) => undo.delete(id))));
  }

  /**
   * The stack that this page continues: its own from before a reload, else the newest one if no open page has it,
   * else a new one. The browser releases a lock when its page ends, however it ends.
   */
  async #claim(newest) {
    const name = `undo of ${this.user} on ${this.query}`;
    const before = this.#remembered(name);
    const has = async (stack, patience) => !navigator.locks || lock(`${name}: ${stack}`, patience);
    let claimed = uuid();
    // The page before the reload may take a moment to end; in a duplicated tab it never does.
    if (before && (await has(before, RELOAD_PATIENCE))) claimed = before;
    else if (newest && navigator.locks && (await has(newest, 0))) claimed = newest;
    else await has(claimed, 0);
    this.#remember(name, claimed);
    return claimed;
  }

  #remembered(name) {
    try {
      return sessionStorage.getItem(name);
    } catch {
      return null;
    }
  }

  #remember(name, stack) {
    try {
      sessionStorage.setItem(name, stack);
    } catch {
      // Without it a reload continues the newest free stack, which is the same one.
    }
  }

  #changed() {
    this.dispatchEvent(new CustomEvent("change"));
  }
}

/** Takes a lock for as long as the page lives; resolves to whether it was granted within `patience` ms. */
function lock(name, patience) {
  return new Promise((resolve) => {
    const options = patience ? { signal: AbortSignal.timeout(patience) } : { ifAvailable: true };
    navigator.locks
      .request(name, options, (held) => {
        resolve(held !== null);
        return held ? new Promise(() => {}) : undefined;
      })
      .catch(() => resolve(false));
  });
}

/**
 * The browser's database behind promises, and the same in memory where there is none.
 *
 * One database, "inquire-annotator", with the object stores of SCHEMA. An index is asked for equal values only, and
 * gives records in the order of their primary keys.
 */

const NAME = "inquire-annotator";
const VERSION = 1;
const PATIENCE = 10_000;
const LOST_CONNECTION = new Set(["InvalidStateError", "AbortError", "UnknownError"]);

const SCHEMA = {
  queue: { keyPath: "seq", autoIncrement: true, indexes: { user: "user", place: ["user", "query"] } },
  refused: { keyPath: "client_id", autoIncrement: false, indexes: { user: "user", place: ["user", "query"] } },
  undo: { keyPath: "id", autoIncrement: true, indexes: { place: ["user", "query"] } },
  lease: { keyPath: "name", autoIncrement: false, indexes: {} },
};

function settled(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** One object store within a transaction. Await nothing else between its calls, or the transaction ends. */
class StoreInTransaction {
  constructor(store) {
    this.store = store;
  }

  get(key) {
    return settled(this.store.get(key));
  }

  add(record) {
    return settled(this.store.add(record));
  }

  put(record) {
    return settled(this.store.put(record));
  }

  delete(key) {
    return settled(this.store.delete(key));
  }

  /** The records whose `index` equals `value`, at most `limit`. */
  all(index, value, limit) {
    return settled(this.store.index(index).getAll(value, limit));
  }

  count(index, value) {
    return settled(this.store.index(index).count(value));
  }
}

class StoreInMemory {
  constructor({ keyPath, autoIncrement, indexes }) {
    this.keyPath = keyPath;
    this.autoIncrement = autoIncrement;
    this.indexes = indexes;
    this.records = new Map();
    this.last = 0;
  }

  async get(key) {
    return this.records.get(key);
  }

  async add(record) {
    return this.put(record);
  }

  async put(record) {
    const key = record[this.keyPath] ?? (this.autoIncrement ? (this.last += 1) : undefined);
    this.records.set(key, { ...record, [this.keyPath]: key });
    return key;
  }

  async delete(key) {
    this.records.delete(key);
  }

  async all(index, value, limit = Infinity) {
    const path = [this.indexes[index]].flat();
    const wanted = [value].flat();
    const equal = (record) => path.every((name, place) => record[name] === wanted[place]);
    return [...this.records.values()].filter(equal).slice(0, limit);
  }

  async count(index, value) {
    return (await this.all(index, value)).length;
  }
}

/** What stands in for the database where the browser gives none: it ends with the page. */
export class MemoryDatabase {
  constructor() {
    this.durable = false;
    this.stores = Object.fromEntries(
      Object.entries(SCHEMA).map(([name, shape]) => [name, new StoreInMemory(shape)]),
    );
  }

  async run(_names, _mode, work) {
    return work(this.stores);
  }
}

/** The browser's own database; one in memory where it can't be opened. */
class BrowserDatabase {
  constructor() {
    this.memory = null;
    this.opening = null;
  }

  /** False once it is known that what is kept ends with the page. */
  get durable() {
    return !this.memory;
  }

  /**
   * Runs `work({name: store})` in one transaction over the object stores `names`, and resolves to its result once
   * everything is kept. Where it fails, nothing of it is.
   *
   * @param {string[]} names
   * @param {"readonly"|"readwrite"} mode
   * @param {(stores: Record<string, StoreInTransaction>) => Promise<unknown>} work
   * @param {{durability?: "relaxed"|"strict"}} [options] strict: kept even if the machine loses its power now
   */
  async run(names, mode, work, options = {}) {
    try {
      return await this.#run(names, mode, work, options);
    } catch (error) {
      // The connection was closed for another tab's upgrade, or by the browser.
      if (!LOST_CONNECTION.has(error.name)) throw error;
      this.opening = null;
      return this.#run(names, mode, work, options);
    }
  }

  async #run(names, mode, work, { durability = "relaxed" }) {
    const connection = await this.#connection();
    if (this.memory) return this.memory.run(names, mode, work);
    const transaction = connection.transaction(names, mode, { durability });
    const done = new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error ?? new Error("The transaction was given up."));
    });
    done.catch(() => {});
    const stores = Object.fromEntries(
      names.map((name) => [name, new StoreInTransaction(transaction.objectStore(name))]),
    );
    let result;
    try {
      result = await work(stores);
    } catch (error) {
      if (!transaction.error) transaction.abort();
      throw error;
    }
    await done;
    return result;
  }

  #connection() {
    this.opening ??= this.#open(VERSION)
      .catch((error) => {
        // A newer page in another tab has upgraded it: its stores still hold what this page needs.
        if (error.name === "VersionError") return this.#open(undefined);
        throw error;
      })
      .catch(() => {
        this.memory = new MemoryDatabase();
        return null;
      });
    return this.opening;
  }

  #open(version) {
    return new Promise((resolve, reject) => {
      const request = window.indexedDB.open(NAME, version);
      let gaveUp = false;
      const late = setTimeout(() => {
        gaveUp = true;
        reject(new Error("The browser's database does not open."));
      }, PATIENCE);
      request.onupgradeneeded = () => upgrade(request);
      request.onerror = () => {
        clearTimeout(late);
        reject(request.error);
      };
      request.onsuccess = () => {
        clearTimeout(late);
        const connection = request.result;
        if (gaveUp) {
          connection.close();
          return;
        }
        const forget = () => {
          this.opening = null;
        };
        connection.onversionchange = () => {
          connection.close();
          forget();
        };
        connection.onclose = forget;
        resolve(connection);
      };
    });
  }
}

function upgrade(request) {
  const { result: connection, transaction } = request;
  for (const [name, { keyPath, autoIncrement, indexes }] of Object.entries(SCHEMA)) {
    const store = connection.objectStoreNames.contains(name)
      ? transaction.objectStore(name)
      : connection.createObjectStore(name, { keyPath, autoIncrement });
    for (const [index, path] of Object.entries(indexes)) {
      if (!store.indexNames.contains(index)) store.createIndex(index, path);
    }
  }
}

/** The page's one database. */
export const database = new BrowserDatabase();

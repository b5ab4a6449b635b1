/**
 * IndexedDB with promises, and the same in memory where there is none.
 *
 * One database, "inquire-annotator", with the object stores of SCHEMA. Indexes are queried for equal values only and
 * gives records in the order of their primary keys.
 */

const NAME = "inquire-annotator";
const OPENING_TIMEOUT = 10_000;
const LOST_CONNECTION = new Set(["InvalidStateError", "AbortError", "UnknownError"]);

const SCHEMA = {
  queue: { keyPath: "seq", autoIncrement: true, indexes: { user: "user", place: ["user", "query"] } },
  refused: { keyPath: "client_id", autoIncrement: false, indexes: { user: "user", place: ["user", "query"] } },
  undo: { keyPath: "id", autoIncrement: true, indexes: { place: ["user", "query"] } },
};

function result(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

function timeout() {
  return new Promise((_, reject) => {
    setTimeout(() => reject(new Error("The browser's database does not open.")), OPENING_TIMEOUT);
  });
}

/** One object store within a transaction. Await nothing else between its calls, or the transaction ends. */
class StoreInTransaction {
  constructor(store) {
    this.store = store;
  }

  get(key) {
    return result(this.store.get(key));
  }

  /** Resolves to the record's key, a new one where the store numbers its records and the record has none. */
  put(record) {
    return result(this.store.put(record));
  }

  delete(key) {
    return result(this.store.delete(key));
  }

  /** The records whose `index` equals `value`, at most `limit`. */
  all(index, value, limit) {
    return result(this.store.index(index).getAll(value, limit));
  }

  count(index, value) {
    return result(this.store.index(index).count(value));
  }
}

class StoreInMemory {
  constructor(shape) {
    this.shape = shape;
    this.records = new Map();
    this.last = 0;
  }

  async get(key) {
    return this.records.get(key);
  }

  async put(record) {
    const { keyPath } = this.shape;
    const key = record[keyPath] ?? ++this.last;
    this.records.set(key, { ...record, [keyPath]: key });
    return key;
  }

  async delete(key) {
    this.records.delete(key);
  }

  async all(index, value, limit = Infinity) {
    const path = [this.shape.indexes[index]].flat();
    const wanted = [value].flat();
    const equal = (record) => path.every((name, place) => record[name] === wanted[place]);
    return [...this.records.values()].filter(equal).slice(0, limit);
  }

  async count(index, value) {
    return (await this.all(index, value)).length;
  }
}

/** The substitute where the browser has no database: it ends with the page. */
export class MemoryDatabase {
  constructor() {
    this.durable = false;
    this.stores = Object.fromEntries(Object.entries(SCHEMA).map(([name, shape]) => [name, new StoreInMemory(shape)]));
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

  /** False once records are known to end with the page. */
  get durable() {
    return !this.memory;
  }

  /**
   * Runs `work({name: store})` in one transaction over the object stores `names`, and resolves to its result once
   * everything is stored. Where it fails, nothing is.
   *
   * @param {string[]} names
   * @param {"readonly"|"readwrite"} mode
   * @param {(stores: Record<string, StoreInTransaction>) => Promise<unknown>} work
   * @param {{durability?: "relaxed"|"strict"}} [options] strict: survives a power failure
   */
  async run(names, mode, work, options = {}) {
    try {
      return await this.#run(names, mode, work, options);
    } catch (error) {
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
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(transaction.error ?? new Error("The transaction was aborted."));
    });
    done.catch(() => {});
    const stores = names.map((name) => [name, new StoreInTransaction(transaction.objectStore(name))]);
    let outcome;
    try {
      outcome = await work(Object.fromEntries(stores));
    } catch (error) {
      if (!transaction.error) transaction.abort();
      throw error;
    }
    await done;
    return outcome;
  }

  #connection() {
    this.opening ??= Promise.race([this.#open(), timeout()]).catch(() => {
      this.memory = new MemoryDatabase();
    });
    return this.opening;
  }

  async #open() {
    const request = window.indexedDB.open(NAME, 1);
    request.onupgradeneeded = () => {
      for (const [name, { indexes, ...options }] of Object.entries(SCHEMA)) {
        const store = request.result.createObjectStore(name, options);
        for (const [index, path] of Object.entries(indexes)) store.createIndex(index, path);
      }
    };
    const connection = await result(request);
    connection.onversionchange = () => connection.close();
    connection.onclose = () => {
      this.opening = null;
    };
    return connection;
  }
}

/** The page's one database. */
export const database = new BrowserDatabase();

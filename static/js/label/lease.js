/** A right that one tab of the browser has at a time; it passes on by itself when its tab crashes. */

const LENGTH = 10_000;

export class Lease {
  /**
   * @param {import("./idb.js").MemoryDatabase} database or the browser's
   * @param {string} name
   * @param {string} holder the tab
   * @param {() => number} [now] milliseconds, the same clock in all tabs
   */
  constructor(database, name, holder, now = Date.now) {
    this.database = database;
    this.name = name;
    this.holder = holder;
    this.now = now;
  }

  /** Takes it or takes it anew; resolves to 0, or to the milliseconds for which another tab has it. */
  take() {
    return this.database.run(["lease"], "readwrite", async ({ lease }) => {
      const now = this.now();
      const held = await lease.get(this.name);
      const left = held && held.holder !== this.holder ? held.until - now : 0;
      // More than a whole length means that the clock was put back since.
      if (left > 0 && left <= LENGTH) return left;
      await lease.put({ name: this.name, holder: this.holder, until: now + LENGTH });
      return 0;
    });
  }

  release() {
    return this.database.run(["lease"], "readwrite", async ({ lease }) => {
      const held = await lease.get(this.name);
      if (held?.holder === this.holder) await lease.delete(this.name);
    });
  }
}

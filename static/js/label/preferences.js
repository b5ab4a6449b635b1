/** How one person works on this page, kept on the server so that every browser has it. */
import { api } from "../api.js";

const ADDRESS = "/api/preferences/labelling/";
const QUIET = 600;

export class Preferences {
  /** @param {Object<string, *>} view what the server had when the page was made */
  constructor(view) {
    this.view = { ...view };
    this.timer = 0;
    window.addEventListener("pagehide", () => this.#flush());
  }

  get(name, fallback = null) {
    return this.view[name] ?? fallback;
  }

  /** Sets a value, at once here and shortly after on the server. */
  set(name, value) {
    if (this.view[name] === value) return;
    this.view[name] = value;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#flush(), QUIET);
  }

  /** Keeps the keys that differ from the usual ones; rejects with ApiError when they are refused. */
  saveKeys(keys) {
    return api(ADDRESS, { method: "PUT", body: { keys } });
  }

  #flush() {
    if (!this.timer) return;
    clearTimeout(this.timer);
    this.timer = 0;
    // Lost preferences are no lost work: they stay in force here and are sent with the next change.
    api(ADDRESS, { method: "PUT", body: { view: this.view }, keepalive: true }).catch(() => {});
  }
}

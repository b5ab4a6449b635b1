/**
 * A browser without windows, for tests of the scripts: pages with modules and globals of their own, over one storage and
 * one network. Time stands still unless a test lets it pass.
 *
 * What a page gives to others is copied as a browser does it. Nothing here waits for the clock: IndexedDB, locks and
 * channels answer by the turns of the event loop, which `settle` lets go by.
 */
import assert from "node:assert/strict";
import { registerHooks } from "node:module";
import { IDBFactory } from "fake-indexeddb";

const SCRIPTS = new URL("../../static/js/", import.meta.url).href;
/** More turns than any chain of what happens by itself has here. */
const TURNS = 150;

/** By number: the globals of each page, which its modules begin with. */
const globals = new Map();
globalThis.globalsOfPage = (number) => globals.get(number);

const pageOf = (address) => (address?.startsWith(SCRIPTS) ? new URL(address).searchParams.get("page") : null);

registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context);
    const page = pageOf(context.parentURL);
    return page ? { ...found, url: `${found.url}?page=${page}` } : found;
  },
  load(address, context, next) {
    const found = next(address, context);
    const page = pageOf(address);
    if (!page) return found;
    const names = Object.keys(globals.get(page)).join(", ");
    return { ...found, source: `const { ${names} } = globalThis.globalsOfPage("${page}"); ${found.source}` };
  },
});

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Lets everything happen that needs no time. */
export async function settle() {
  for (let turns = 0; turns < TURNS; turns += 1) await turn();
}

/** An element without a document: what it is asked for by a selector is there, and stays the same. */
export class FakeElement extends EventTarget {
  constructor(tag = "div") {
    super();
    Object.assign(this, {
      tag,
      dataset: {},
      style: { setProperty() {} },
      children: [],
      attributes: {},
      hidden: false,
      text: "",
    });
    this.found = new Map();
    this.classes = new Set();
    this.classList = {
      add: (name) => this.classes.add(name),
      remove: (name) => this.classes.delete(name),
      toggle: (name, on = !this.classes.has(name)) => (on ? this.classes.add(name) : this.classes.delete(name)),
    };
  }

  get textContent() {
    return this.text + this.children.map((child) => child.textContent ?? String(child)).join("");
  }

  set textContent(text) {
    this.children = [];
    this.text = String(text);
  }

  querySelector(selector) {
    if (!this.found.has(selector)) this.found.set(selector, new FakeElement());
    return this.found.get(selector);
  }

  querySelectorAll() {
    return [];
  }

  setAttribute(name, value) {
    this.attributes[name] = value;
    if (name === "hidden") this.hidden = true;
  }

  showModal() {
    this.open = true;
  }

  close() {
    this.open = false;
  }

  append(...children) {
    for (const child of children) {
      if (child instanceof FakeElement) child.parent = this;
      this.children.push(child);
    }
  }

  prepend(child) {
    child.parent = this;
    this.children.unshift(child);
  }

  replaceChildren(...children) {
    this.children = [];
    this.append(...children);
  }

  replaceWith(other) {
    other.parent = this.parent;
    this.parent.children.splice(this.parent.children.indexOf(this), 1, other);
  }

  remove() {
    this.parent.children.splice(this.parent.children.indexOf(this), 1);
  }

  click() {
    this.dispatchEvent(new Event("click"));
  }

  /** The innermost elements that have just this text. */
  withText(text) {
    const within = this.children
      .filter((child) => child instanceof FakeElement)
      .flatMap((child) => child.withText(text));
    return within.length || this.textContent !== text ? within : [this];
  }
}

/** The locks of a browser; a page that ends gives its own back. */
class Locks {
  constructor() {
    this.held = new Map();
    this.waiting = new Map();
  }

  of(page) {
    return { request: (name, ...rest) => this.#request(page, name, rest.length > 1 ? rest[0] : {}, rest.at(-1)) };
  }

  async #request(page, name, { ifAvailable = false, signal }, work) {
    if (this.held.has(name) && ifAvailable) return work(null);
    while (this.held.has(name)) await this.#freed(name, signal);
    this.held.set(name, page);
    try {
      return await work({ name });
    } finally {
      if (this.held.get(name) === page) this.#free(name);
    }
  }

  #freed(name, signal) {
    return new Promise((resolve, reject) => {
      const queue = this.waiting.get(name) ?? [];
      this.waiting.set(name, [...queue, resolve]);
      signal?.addEventListener("abort", () => reject(signal.reason));
    });
  }

  #free(name) {
    this.held.delete(name);
    const queue = this.waiting.get(name) ?? [];
    this.waiting.delete(name);
    for (const go of queue) go();
  }

  release(page) {
    for (const [name, holder] of [...this.held]) if (holder === page) this.#free(name);
  }
}

let pages = 0;

class Page {
  constructor(browser, { user, session, search = "", locks = true }) {
    pages += 1;
    this.number = String(pages);
    this.browser = browser;
    this.user = user;
    /** What this tab keeps over a reload. */
    this.session = session;
    this.timers = new Set();
    this.channels = new Set();
    this.open = true;
    this.window = new EventTarget();
    this.window.location = new URL(`https://site.test/${search}`);
    this.window.history = { replaceState: (_state, _title, address) => (this.window.location = new URL(address)) };
    this.document = new EventTarget();
    globals.set(this.number, this.#globals(locks));
  }

  /** One of the scripts as this page has it. */
  load(path) {
    return import(`${SCRIPTS}${path}?page=${this.number}`);
  }

  /** Ends without a word, as by a crash; what others share with it goes on. */
  crash() {
    this.open = false;
    for (const timer of this.timers) clearTimeout(timer);
    for (const channel of this.channels) this.browser.channels.delete(channel);
    this.browser.locks.release(this);
    this.browser.pages.delete(this);
  }

  /** Ends as a page that is left. */
  close() {
    this.window.dispatchEvent(new Event("pagehide"));
    this.crash();
  }

  /** The same tab's next page. */
  reload(options = {}) {
    this.close();
    return this.browser.page({ user: this.user, session: this.session, ...options });
  }

  show(state) {
    this.document.visibilityState = state;
    this.document.dispatchEvent(new Event("visibilitychange"));
  }

  #globals(locks) {
    const { browser, window, document } = this;
    const root = new FakeElement();
    const meta = this.user ? { content: String(this.user) } : null;
    Object.assign(document, {
      visibilityState: "visible",
      cookie: "csrftoken=token",
      documentElement: { dataset: { timeZone: "UTC" } },
      body: root,
      createElement: (tag) => new FakeElement(tag),
      getElementById: () => null,
      querySelectorAll: () => [],
      querySelector: (selector) => (selector === 'meta[name="user-id"]' ? meta : null),
    });
    window.indexedDB = browser.indexedDB;
    const kept = (map) => ({
      getItem: (name) => map.get(name) ?? null,
      setItem: (name, value) => map.set(name, String(value)),
    });
    const later = (run, milliseconds) => {
      const timer = setTimeout(() => {
        this.timers.delete(timer);
        run();
      }, milliseconds);
      this.timers.add(timer);
      return timer;
    };
    const page = this;
    return {
      window,
      document,
      sessionStorage: kept(this.session),
      localStorage: kept(browser.local),
      navigator: locks ? { locks: browser.locks.of(this) } : {},
      performance: { now: () => Date.now() },
      requestAnimationFrame: (run) => later(run, 16),
      setTimeout: later,
      clearTimeout: (timer) => clearTimeout(timer),
      fetch: (path, options = {}) => browser.fetch(this, path, options),
      AbortSignal: {
        timeout(milliseconds) {
          const controller = new AbortController();
          later(() => controller.abort(new DOMException("It takes too long.", "TimeoutError")), milliseconds);
          return controller.signal;
        },
      },
      BroadcastChannel: class extends EventTarget {
        constructor() {
          super();
          page.channels.add(this);
          browser.channels.add(this);
        }

        postMessage(message) {
          const data = structuredClone(message);
          for (const other of browser.channels) {
            if (other === this) continue;
            setImmediate(() => {
              if (browser.channels.has(other)) other.dispatchEvent(Object.assign(new Event("message"), { data }));
            });
          }
        }
      },
      ResizeObserver: class {
        observe() {}
      },
      Image: class extends FakeElement {
        async decode() {
          await turn();
          if (!browser.online || browser.broken.has(this.src)) throw new DOMException("", "EncodingError");
        }

        removeAttribute(name) {
          delete this[name];
        }
      },
    };
  }
}

/**
 * @param {import("node:test").TestContext} t the browser lives as long as its test
 * @param {object} server answers requests: `answer(path, {method, headers, body, keepalive})` resolves to a Response
 */
export class Browser {
  constructor(t, server) {
    t.mock.timers.enable({ apis: ["setTimeout", "Date"], now: Date.UTC(2026, 0, 1) });
    t.after(() => {
      for (const page of [...this.pages]) page.crash();
    });
    this.t = t;
    this.server = server;
    this.indexedDB = new IDBFactory();
    this.local = new Map();
    this.locks = new Locks();
    this.channels = new Set();
    this.pages = new Set();
    this.online = true;
    /** Addresses of images that can't be loaded. */
    this.broken = new Set();
    /** Requests for judgments or anything else, in order: {page, path, method, body, keepalive}. */
    this.requests = [];
  }

  page({ user = 1, session = new Map(), ...options } = {}) {
    const page = new Page(this, { user, session, ...options });
    this.pages.add(page);
    return page;
  }

  async fetch(page, path, { method = "GET", headers = {}, body, signal, keepalive = false }) {
    const request = {
      page,
      path,
      method,
      headers,
      body: typeof body === "string" ? JSON.parse(body) : body,
      keepalive,
    };
    this.requests.push(request);
    await turn();
    if (!this.online) throw new TypeError("Failed to fetch");
    const aborted = new Promise((_, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason));
    });
    return Promise.race([this.server.answer(request), aborted]);
  }

  goOffline() {
    this.online = false;
  }

  goOnline() {
    this.online = true;
    for (const { window } of this.pages) window.dispatchEvent(new Event("online"));
  }

  /** Lets time pass, and what comes of it happen. */
  async pass(milliseconds) {
    await settle();
    this.t.mock.timers.tick(milliseconds);
    await settle();
  }

  /** Lets time pass in small steps until something is true; fails after ten minutes without it. */
  async until(condition, what = "what is waited for") {
    for (let step = 0; step < 600; step += 1) {
      for (let turns = 0; turns < TURNS; turns += 1) {
        if (condition()) return;
        await turn();
      }
      this.t.mock.timers.tick(1000);
    }
    assert.fail(`${what} did not come`);
  }
}

export const json = (body, status = 200) => new Response(JSON.stringify(body), { status });

/** Stands for the server's judgments, as labeling/judging/services.py answers: each client id counts once. */
export class JudgingServer {
  constructor() {
    /** Every act of judging: {user, query, image, relevance, source, grade, reason}. */
    this.acts = [];
    this.seen = new Map();
    /** Who is logged in; null for nobody. */
    this.user = 1;
    /** Queries that take no judgments: "closed" or "gone". */
    this.state = new Map();
    /** Called before each answer: a Response or an error that it gives goes out instead. */
    this.trouble = null;
    /** Called between an answer and its arrival. */
    this.late = null;
    /** How many answers get lost on their way. */
    this.lose = 0;
    /** What other addresses answer, by path without its parameters. */
    this.pages = new Map();
  }

  async answer(request) {
    const { path, headers } = request;
    const stopped = await this.trouble?.(request);
    if (stopped) return stopped;
    if (this.user === null) return json({ detail: "You are not logged in." }, 403);
    if (headers["X-Annotator"] && Number(headers["X-Annotator"]) !== this.user) {
      return json({ detail: "Somebody else is logged in." }, 409);
    }
    const url = new URL(path, "https://site.test");
    const query = /^\/api\/queries\/(\d+)\/judgments\/$/.exec(url.pathname)?.[1];
    const answer = query ? this.#judge(Number(query), request) : this.pages.get(url.pathname)?.(url, request);
    if (!answer) return json({ detail: "There is nothing here." }, 404);
    if (query && this.lose) {
      this.lose -= 1;
      throw new TypeError("The answer was lost");
    }
    const response = answer instanceof Response ? answer : json(answer);
    await this.late?.(request);
    return response;
  }

  /** The acts in short: [user, query, image, relevance]. */
  get events() {
    return this.acts.map(({ user, query, image, relevance }) => [user, query, image, relevance]);
  }

  /** The last act of a person on an image. */
  last(user, query, image) {
    return this.acts.findLast((one) => one.user === user && one.query === query && one.image === image) ?? null;
  }

  /** Somebody judges, here or on another device. */
  judge(user, query, image, relevance, { source = "list", grade = null, reason = "" } = {}) {
    this.acts.push({ user, query, image, relevance, source, grade, reason });
  }

  #judge(query, { body }) {
    if (this.state.get(query) === "gone") return json({ detail: "Not found." }, 404);
    return {
      results: body.map((item) => this.#one(query, item)),
      progress: { active_seconds: 7 },
      cursor: this.acts.length,
    };
  }

  #one(query, item) {
    const { client_id: clientId, image, relevance, expected } = item;
    const current = this.last(this.user, query, image)?.relevance ?? null;
    const told = { client_id: clientId, image, current, relevance };
    if (this.seen.has(clientId)) return { ...told, status: "repeated" };
    if (this.state.get(query) === "closed") {
      return { ...told, status: "refused", code: "closed", detail: "The query is complete." };
    }
    if (expected !== undefined && expected !== current) {
      return { ...told, status: "refused", code: "conflict", detail: "It has another label." };
    }
    this.judge(this.user, query, image, relevance, item);
    this.seen.set(clientId, image);
    return { ...told, status: "stored", current: relevance };
  }
}

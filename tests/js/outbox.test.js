/** Judgments on their way: each arrives exactly once and in order, whatever happens to network, server, tab or session. */
import assert from "node:assert/strict";
import test from "node:test";
import { IDBDatabase, IDBObjectStore } from "fake-indexeddb";
import { Browser, JudgingServer, json, settle } from "./browser.js";

const QUERY = 7;
const KINDS = ["answer", "refused", "dismissed", "remote", "state"];

/** The outbox of a query on a page, with what it has told. */
async function desk(page, query = QUERY) {
  const { Outbox } = await page.load("saving/outbox.js");
  const box = new Outbox({ user: page.user, query, url: `/api/queries/${query}/judgments/` });
  const told = [];
  for (const kind of KINDS) box.addEventListener(kind, ({ detail }) => told.push({ kind, ...detail }));
  await settle();
  return {
    page,
    box,
    told: (kind) => told.filter((one) => one.kind === kind),
    judge: (...marks) =>
      box.add(marks.map(([image, relevance, more]) => ({ image, relevance, seconds: 1.5, source: "list", ...more }))),
  };
}

function start(t) {
  const server = new JudgingServer();
  const browser = new Browser(t, server);
  const sent = () => browser.requests.filter(({ path }) => path.endsWith("/judgments/"));
  const sizes = () => sent().map(({ body }) => body.length);
  return { server, browser, sent, sizes };
}

const RELEVANCES = ["relevant", "not_relevant", "unsure"];
const marks = (from, to) =>
  Array.from({ length: to - from + 1 }, (_, place) => [from + place, RELEVANCES[(from + place) % 3]]);
const arrived = (list, query = QUERY, user = 1) => list.map(([image, relevance]) => [user, query, image, relevance]);
const problem = ({ box }) => box.problem?.kind ?? null;

test("judgments made without network arrive once and in the order of all queries", async (t) => {
  const { server, browser, sent } = start(t);
  const page = browser.page();
  const [here, other] = [await desk(page, 7), await desk(page, 8)];
  browser.goOffline();
  await here.judge(...marks(1, 3));
  await other.judge(...marks(50, 51));
  await here.judge(...marks(4, 120), [1, "unsure"], [2, null]);
  await other.judge([52, "relevant"]);
  await settle();
  assert.equal(problem(here), "offline");
  const { waiting, saved, elsewhere, durable } = here.box;
  assert.deepEqual({ waiting, saved, elsewhere, durable }, { waiting: 122, saved: 0, elsewhere: 3, durable: true });
  assert.equal(here.box.unsavedSeconds, 122 * 1.5);
  assert.equal(other.box.elsewhere, 122);
  assert.deepEqual(server.events, []);

  browser.goOnline();
  await browser.until(() => !here.box.waiting && !other.box.waiting);
  assert.deepEqual(server.events, [
    ...arrived(marks(1, 3), 7),
    ...arrived(marks(50, 51), 8),
    ...arrived([...marks(4, 120), [1, "unsure"], [2, null]], 7),
    ...arrived([[52, "relevant"]], 8),
  ]);
  assert.deepEqual([problem(here), here.box.saved, here.box.elsewhere, here.box.unsavedSeconds], [null, 122, 0, 0]);
  const answered = sent()
    .filter(({ body }) => server.seen.has(body[0].client_id))
    .slice(-5);
  assert.deepEqual(
    answered.map(({ path, body }) => [path.split("/")[3], body.length]),
    [
      ["7", 3],
      ["8", 2],
      ["7", 100],
      ["7", 19],
      ["8", 1],
    ],
  );
});

test("what goes with a judgment arrives with it, and how long ago it was made", async (t) => {
  const { browser, sent } = start(t);
  const here = await desk(browser.page());
  browser.goOffline();
  await here.judge([
    1,
    "relevant",
    { grade: 2, reason: "A tail", expected: null, revision: 4, place: 9, source: "learned" },
  ]);
  await browser.pass(60_000);
  browser.goOnline();
  await settle();
  const [{ client_id: clientId, ...item }] = sent().at(-1).body;
  assert.match(clientId, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.deepEqual(item, {
    image: 1,
    relevance: "relevant",
    grade: 2,
    reason: "A tail",
    expected: null,
    revision: 4,
    place: 9,
    source: "learned",
    seconds: 1.5,
    age: 60,
  });
  const { headers } = sent().at(-1);
  assert.deepEqual([headers["X-Annotator"], headers["X-CSRFToken"]], ["1", "token"]);
});

test("a lost answer is asked for again, with the same client ids, and counts once", async (t) => {
  const { server, browser, sent } = start(t);
  const here = await desk(browser.page());
  server.lose = 2;
  await here.judge(...marks(1, 5));
  await browser.until(() => !here.box.waiting);
  assert.equal(sent().length, 3);
  const ids = sent().map(({ body }) => body.map((item) => item.client_id).join());
  assert.equal(new Set(ids).size, 1);
  assert.deepEqual(
    here.told("answer")[0].results.map(({ status }) => status),
    Array(5).fill("repeated"),
  );
  assert.deepEqual(server.events, arrived(marks(1, 5)));
  assert.equal(here.box.saved, 5);
});

for (const [name, trouble, kind] of [
  ["a server that fails", () => json({ detail: "Out of order." }, 500), "server"],
  ["a server that is overrun", () => json({ detail: "Too many requests." }, 429), "server"],
  ["a server whose disk is full", () => json({ detail: "The server's disk is full." }, 507), "full"],
  ["an answer that is no JSON", () => new Response("<html>"), "offline"],
  ["an answer about other judgments", () => json({ results: [{ client_id: "another" }] }), "server"],
]) {
  test(`judgments wait in the browser for ${name}, and arrive once`, async (t) => {
    const { server, browser, sent } = start(t);
    const here = await desk(browser.page());
    server.trouble = trouble;
    await here.judge(...marks(1, 2));
    await here.judge(...marks(3, 4));
    await browser.pass(200);
    assert.equal(problem(here), kind);
    assert.equal(here.box.waiting, 4);
    // It is asked less and less often, but at least every ten seconds.
    await browser.until(() => sent().length > 6);
    const before = sent().length;
    for (let second = 0; second < 20; second += 1) await browser.pass(1000);
    const asked = sent().length - before;
    assert.ok(asked >= 2 && asked <= 4, `${asked} requests`);
    assert.deepEqual(server.events, []);
    assert.deepEqual(
      (await here.box.pending()).map(({ image }) => image),
      [1, 2, 3, 4],
    );
    server.trouble = null;
    await browser.until(() => !here.box.waiting);
    assert.deepEqual([problem(here), here.box.saved], [null, 4]);
    assert.deepEqual(server.events, arrived(marks(1, 4)));
  });
}

test("a server that never answers is given up and asked again", async (t) => {
  const { server, browser } = start(t);
  const here = await desk(browser.page());
  server.trouble = () => new Promise(() => {});
  await here.judge([1, "relevant"]);
  await settle();
  assert.equal(problem(here), null);
  await browser.pass(20_000);
  assert.equal(problem(here), "server");
  server.trouble = null;
  await browser.until(() => !here.box.waiting);
  assert.deepEqual(server.events, arrived([[1, "relevant"]]));
});

test("who waits no longer than for the network sends at once when it is back", async (t) => {
  const { server, browser } = start(t);
  const here = await desk(browser.page());
  browser.goOffline();
  await here.judge([1, "relevant"]);
  await settle();
  browser.goOnline();
  await settle();
  assert.equal(server.events.length, 1);
  // The same where the page is looked at again, or somebody asks for it.
  for (const again of [() => here.page.show("visible"), () => here.box.retryNow()]) {
    server.trouble = () => json({}, 503);
    await here.judge([server.events.length + 1, "relevant"]);
    await browser.pass(100);
    server.trouble = null;
    const before = server.events.length;
    again();
    await settle();
    assert.equal(server.events.length, before + 1);
  }
});

for (const sending of [false, true]) {
  test(`what a crashed tab leaves ${sending ? "half sent" : "waiting"} is sent from the page opened next`, async (t) => {
    const { server, browser } = start(t);
    const page = browser.page();
    const here = await desk(page);
    server.trouble = () => (sending ? new Promise(() => {}) : json({}, 503));
    await here.judge(...marks(1, 4));
    await here.judge(...marks(5, 7));
    await settle();
    page.crash();
    server.trouble = null;
    await browser.page().load("saving/leftovers.js");
    await browser.until(() => server.events.length === 7);
    assert.deepEqual(server.events, arrived(marks(1, 7)));
  });
}

test("a page without somebody logged in sends nothing", async (t) => {
  const { server, browser, sent } = start(t);
  const here = await desk(browser.page());
  browser.goOffline();
  await here.judge([1, "relevant"]);
  await settle();
  here.page.crash();
  browser.online = true;
  const before = sent().length;
  await browser.page({ user: 0 }).load("saving/leftovers.js");
  await browser.pass(60_000);
  assert.equal(sent().length, before);
  assert.deepEqual(server.events, []);
});

test("leaving the page sends what waits once more, and nothing counts twice", async (t) => {
  const { server, browser, sent } = start(t);
  const page = browser.page();
  const here = await desk(page);
  server.trouble = ({ keepalive }) => (keepalive ? null : json({}, 503));
  await here.judge(...marks(1, 6));
  await settle();
  page.close();
  await settle();
  assert.deepEqual(server.events, arrived(marks(1, 6)));
  assert.equal(sent().at(-1).keepalive, true);
  server.trouble = null;
  const next = await desk(browser.page());
  await browser.until(() => !next.box.waiting);
  assert.equal(server.events.length, 6);
});

test("a page that is left sends no more than a browser takes", async (t) => {
  const { server, browser, sent } = start(t);
  server.trouble = () => json({}, 503);
  const { page, judge } = await desk(browser.page());
  await judge(...Array.from({ length: 90 }, (_, place) => [place, "relevant", { grade: 1, reason: "x".repeat(1000) }]));
  await settle();
  const before = sent().length;
  page.close();
  await settle();
  const [last, ...more] = sent().slice(before);
  assert.ok(last.body.length > 40 && JSON.stringify(last.body).length < 64 * 1024);
  assert.deepEqual([last.body.map(({ image }) => image), more], [last.body.map((_, place) => place), []]);
});

test("a page that is left overtakes no other page's judgments", async (t) => {
  const { server, browser, sent } = start(t);
  server.trouble = () => json({}, 503);
  const [first, second] = [await desk(browser.page()), await desk(browser.page())];
  await first.judge([1, "relevant"]);
  await settle();
  await second.judge([2, "relevant"]);
  await settle();
  const before = sent().length;
  second.page.close();
  await settle();
  assert.equal(sent().length, before);
});

test("a session that expired is taken up after the next log-in", async (t) => {
  const { server, browser } = start(t);
  const here = await desk(browser.page());
  await here.judge(...marks(1, 2));
  await browser.until(() => !here.box.waiting);
  server.user = null;
  await here.judge(...marks(3, 5));
  await here.judge(...marks(6, 8));
  await browser.pass(1000);
  assert.deepEqual([problem(here), here.box.waiting], ["logged_out", 6]);
  server.user = 1;
  await browser.until(() => !here.box.waiting);
  assert.deepEqual(server.events, [...arrived(marks(1, 2)), ...arrived(marks(3, 5)), ...arrived(marks(6, 8))]);
});

test("somebody else's session takes no judgments of mine", async (t) => {
  const { server, browser } = start(t);
  const mine = await desk(browser.page({ user: 1 }));
  server.user = 2;
  await mine.judge(...marks(1, 4));
  const theirs = await desk(browser.page({ user: 2 }));
  assert.deepEqual([theirs.box.waiting, theirs.told("remote")], [0, []]);
  await theirs.judge([5, "unsure"]);
  await browser.until(() => !theirs.box.waiting);
  await browser.pass(30_000);
  assert.deepEqual([problem(mine), mine.box.waiting, theirs.box.saved], ["other_user", 4, 1]);
  assert.deepEqual(server.events, arrived([[5, "unsure"]], QUERY, 2));
  server.user = 1;
  await browser.until(() => !mine.box.waiting);
  assert.deepEqual(server.events.slice(1), arrived(marks(1, 4)));
});

test("a CSRF token that the server doesn't take is fetched anew", async (t) => {
  const { server, browser, sent } = start(t);
  const here = await desk(browser.page());
  const { document } = here.page;
  document.cookie = "";
  server.pages.set("/", () => {
    document.cookie = "theme=dark; csrftoken=new";
    return new Response("<html>");
  });
  server.trouble = ({ method, headers }) =>
    method === "POST" && headers["X-CSRFToken"] !== "new" ? json({ detail: "CSRF Failed: missing" }, 403) : null;
  await here.judge(...marks(1, 2));
  await settle();
  assert.deepEqual(server.events, arrived(marks(1, 2)));
  assert.equal(sent().length, 2);
  assert.ok(here.told("state").every((state) => state.problem === null));
});

test("a refused judgment is kept with its reason until it is dismissed, in all tabs", async (t) => {
  const { server, browser } = start(t);
  const here = await desk(browser.page());
  await here.judge([1, "relevant"]);
  await browser.until(() => !here.box.waiting);
  server.state.set(QUERY, "closed");
  await here.judge([1, "unsure"], [2, "relevant"]);
  await browser.until(() => here.told("refused").length === 2);
  const told = here.told("refused");
  assert.deepEqual(
    told.map(({ record, stands }) => [record.image, stands]),
    [
      [1, "relevant"],
      [2, null],
    ],
  );
  assert.deepEqual(
    told.map(({ result }) => result.detail),
    Array(2).fill("The query is complete."),
  );
  await settle();
  assert.deepEqual([here.box.saved, here.box.waiting], [1, 0]);

  const other = await desk(browser.page());
  const again = await desk(here.page.reload());
  assert.deepEqual(
    again.told("refused").map(({ record }) => record.image),
    [1, 2],
  );
  const ids = told.map(({ record }) => record.client_id);
  await again.box.dismiss(ids);
  await settle();
  for (const tab of [again, other]) assert.deepEqual(tab.told("dismissed")[0].client_ids, ids);
  assert.deepEqual(await (await desk(browser.page())).box.refused(), []);
});

test("a judgment is refused that would write over what its page has not seen", async (t) => {
  const { server, browser } = start(t);
  const here = await desk(browser.page());
  server.judge(1, QUERY, 1, "not_relevant");
  await here.judge([1, "relevant", { expected: null }], [2, "relevant", { expected: null }]);
  await browser.until(() => here.told("refused").length);
  const [{ record, result, stands }] = here.told("refused");
  assert.deepEqual([record.image, result.code, stands], [1, "conflict", "not_relevant"]);
  assert.deepEqual(server.events.slice(1), arrived([[2, "relevant"]]));
});

test("of a refused judgment nothing is shown where a later one of the image waits", async (t) => {
  const { server, browser } = start(t);
  const here = await desk(browser.page());
  server.judge(1, QUERY, 1, "not_relevant");
  await here.judge([1, "relevant", { expected: null }]);
  await here.judge([1, "unsure"]);
  await browser.until(() => here.told("refused").length);
  assert.equal(here.told("refused")[0].stands, undefined);
});

test("a query that is gone refuses all of its judgments and holds up no other's", async (t) => {
  const { server, browser } = start(t);
  const page = browser.page();
  const [here, next] = [await desk(page, 7), await desk(page, 8)];
  browser.goOffline();
  await here.judge(...marks(1, 3));
  await next.judge([9, "relevant"]);
  server.state.set(7, "gone");
  browser.goOnline();
  await browser.until(() => next.box.saved === 1);
  const told = here.told("refused");
  assert.deepEqual(
    told.map(({ record, result, stands }) => [record.image, result.code, stands]),
    [
      [1, "closed", null],
      [2, "closed", null],
      [3, "closed", null],
    ],
  );
  assert.ok(told.every(({ result }) => result.detail));
  assert.deepEqual(server.events, arrived([[9, "relevant"]], 8));
});

for (const broken of ["no database", "no space"]) {
  test(`with ${broken} judgments are sent from memory, and the page can warn`, async (t) => {
    const { server, browser } = start(t);
    const [page, tab] = [browser.page(), browser.page()];
    const fail = (name) => () => {
      throw new DOMException("", name);
    };
    if (broken === "no space") t.mock.method(IDBObjectStore.prototype, "put", fail("QuotaExceededError"));
    else for (const one of [page, tab]) one.window.indexedDB = { open: fail("SecurityError") };
    const [here, other] = [await desk(page), await desk(tab)];
    browser.goOffline();
    await here.judge(...marks(1, 2));
    await here.judge(...marks(3, 5));
    await settle();
    assert.deepEqual([here.box.waiting, here.box.durable, problem(here)], [5, false, "offline"]);
    // Another tab, which has nothing to send, says that all is well: not of what this page alone holds.
    tab.window.dispatchEvent(new Event("focus"));
    await settle();
    assert.deepEqual([problem(other), problem(here)], [null, "offline"]);
    browser.goOnline();
    await browser.until(() => !here.box.waiting);
    assert.equal(here.box.saved, 5);
    assert.deepEqual(server.events, arrived(marks(1, 5)));
  });
}

test("where the disk becomes full on the way, what is on it goes first", async (t) => {
  const { server, browser } = start(t);
  const here = await desk(browser.page());
  browser.goOffline();
  await here.judge(...marks(1, 3));
  const put = t.mock.method(IDBObjectStore.prototype, "put", () => {
    throw new DOMException("", "QuotaExceededError");
  });
  await here.judge(...marks(4, 5));
  put.mock.restore();
  await here.judge([6, "unsure"]);
  await settle();
  assert.deepEqual([here.box.waiting, here.box.durable], [6, false]);
  browser.goOnline();
  await browser.until(() => !here.box.waiting);
  assert.deepEqual(server.events, arrived([...marks(1, 3), ...marks(4, 5), [6, "unsure"]]));
  assert.equal(here.box.saved, 6);
});

test("a slow server gets fewer requests with more in each", async (t) => {
  const { server, browser, sizes } = start(t);
  server.trouble = () => new Promise((resolve) => setTimeout(resolve, 100));
  const here = await desk(browser.page());
  await here.judge([1, "relevant"]);
  await browser.pass(100);
  assert.equal(here.box.saved, 1);
  // These come while it rests: at least 25 times as long as the answer took, at most 50 times.
  for (const mark of marks(2, 4)) await here.judge(mark);
  await browser.pass(2400);
  assert.deepEqual(sizes(), [1]);
  await browser.pass(2600);
  await browser.pass(100);
  assert.equal(here.box.saved, 4);
  await here.judge([5, "relevant"]);
  // Who waits for the answer doesn't wait for the end of the rest.
  const drained = here.box.drained();
  await browser.pass(100);
  await drained;
  assert.deepEqual(sizes(), [1, 3, 1]);
  assert.equal(server.events.length, 5);
});

test("one request at a time over all tabs, in the order of the judgments", async (t) => {
  const { server, browser } = start(t);
  const tabs = [await desk(browser.page()), await desk(browser.page())];
  let running = 0;
  let most = 0;
  server.trouble = async () => {
    running += 1;
    most = Math.max(most, running);
    await settle();
    running -= 1;
  };
  const list = marks(1, 40);
  for (const [place, mark] of list.entries()) await tabs[place % 2].judge(mark);
  await browser.until(() => tabs.every(({ box }) => !box.waiting && box.saved === 40));
  assert.equal(most, 1);
  assert.deepEqual(server.events, arrived(list));
  // Both tabs know of every judgment of the other, and of the time that was spent on their own.
  for (const { box } of tabs) assert.equal(box.unsavedSeconds, 0);
  for (const [mine, { told }] of tabs.entries()) {
    const heard = told("remote").flatMap((one) => one.marks.map(({ image }) => image));
    assert.deepEqual(
      heard,
      list.filter((_, place) => place % 2 !== mine).map(([image]) => image),
    );
  }
});

test("where a browser has no locks, two tabs that send the same judgments count them once", async (t) => {
  const { server, browser, sent } = start(t);
  const tabs = [await desk(browser.page({ locks: false })), await desk(browser.page({ locks: false }))];
  browser.goOffline();
  await tabs[0].judge(...marks(1, 3));
  await settle();
  const before = sent().length;
  browser.goOnline();
  await browser.until(() => tabs.every(({ box }) => !box.waiting));
  assert.ok(sent().length > before + 1);
  assert.deepEqual(server.events, arrived(marks(1, 3)));
  for (const { box } of tabs) assert.equal(box.saved, 3);
});

test("a judgment is on the disk, past a power failure, before it counts as stored", async (t) => {
  const { browser } = start(t);
  const { judge } = await desk(browser.page());
  const opened = t.mock.method(IDBDatabase.prototype, "transaction");
  await judge([1, "relevant"]);
  const [first] = opened.mock.calls;
  assert.deepEqual(first.arguments, [["queue"], "readwrite", { durability: "strict" }]);
});

test("a database that can't be read for a while keeps what waits, and it is sent then", async (t) => {
  const { server, browser } = start(t);
  const here = await desk(browser.page());
  const { database } = await here.page.load("saving/database.js");
  const { run } = database;
  const broken = t.mock.method(database, "run", (names, mode, ...rest) => {
    if (mode === "readonly") throw new DOMException("", "DataError");
    return run.call(database, names, mode, ...rest);
  });
  await here.judge([1, "relevant"]);
  await settle();
  assert.deepEqual([problem(here), here.box.waiting, here.box.durable], ["server", 1, true]);
  broken.mock.restore();
  await browser.until(() => !here.box.waiting);
  assert.deepEqual(server.events, arrived([[1, "relevant"]]));
});

test("a connection to the database that the browser has closed is opened again", async (t) => {
  const { server, browser } = start(t);
  const page = browser.page();
  const here = await desk(page);
  const { database } = await page.load("saving/database.js");
  (await database.opening).close();
  await here.judge([1, "relevant"]);
  await browser.until(() => !here.box.waiting);
  assert.equal(here.box.durable, true);
  assert.deepEqual(server.events, arrived([[1, "relevant"]]));
});

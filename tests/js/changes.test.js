/** What happens elsewhere while one labels: other tabs, devices and people, withdrawn images, another list. */
import assert from "node:assert/strict";
import test from "node:test";
import { Browser, settle } from "./browser.js";
import { imageAt, LabelingServer, labels, QUERY, studioOn } from "./labeling.js";

async function start(t, options) {
  const server = new LabelingServer(options);
  const browser = new Browser(t, server);
  return { server, browser, ...(await following(browser.page())) };
}

/** Store, outbox and changes of the query on a page. */
async function following(page) {
  const [{ CandidateStore }, { ListSource }, { Changes }, { Outbox }] = await Promise.all(
    ["studio/store.js", "studio/list-source.js", "studio/changes.js", "saving/outbox.js"].map((path) =>
      page.load(path),
    ),
  );
  const store = new CandidateStore(`/api/queries/${QUERY}/`, ListSource);
  const heard = [];
  for (const kind of ["labels", "list", "withdrawn", "query"]) {
    store.addEventListener(kind, ({ detail }) => heard.push([kind, detail]));
  }
  const outbox = new Outbox({ user: page.user, query: QUERY, url: `/api/queries/${QUERY}/judgments/` });
  await store.load();
  const changes = new Changes(store, outbox);
  return {
    page,
    store,
    outbox,
    changes,
    heard: (wanted) => heard.filter(([kind]) => kind === wanted).map(([, detail]) => detail),
    /** Judges as the studio does: here at once, and into the outbox. */
    judge: async (rank, relevance) => {
      const expected = store.entry(rank).relevance;
      store.set(imageAt(rank), relevance);
      await outbox.add([{ image: imageAt(rank), relevance, seconds: 2, source: "list", expected }]);
    },
  };
}

const stuck = ({ path }) => (path.endsWith("/judgments/") ? new Response("{}", { status: 503 }) : null);

test("labels from another device are taken over once", async (t) => {
  const { server, store, changes, heard } = await start(t);
  const own = [];
  changes.addEventListener("own", ({ detail }) => own.push(detail.marks.length));
  server.judge(1, QUERY, imageAt(1), "relevant", { grade: 2 });
  server.judge(1, QUERY, imageAt(2), "unsure", { source: "search" });
  server.judge(2, QUERY, imageAt(3), "relevant");
  await changes.poll();
  assert.deepEqual(labels(store, 3), ["relevant", "unsure", null]);
  assert.deepEqual([store.gradeOf(imageAt(1)), store.entry(2).source], [2, "search"]);
  assert.deepEqual(heard("labels"), [{ images: [imageAt(1), imageAt(2)] }]);
  server.judge(1, QUERY, imageAt(1), null);
  await changes.poll();
  await changes.poll();
  assert.deepEqual(labels(store, 2), [null, "unsure"]);
  assert.deepEqual([heard("labels").length, own], [2, [2, 1]]);
});

test("what waits here stands here until the server has said what it makes of it", async (t) => {
  const { server, browser, store, outbox, changes, judge } = await start(t);
  server.trouble = stuck;
  await judge(3, "not_relevant");
  server.judge(1, QUERY, imageAt(3), "relevant");
  server.judge(1, QUERY, imageAt(4), "relevant");
  await changes.poll();
  assert.deepEqual(labels(store, 4), [null, null, "not_relevant", "relevant"]);
  server.trouble = null;
  await browser.until(() => !outbox.waiting);
  await settle();
  assert.deepEqual(labels(store, 4), [null, null, "relevant", "relevant"]);
  assert.deepEqual(
    (await outbox.refused()).map(({ result }) => result.code),
    ["conflict"],
  );
  await changes.poll();
  assert.deepEqual(labels(store, 4), [null, null, "relevant", "relevant"]);
});

test("a label given and saved while an answer was on its way is not replaced by it", async (t) => {
  const { server, store, outbox, changes } = await start(t);
  server.judge(1, QUERY, imageAt(1), "unsure");
  server.judge(1, QUERY, imageAt(2), "unsure");
  server.late = async ({ path }) => {
    if (!path.includes("/changes/")) return;
    server.late = null;
    await outbox.add([{ image: imageAt(1), relevance: "relevant" }]);
    store.set(imageAt(1), "relevant");
    await outbox.drained();
  };
  await changes.poll();
  assert.deepEqual(labels(store, 2), ["relevant", "unsure"]);
  // What was left out is asked for again.
  assert.equal(store.cursor, 0);
  await changes.poll();
  assert.deepEqual([labels(store, 2), store.cursor], [["relevant", "unsure"], 3]);
});

test("a refused label leaves alone what was judged after it", async (t) => {
  const { server, browser, store, outbox, judge } = await start(t);
  server.judge(1, QUERY, imageAt(1), "not_relevant");
  const seen = [];
  outbox.addEventListener("refused", ({ detail }) => seen.push([detail.record.relevance, store.entry(1).relevance]));
  await judge(1, "relevant");
  await judge(1, "unsure");
  await browser.until(() => seen.length === 2);
  assert.deepEqual(seen, [
    ["relevant", "unsure"],
    ["unsure", "not_relevant"],
  ]);
});

test("two tabs have each other's labels at once", async (t) => {
  const first = await start(t);
  const second = await following(first.browser.page());
  await first.judge(1, "relevant");
  await second.judge(2, "unsure");
  await first.judge(1, null);
  await Promise.all([first.outbox.drained(), second.outbox.drained()]);
  for (const { store } of [first, second]) assert.deepEqual(labels(store, 2), [null, "unsure"]);
  assert.deepEqual(
    first.server.events.map(([, , image, relevance]) => [image, relevance]),
    [
      [imageAt(1), "relevant"],
      [imageAt(2), "unsure"],
      [imageAt(1), null],
    ],
  );
});

test("active seconds count from the judgment on, and once", async (t) => {
  const { server, browser, store, outbox, judge } = await start(t);
  server.trouble = stuck;
  await judge(1, "relevant");
  await judge(2, "relevant");
  await settle();
  assert.equal(store.progress.active_seconds, 30 + 4);
  server.trouble = null;
  await browser.until(() => !outbox.waiting);
  await settle();
  assert.equal(store.progress.active_seconds, 7);
});

test("withdrawn images, a longer list and a closed query are noticed", async (t) => {
  const { server, store, changes, heard } = await start(t, { size: 20, total: 300 });
  server.judge(1, QUERY, imageAt(1), "not_relevant");
  server.withdrawn = [3];
  server.flagged = [5];
  await changes.poll();
  assert.deepEqual(heard("withdrawn"), [{ ranks: [3] }]);
  assert.deepEqual(
    [store.next(2), store.visible(3), await store.details(3), store.progress.candidates],
    [4, false, null, 19],
  );
  assert.equal(store.entry(5).flagged, true);
  server.withdrawn = [];
  await changes.poll();
  assert.equal(store.next(2), 3);
  server.list.size = 40;
  await changes.poll();
  assert.deepEqual([store.size, heard("list").length, labels(store, 2)], [40, 1, ["not_relevant", null]]);
  server.query = { state: "complete", can_label: false };
  await changes.poll();
  assert.deepEqual(heard("query"), [{ state: "complete", can_label: false }]);
});

test("others are told when they change", async (t) => {
  const { server, changes } = await start(t);
  let told = 0;
  changes.addEventListener("others", () => (told += 1));
  server.others = [{ annotator: "otto", judged: 2, last: "2026-01-01" }];
  await changes.poll();
  await changes.poll();
  assert.deepEqual([told, changes.others[0].annotator], [1, "otto"]);
});

test("more acts than one answer holds end with the last of each image", async (t) => {
  const { server, store, changes, heard } = await start(t);
  for (let act = 0; act < 1200; act += 1)
    server.judge(1, QUERY, imageAt(1 + (act % 2)), act < 1100 ? "unsure" : "relevant");
  server.judge(1, QUERY, imageAt(1), "not_relevant");
  await changes.poll();
  assert.deepEqual(labels(store, 2), ["not_relevant", "relevant"]);
  assert.deepEqual([heard("labels").length, store.cursor], [1, 1201]);
});

test("a page asks every ten seconds, less often unseen or where the server is slow, and at once when it is back", async (t) => {
  const { server, browser, page, changes } = await start(t);
  const asked = () => browser.requests.filter(({ path }) => path.includes("/changes/")).length;
  const during = async (milliseconds) => {
    const before = asked();
    await browser.pass(milliseconds);
    return asked() - before;
  };
  changes.start();
  assert.deepEqual([await during(9999), await during(1)], [0, 1]);
  page.document.visibilityState = "hidden";
  // The pause that is on stays.
  assert.deepEqual([await during(10_000), await during(29_999), await during(1)], [1, 0, 1]);
  page.show("visible");
  await settle();
  server.trouble = () => new Promise((resolve) => setTimeout(resolve, 1000));
  assert.deepEqual([await during(10_000), await during(1000)], [1, 0]);
  server.trouble = null;
  assert.deepEqual([await during(19_999), await during(1)], [0, 1]);
  browser.goOffline();
  await during(10_000);
  assert.equal(changes.failing, true);
  browser.goOnline();
  await settle();
  assert.equal(changes.failing, false);
  changes.stop();
  assert.equal(await during(60_000), 0);
});

test("a page left open takes no changes of who logged in since, and goes on with its own person", async (t) => {
  const { server, store, changes } = await start(t);
  server.judge(1, QUERY, imageAt(1), "unsure");
  server.judge(2, QUERY, imageAt(2), "relevant");
  server.user = 2;
  await changes.poll();
  assert.deepEqual([changes.failing, labels(store, 2)], [true, [null, null]]);
  server.user = 1;
  await changes.poll();
  assert.deepEqual([changes.failing, labels(store, 2)], [false, ["unsure", null]]);
});

test("the page follows: on from a withdrawn image, along with its image in another list, and closed with its query", async (t) => {
  const server = new LabelingServer({ size: 20, total: 300 });
  const studio = await studioOn(new Browser(t, server).page(), [["studio/changes.js", "mountWatch"]]);
  const { changes, notices } = studio;
  await studio.go(3);
  server.withdrawn = [3, 4];
  await changes.poll();
  assert.deepEqual([studio.rank, studio.hint.textContent], [5, "That image was withdrawn and needs no label."]);
  server.list = { ...server.list, id: 2, size: 30 };
  await changes.poll();
  assert.deepEqual([studio.rank, notices.shown.has("list")], [5, true]);
  server.query = { state: "complete", can_label: false };
  await changes.poll();
  assert.match(studio.closed, /completed/);
  assert.equal(studio.judge([{ image: imageAt(5), relevance: "relevant" }]), false);
  server.query = { state: "open", can_label: true };
  await changes.poll();
  assert.deepEqual([studio.closed, notices.shown.has("closed")], ["", false]);
});

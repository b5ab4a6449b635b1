/** The candidate list as the page knows it: labels, progress, order, details and images. */
import assert from "node:assert/strict";
import test from "node:test";
import { Browser, settle } from "./browser.js";
import { imageAt, LabelingServer, labels, QUERY } from "./labeling.js";

async function storeOn(page, [path, name] = ["studio/list-source.js", "ListSource"], given) {
  const { CandidateStore } = await page.load("studio/store.js");
  const store = new CandidateStore(`/api/queries/${QUERY}/`, (await page.load(path))[name], given);
  const heard = [];
  for (const kind of ["labels", "list", "withdrawn", "query", "matching", "order", "image"]) {
    store.addEventListener(kind, ({ detail }) => heard.push([kind, detail]));
  }
  await store.load();
  return Object.assign(store, {
    heard: (wanted) => heard.filter(([kind]) => kind === wanted).map(([, detail]) => detail),
  });
}

function start(t, options) {
  const server = new LabelingServer(options);
  return { server, browser: new Browser(t, server) };
}

test("labels, sources and grades are those of the server, and progress is counted here", async (t) => {
  const { server, browser } = start(t);
  server.judge(1, QUERY, imageAt(1), "relevant", { grade: 3 });
  server.judge(1, QUERY, imageAt(2), "not_relevant");
  server.judge(1, QUERY, imageAt(4), "unsure", { source: "search" });
  server.judge(2, QUERY, imageAt(3), "relevant");
  server.flagged = [5];
  const store = await storeOn(browser.page());
  assert.deepEqual(labels(store, 5), ["relevant", "not_relevant", null, "unsure", null]);
  assert.deepEqual([store.entry(4).source, store.gradeOf(imageAt(1)), store.gradeOf(imageAt(2))], ["search", 3, null]);
  assert.deepEqual(
    [store.entry(5).flagged, store.entry(1).flagged, store.entry(0), store.entry(21)],
    [true, false, null, null],
  );
  const { judged, relevant, unsure, streak, prefix, remaining, candidates, stop } = store.progress;
  assert.deepEqual([judged, relevant, unsure, streak, prefix, remaining, candidates], [3, 1, 1, 1, 2, 17, 20]);
  assert.deepEqual([stop.required, stop.met], [5, false]);
  for (const rank of [3, 5, 6, 7, 8, 9]) store.set(imageAt(rank), "not_relevant");
  assert.deepEqual([store.progress.streak, store.progress.stop.rule], [8, "streak"]);
});

test("a page opened with judgments waiting shows them", async (t) => {
  const { server, browser } = start(t);
  server.judge(1, QUERY, imageAt(4), "relevant");
  server.trouble = ({ path }) => (path.endsWith("/judgments/") ? new Response("{}", { status: 503 }) : null);
  const { Outbox } = await browser.page().load("saving/outbox.js");
  const box = new Outbox({ user: 1, query: QUERY, url: `/api/queries/${QUERY}/judgments/` });
  const judge = (...marks) =>
    box.add(marks.map(([rank, relevance, more]) => ({ image: imageAt(rank), relevance, ...more })));
  await judge([1, "relevant", { grade: 2 }], [2, "not_relevant"], [1, null]);
  await judge([3, "unsure"], [4, "not_relevant"]);
  const store = await storeOn(browser.page());
  assert.deepEqual(labels(store, 5), [null, "not_relevant", "unsure", "not_relevant", null]);
  assert.equal(store.gradeOf(imageAt(1)), null);
  assert.equal(store.progress.judged, 3);
});

test("a judgment that is answered while the list is read shows as it ends", async (t) => {
  const { server, browser } = start(t);
  const stuck = ({ path }) => (path.endsWith("/judgments/") ? new Response("{}", { status: 503 }) : null);
  server.trouble = stuck;
  const { Outbox } = await browser.page().load("saving/outbox.js");
  const box = new Outbox({ user: 1, query: QUERY, url: `/api/queries/${QUERY}/judgments/` });
  await box.add([
    { image: imageAt(1), relevance: "relevant" },
    { image: imageAt(2), relevance: "relevant", expected: null },
  ]);
  await settle();
  server.late = async ({ path }) => {
    if (!path.includes("/outline/")) return;
    server.trouble = null;
    server.judge(1, QUERY, imageAt(2), "unsure");
    await box.drained();
  };
  // The outline had neither label yet; the second one was refused.
  assert.deepEqual(labels(await storeOn(browser.page()), 2), ["relevant", null]);
  assert.deepEqual(
    (await box.refused()).map(({ record }) => record.image),
    [imageAt(2)],
  );
});

test("what waits is of its own person and query only", async (t) => {
  const { server, browser } = start(t);
  server.trouble = ({ path }) => (path.endsWith("/judgments/") ? new Response("{}", { status: 503 }) : null);
  const { Outbox } = await browser.page({ user: 1 }).load("saving/outbox.js");
  for (const query of [QUERY, QUERY + 1]) {
    const box = new Outbox({ user: 1, query, url: `/api/queries/${query}/judgments/` });
    await box.add([{ image: imageAt(query - QUERY + 1), relevance: "relevant" }]);
  }
  assert.deepEqual(labels(await storeOn(browser.page({ user: 1 })), 2), ["relevant", null]);
  server.user = 2;
  assert.deepEqual(labels(await storeOn(browser.page({ user: 2 })), 2), [null, null]);
});

test("a page left open takes no labels of who logged in since", async (t) => {
  const { server, browser } = start(t);
  const store = await storeOn(browser.page());
  server.judge(2, QUERY, imageAt(1), "relevant");
  server.user = 2;
  await assert.rejects(store.load(), /Somebody else/);
  // Also where the server itself would not notice.
  server.trouble = ({ headers }) => void delete headers["X-Annotator"];
  await assert.rejects(store.load(), /Somebody else has logged in/);
  assert.deepEqual(labels(store, 1), [null]);
});

test("a label keeps where its image was met first in the list, and passes from elsewhere into it", async (t) => {
  const { browser } = start(t);
  const store = await storeOn(browser.page());
  const sources = (...steps) => {
    const image = imageAt(1);
    store.set(image, null);
    for (const source of steps) store.set(image, "relevant", source);
    return store.entry(1).source;
  };
  assert.equal(sources("list", "search"), "list");
  assert.equal(sources("search", "list"), "list");
  assert.equal(sources("search", "similar"), "similar");
  assert.equal(sources("learned", "list"), "learned");
  assert.equal(sources("import", "similar"), "import");
  assert.equal(sources("audit", "search"), "audit");
  assert.equal(sources("second", "list"), "second");
  assert.equal(sources("list", "run"), "list");
  assert.equal(sources(), null);
});

test("steps over withdrawn and filtered images, forward and back", async (t) => {
  const { server, browser } = start(t);
  server.withdrawn = [2, 3, 20];
  const store = await storeOn(browser.page());
  store.set(imageAt(4), "unsure");
  assert.deepEqual([store.next(1), store.next(1, { unlabeled: true }), store.next(19)], [4, 5, null]);
  assert.deepEqual([store.previous(4), store.previous(1), store.previous(21)], [1, null, 19]);
  assert.deepEqual([store.nearest(2), store.nearest(3), store.nearest(99)], [1, 4, 19]);
  assert.equal(store.progress.candidates, 17);
  store.setMatching([1, 2, 9, 14]);
  assert.deepEqual(store.visibleRanks(1, 10), [1, 9, 14]);
  assert.deepEqual(store.visibleRanks(1, 2), [1, 9]);
  assert.deepEqual(store.after(9, 10), [14]);
  assert.deepEqual([store.next(1, { unlabeled: true }), store.previous(14), store.nearest(11)], [9, 9, 9]);
  // The stop rule counts the whole list.
  assert.equal(store.progress.candidates, 17);
  store.setMatching(null);
  assert.equal(store.visibleRanks(0, 99).length, 17);
  assert.equal(store.heard("matching").length, 2);
});

test("withdrawing and flagging are told once, for what changed", async (t) => {
  const { browser } = start(t);
  const store = await storeOn(browser.page());
  store.setWithdrawn([3]);
  store.setWithdrawn([3]);
  assert.deepEqual(store.heard("withdrawn"), [{ ranks: [3] }]);
  assert.deepEqual(store.heard("labels"), [{ images: [imageAt(3)] }]);
  store.setWithdrawn([]);
  assert.equal(store.visible(3), true);
  store.setFlagged([4, 5]);
  store.setFlagged([5, 6]);
  assert.deepEqual(store.heard("labels").at(-1), { images: [imageAt(6), imageAt(4)] });
  store.setFlags(imageAt(5), []);
  assert.deepEqual(
    [4, 5, 6].map((rank) => store.entry(rank).flagged),
    [false, false, true],
  );
});

test("a longer list is told, and another one ends the filter", async (t) => {
  const { server, browser } = start(t, { size: 20, total: 300 });
  const store = await storeOn(browser.page());
  store.setMatching([1]);
  server.list.size = 30;
  await store.load();
  assert.deepEqual([store.size, store.heard("list").length, store.matching.size], [30, 1, 1]);
  await store.load();
  assert.equal(store.heard("list").length, 1);
  server.list.id = 2;
  await store.load();
  assert.deepEqual([store.heard("list").length, store.matching], [2, null]);
});

test("details are fetched by pages, once each, and within a filter by ranks ahead", async (t) => {
  const { browser } = start(t, { size: 250 });
  const page = browser.page();
  const asked = () =>
    browser.requests.filter(({ path }) => path.includes("/candidates/")).map(({ path }) => path.split("?")[1]);
  let store = await storeOn(page);
  const candidates = await store.source.details.of([1, 2, 100, 101, 9999, 0]);
  assert.deepEqual(
    candidates.map((candidate) => candidate?.rank ?? null),
    [1, 2, 100, 101, null, null],
  );
  await Promise.all([store.details(3), store.details(150), store.details(120)]);
  assert.deepEqual(asked(), ["start_rank=1&limit=100", "start_rank=101&limit=100"]);
  store.source.details.forget([2]);
  await store.details(2);
  assert.equal(asked().at(-1), "ranks=2");

  store = await storeOn(page);
  store.setMatching([2, 90, 140]);
  await store.details(90);
  assert.equal(asked().at(-1), "ranks=90,140");
  assert.equal(store.peek(140).rank, 140);
});

test("details that could not be fetched are asked for again", async (t) => {
  const { browser } = start(t);
  const store = await storeOn(browser.page());
  browser.goOffline();
  await assert.rejects(store.details(1), /can't be reached/);
  browser.online = true;
  assert.equal((await store.details(1)).image, imageAt(1));
});

test("images are decoded ahead in order, kept up to a number, and let go", async (t) => {
  const { browser } = start(t, { size: 120 });
  const store = await storeOn(browser.page());
  store.caches.image.prefetch([3, 4, 5]);
  await settle();
  assert.deepEqual(
    [3, 4, 5].map((rank) => store.caches.image.now(rank)?.src),
    [3, 4, 5].map((rank) => `/images/${imageAt(rank)}.jpg`),
  );
  assert.equal(store.caches.thumbnail.now(3), null);
  store.caches.image.release([4]);
  assert.deepEqual(
    [3, 4, 5].map((rank) => store.caches.image.now(rank) !== null),
    [false, true, false],
  );
  for (let rank = 1; rank <= 120; rank += 1) await store.caches.image.get(rank);
  assert.equal(store.caches.image.entries.size, 64);
  assert.deepEqual(
    [56, 57].map((rank) => store.caches.image.now(rank) !== null),
    [false, true],
  );
});

test("a picture that failed comes when the connection is back, or after a while, or when it is wanted again", async (t) => {
  const { browser } = start(t);
  const store = await storeOn(browser.page());
  await store.source.details.of([1]);
  browser.goOffline();
  await assert.rejects(store.caches.image.get(1));
  browser.goOnline();
  await settle();
  assert.deepEqual(store.heard("image"), [{ rank: 1, kind: "image" }]);
  for (const [rank, again] of [
    [2, () => browser.pass(5000)],
    [3, () => store.caches.image.prefetch([3])],
  ]) {
    browser.broken.add(`/images/${imageAt(rank)}.jpg`);
    await assert.rejects(store.caches.image.get(rank));
    browser.broken.clear();
    await again();
    await settle();
    assert.deepEqual(store.heard("image").at(-1), { rank, kind: "image" });
    assert.ok(store.caches.image.now(rank));
  }
});

test("files far ahead are fetched one by one, with rests, behind what is decoded", async (t) => {
  const { server, browser } = start(t);
  const store = await storeOn(browser.page());
  const files = () => browser.requests.filter(({ path }) => path.startsWith("/images/")).map(({ path }) => path);
  server.trouble = ({ path }) =>
    path.startsWith("/images/") ? new Promise((resolve) => setTimeout(() => resolve(new Response("")), 100)) : null;
  store.caches.image.fetchAhead([8, 9]);
  await settle();
  assert.deepEqual(files(), [`/images/${imageAt(8)}.jpg`]);
  await browser.pass(100);
  await browser.pass(499);
  assert.equal(files().length, 1);
  await browser.pass(1);
  assert.deepEqual(files().at(-1), `/images/${imageAt(9)}.jpg`);
});

test("in the order that learns, what was met or labeled stays and the queue comes next", async (t) => {
  const { server, browser } = start(t, { size: 8 });
  const revision = (number, ranks) => ({
    id: 10 + number,
    number,
    list: 1,
    last_event: number,
    queue: ranks.map((rank) => ({ rank, learned: rank > 4 })),
  });
  let made = revision(1, [7, 2, 5]);
  server.pages.set(`/api/queries/${QUERY}/revisions/`, () => made);
  server.judge(1, QUERY, imageAt(3), "relevant");
  const store = await storeOn(browser.page(), ["studio/learned-source.js", "LearnedSource"]);
  const { source } = store;
  assert.deepEqual(source.order, [3, 7, 2, 5, 1, 4, 6, 8]);
  assert.deepEqual([store.next(3), source.placeOf(7), store.previous(7), source.placesName], [7, 2, 3, "Places"]);
  assert.deepEqual(source.provenance(7), { source: "learned", revision: 11, place: 1 });
  assert.deepEqual(source.provenance(2), { source: "list", revision: 11, place: 2 });
  assert.deepEqual(source.provenance(1), { source: "list" });
  assert.equal(source.why(7), "shown once you label it");
  source.met.add(7);
  store.set(imageAt(7), "relevant", "learned");
  assert.equal(source.why(7), "learned, revision 1");
  assert.equal(source.why(3), "CLIP rank 3");
  source.take(revision(2, [8, 4]), [2]);
  assert.deepEqual(source.order, [3, 7, 2, 8, 4, 1, 5, 6]);
  assert.equal(store.heard("order").length, 1);
  // What is left out doesn't come up, unless it is labeled already.
  source.take({ ...revision(2, [8, 4]), left_out: [3, 5, 6] }, [2]);
  assert.deepEqual(store.visibleRanks(0, 9, { unlabeled: true }), [2, 8, 4, 1]);
  assert.deepEqual([store.visible(3), store.visible(5)], [true, false]);
  source.take(revision(2, [8, 4]), [2]);
  assert.ok(store.visible(5));
  // An answer that was overtaken, and one for another list.
  source.take(revision(1, [1]), []);
  source.take({ ...revision(3, [1]), list: 2 }, []);
  assert.equal(store.heard("order").length, 3);
  // Without a revision the list stands as it is, behind what is labeled.
  made = null;
  server.pages.delete(`/api/queries/${QUERY}/revisions/`);
  await store.load();
  assert.deepEqual(source.order, [3, 1, 2, 4, 5, 6, 7, 8]);
});

/** A review, or an audit, of these images. */
function reviewing(server, address, results) {
  const found = {
    annotator: 1,
    list: server.list,
    query: server.query,
    cursor: 0,
    results,
    then: {},
    to_judge: results.length,
  };
  server.pages.set(address, () => structuredClone(found));
  return found;
}

const item = (image, votes, more) => ({
  image,
  rank: null,
  score: null,
  relevance: null,
  grade: null,
  source: null,
  flags: [],
  votes,
  ...more,
});

test("a review keeps the places of its images, adds later ones, and counts what is decided", async (t) => {
  const { server, browser } = start(t);
  const vote = (annotator, relevance, decides = false) => ({ annotator, relevance, decides });
  const split = [vote(2, "relevant"), vote(3, "not_relevant")];
  const found = reviewing(server, "/review/", [
    item(11, split, { rank: 4 }),
    item(12, [vote(2, "unsure")]),
    item(13, [...split, vote(4, "relevant", true)]),
    item(14, [vote(2, "relevant"), vote(3, "relevant")]),
  ]);
  const store = await storeOn(browser.page(), ["studio/review-source.js", "ReviewSource"], { address: "/review/" });
  const { source } = store;
  const decided = () => [1, 2, 3, 4].map((rank) => source.isDone(rank));
  assert.deepEqual(decided(), [false, false, true, true]);
  assert.deepEqual(store.progress, { candidates: 4, judged: 2, remaining: 2 });
  assert.deepEqual(
    [source.provenance(1), source.provenance(2), source.where(2)],
    [{ source: "list" }, { source: "search" }, "image 2 of 4"],
  );
  // Votes are shown after one's own, which counts at once and decides.
  assert.equal(source.votesShown(1), false);
  store.set(11, "not_relevant");
  assert.deepEqual([source.votesShown(1), source.isDone(1), store.needsLabel(1)], [true, true, false]);
  assert.deepEqual(source.votes(1).at(-1), { annotator: 1, relevance: "not_relevant", decides: true });
  store.set(12, "unsure");
  assert.deepEqual([source.isDone(2), store.needsLabel(2)], [false, false]);
  found.results = [item(15, split), ...found.results.slice(1)];
  await store.load();
  assert.deepEqual(store.images, [11, 12, 13, 14, 15]);
  assert.equal(store.progress.candidates, 5);
});

test("an audit draws while it is told to, until its aim is met", async (t) => {
  const { server, browser } = start(t);
  const found = reviewing(server, "/audit/", [item(11, [], { to_judge: true })]);
  found.then = { more_without_hit: 9, met: false };
  server.pages.set("/audit/draws/", (_url, { body }) => {
    found.drawn = body.count;
    found.results = [11, 12].map((image) => item(image, [], { to_judge: true }));
    return structuredClone(found);
  });
  const store = await storeOn(browser.page(), ["studio/audit-source.js", "AuditSource"], {
    address: "/audit/",
    judged_as: "audit",
  });
  const { source } = store;
  assert.deepEqual(
    [store.size, found.drawn, source.provenance(1), store.needsLabel(1)],
    [1, undefined, { source: "audit" }, true],
  );
  source.drawing = true;
  source.ahead = () => 4;
  await store.load();
  assert.deepEqual([store.size, found.drawn], [2, 4]);
  store.set(11, "relevant", "audit");
  assert.deepEqual([source.relevant, store.needsLabel(1)], [1, false]);
  found.then.met = true;
  await store.load();
  assert.equal(source.drawing, false);
});

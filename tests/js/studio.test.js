/** Judging, undoing and going from place to place on the labeling page, without its views. */
import assert from "node:assert/strict";
import test from "node:test";
import { Browser, settle } from "./browser.js";
import { imageAt, LabelingServer, labels, QUERY, studioOn } from "./labeling.js";

async function start(t, { search, ...options } = {}) {
  const server = new LabelingServer(options);
  const browser = new Browser(t, server);
  const page = browser.page({ search });
  return { server, browser, page, studio: await studioOn(page) };
}

/** Judges what is on the screen, one by one. */
async function judge(studio, ...relevances) {
  for (const relevance of relevances) {
    assert.ok(studio.judge([{ image: studio.store.entry(studio.rank).image, relevance }]));
    await studio.toNextUnlabeled(studio.rank);
  }
  await settle();
}

const acts = (server) => server.events.map(([, , image, relevance]) => [image - imageAt(0), relevance]);
const said = (studio) => studio.hint.textContent;

test("a whole session is undone and done again over a reload, and arrives so", async (t) => {
  const { server, page, studio } = await start(t);
  await judge(studio, "relevant", "not_relevant", "unsure", "not_relevant");
  const again = await studioOn(page.reload());
  assert.equal(again.rank, 5);
  for (const left of [3, 2, 1, 0]) {
    await again.undo();
    assert.deepEqual([again.store.progress.judged, again.rank], [left, left + 1]);
  }
  assert.equal(again.undoStack.canUndo, false);
  await again.undo();
  assert.equal(again.live.textContent, "There is nothing to undo.");
  await again.redo();
  await again.redo();
  await again.outbox.drained();
  assert.deepEqual(acts(server), [
    [1, "relevant"],
    [2, "not_relevant"],
    [3, "unsure"],
    [4, "not_relevant"],
    [4, null],
    [3, null],
    [2, null],
    [1, null],
    [1, "relevant"],
    [2, "not_relevant"],
  ]);
});

test("undo without a connection waits in order too", async (t) => {
  const { server, browser, studio } = await start(t);
  await judge(studio, "relevant");
  await studio.outbox.drained();
  browser.goOffline();
  await judge(studio, "not_relevant", "not_relevant");
  for (let step = 0; step < 3; step += 1) await studio.undo();
  await studio.redo();
  await settle();
  assert.equal(studio.outbox.waiting, 6);
  browser.goOnline();
  await studio.outbox.drained();
  assert.deepEqual(labels(studio.store, 3), ["relevant", null, null]);
  assert.deepEqual(acts(server), [
    [1, "relevant"],
    [2, "not_relevant"],
    [3, "not_relevant"],
    [3, null],
    [2, null],
    [1, null],
    [1, "relevant"],
  ]);
});

test("a label changed elsewhere since is neither undone nor done again", async (t) => {
  const { server, browser, studio } = await start(t);
  await judge(studio, "relevant");
  const tab = await studioOn(browser.page());
  tab.judge([{ image: imageAt(1), relevance: "unsure" }]);
  await tab.outbox.drained();
  await settle();
  await studio.undo();
  assert.equal(said(studio), "Left as it is, since it was changed elsewhere: rank 1");
  await studio.redo();
  assert.match(said(studio), /changed elsewhere/);
  await studio.outbox.drained();
  assert.deepEqual(acts(server), [
    [1, "relevant"],
    [1, "unsure"],
  ]);
  // Undo takes back one's own tab's step, though the other's came later.
  await studio.toNextUnlabeled();
  await judge(studio, "not_relevant");
  tab.judge([{ image: imageAt(5), relevance: "relevant" }]);
  await settle();
  await studio.undo();
  await studio.outbox.drained();
  assert.deepEqual(acts(server).slice(2), [
    [2, "not_relevant"],
    [5, "relevant"],
    [2, null],
  ]);
});

test("of a page of images, undo takes back what still stands", async (t) => {
  const { server, studio } = await start(t);
  studio.judge([1, 2, 3].map((rank) => ({ image: imageAt(rank), relevance: "not_relevant" })));
  studio.store.set(imageAt(2), "relevant");
  await studio.undo();
  assert.equal(said(studio), "Undone: 2 of 3 images");
  assert.deepEqual(labels(studio.store, 3), [null, "relevant", null]);
  await studio.outbox.drained();
  assert.deepEqual(acts(server).slice(3), [
    [1, null],
    [3, null],
  ]);
});

test("undo gives back the label before, with its grade and reason, and where it was given", async (t) => {
  const { server, page, studio } = await start(t);
  const mark = (relevance, grade, reason = "", source = "list") =>
    studio.judge([{ image: imageAt(1), relevance, grade, reason, source }]);
  mark("relevant", 2, "Not in straw", "search");
  mark("not_relevant", 0);
  await studio.undo();
  assert.deepEqual(
    [studio.store.entry(1).relevance, studio.store.gradeOf(imageAt(1)), studio.store.reasonOf(imageAt(1))],
    ["relevant", 2, "Not in straw"],
  );
  await studio.outbox.drained();
  const again = await studioOn(page.reload());
  await again.redo();
  await again.undo();
  await again.outbox.drained();
  assert.deepEqual(
    server.acts.map(({ relevance, grade, reason, source }) => [relevance, grade, reason, source]),
    [
      ["relevant", 2, "Not in straw", "search"],
      ["not_relevant", 0, "", "list"],
      ["relevant", 2, "Not in straw", "search"],
      ["not_relevant", 0, "", "list"],
      ["relevant", 2, "Not in straw", "search"],
    ],
  );
});

test("what changes nothing is not judged; the same label in the list's order is, after one from elsewhere", async (t) => {
  const { server, studio } = await start(t);
  const mark = (relevance, source) => studio.judge([{ image: imageAt(1), relevance, source }]);
  assert.equal(mark("relevant", "similar"), true);
  mark("relevant", "search");
  mark("relevant", "list");
  mark("relevant", "list");
  await studio.outbox.drained();
  assert.deepEqual(
    server.acts.map(({ source }) => source),
    ["similar", "list"],
  );
});

test("a judgment says what its page saw before", async (t) => {
  const { browser, studio } = await start(t);
  studio.judge([{ image: imageAt(1), relevance: "relevant" }]);
  studio.judge([{ image: imageAt(1), relevance: "unsure" }]);
  studio.judge([{ image: 999, relevance: "unsure", from: "relevant", source: "search" }]);
  await studio.outbox.drained();
  const sent = browser.requests.filter(({ method }) => method === "POST").flatMap(({ body }) => body);
  assert.deepEqual(
    sent.map(({ expected }) => expected),
    [null, "relevant", "relevant"],
  );
});

test("active time goes to the image on which it was spent, and over a page in equal shares", async (t) => {
  const { browser, page, studio } = await start(t);
  const spend = async (seconds) => {
    await browser.pass(seconds * 1000);
    page.window.dispatchEvent(new Event("keydown"));
  };
  await spend(4);
  await studio.go(2);
  await spend(3);
  await studio.go(1);
  await spend(2);
  studio.judge([{ image: imageAt(1), relevance: "relevant" }]);
  await spend(5);
  studio.judge([3, 4].map((rank) => ({ image: imageAt(rank), relevance: "unsure" })));
  await studio.outbox.drained();
  const sent = browser.requests.filter(({ method }) => method === "POST").flatMap(({ body }) => body);
  assert.deepEqual(
    sent.map(({ image, seconds }) => [image - imageAt(0), seconds]),
    [
      [1, 6],
      [3, 2.5],
      [4, 2.5],
    ],
  );
});

test("nothing is judged on a closed query or under a dialog", async (t) => {
  const { server, page, studio } = await start(t);
  studio.closed = "It was handed in.";
  assert.equal(studio.judge([{ image: imageAt(1), relevance: "relevant" }]), false);
  await studio.undo();
  assert.equal(said(studio), "Not labeled: It was handed in.");
  studio.closed = "";
  const { querySelector } = page.document;
  page.document.querySelector = (selector) => (selector === "dialog[open]" ? {} : querySelector(selector));
  assert.equal(studio.judge([{ image: imageAt(1), relevance: "relevant" }]), false);
  assert.equal(studio.judge([{ image: imageAt(1), relevance: "relevant" }], { fromDialog: true }), true);
  await studio.outbox.drained();
  assert.equal(server.events.length, 1);
});

test("the page begins at the address's rank, or near it, or at the first image without a label", async (t) => {
  const { server, browser, page, studio } = await start(t, { search: "?rank=7" });
  assert.equal(studio.rank, 7);
  const at = async (search) => (await studioOn(browser.page({ search }))).rank;
  server.withdrawn = [9];
  server.judge(1, QUERY, imageAt(1), "relevant");
  assert.deepEqual([await at("?rank=9"), await at("?rank=99"), await at("?rank=x"), await at("")], [8, 20, 2, 2]);
  await studio.go(11);
  assert.equal(page.window.location.search, "?rank=11");
  await studio.go(21);
  assert.deepEqual([studio.state, page.window.location.search], ["end", ""]);
});

test("the address names the grid's first image, and back in the single view its own", async (t) => {
  const { page, studio } = await start(t);
  const view = { enter() {}, leave() {}, show() {}, hide() {} };
  studio.views = { single: view, grid: { ...view, ranks: [3, 4, 5] } };
  await studio.go(4);
  studio.setView("grid");
  assert.equal(page.window.location.search, "?rank=3");
  studio.setView("single");
  assert.equal(page.window.location.search, "?rank=4");
});

test("the address is written less often than browsers allow, and ends right", async (t) => {
  const { browser, page, studio } = await start(t);
  let written = 0;
  const { replaceState } = page.window.history;
  page.window.history.replaceState = (...given) => {
    written += 1;
    replaceState(...given);
  };
  for (let step = 0; step < 100; step += 1) await studio.go(1 + (step % 20));
  await studio.go(13);
  assert.ok(written < 100);
  await browser.pass(30_000);
  assert.equal(page.window.location.search, "?rank=13");
});

test("a list that is being made is asked for until it is there", async (t) => {
  const server = new LabelingServer();
  const browser = new Browser(t, server);
  server.list.state = "building";
  const studio = await studioOn(browser.page());
  assert.equal(studio.state, "building");
  await browser.pass(1000);
  server.list.state = "ready";
  await browser.pass(1000);
  assert.deepEqual([studio.state, studio.rank], ["ready", 1]);
});

test("preferences are sent once they rest, and when the page is left", async (t) => {
  const { browser, page, studio } = await start(t);
  const sent = () => browser.requests.filter(({ path }) => path.includes("preferences")).map(({ body }) => body.view);
  studio.preferences.set("grid_size", 20);
  await browser.pass(500);
  studio.preferences.set("grid_size", 30);
  assert.deepEqual(sent(), []);
  await browser.pass(600);
  assert.deepEqual(sent(), [{ grid_size: 30 }]);
  studio.preferences.set("grid_whole", true);
  page.close();
  await settle();
  assert.deepEqual(sent().at(-1), { grid_size: 30, grid_whole: true });
});

test("a page that is loaded again has the preferences of before, also where the server had them too late", async (t) => {
  const { browser, page, studio } = await start(t);
  studio.preferences.set("grid_size", 20);
  const again = page.reload();
  assert.equal((await studioOn(again)).preferences.get("grid_size"), 20);
  await browser.pass(10_000);
  assert.equal((await studioOn(again.reload())).preferences.get("grid_size"), null);
});

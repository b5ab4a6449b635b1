/** What a page tells of judgments that wait or were refused. */
import assert from "node:assert/strict";
import test from "node:test";
import { Browser, FakeElement, json, settle } from "./browser.js";
import { imageAt, LabelingServer, QUERY, studioOn } from "./labeling.js";

const SAVED = ["studio/messages.js", "mountSaved"];
const REFUSED = ["studio/refused.js", "mountRefused"];

async function start(t) {
  const server = new LabelingServer();
  const browser = new Browser(t, server);
  const page = browser.page();
  const studio = await studioOn(page, [SAVED, REFUSED]);
  const shown = () => studio.root.querySelector("[data-saved]").querySelector("[data-saved-text]").textContent;
  const notice = (name) => studio.notices.shown.get(name)?.element ?? null;
  const judge = (rank, relevance) => studio.judge([{ image: imageAt(rank), relevance }]);
  return { server, browser, page, studio, shown, notice, judge };
}

const down =
  (status, detail) =>
  ({ path }) =>
    path.endsWith("/judgments/") ? json({ detail }, status) : null;

test("a labeling page says how many wait, why, and that nothing is lost", async (t) => {
  const { server, browser, studio, shown, notice, judge } = await start(t);
  assert.equal(shown(), "All saved");
  judge(1, "relevant");
  assert.equal(shown(), "1 waiting, 0 saved");
  await studio.outbox.drained();
  assert.equal(shown(), "All saved · 1");
  for (const [trouble, words, what, action] of [
    [
      down(507, "The server's disk is full."),
      "Disk full · 1 waiting, 1 saved",
      /disk is full.*when there is room/,
      "Try now",
    ],
    [down(401, ""), "Logged out · 1 waiting, 1 saved", /logged out.*logged in again/, "Log in"],
    [down(409, ""), "Other user · 1 waiting, 1 saved", /Somebody else.*when you log in/, "Log in"],
    [down(500, "Out of order."), "No answer · 1 waiting, 1 saved", /Out of order.*as soon as/, "Try now"],
  ]) {
    server.trouble = trouble;
    if (!studio.outbox.waiting) judge(2, "relevant");
    studio.outbox.retryNow();
    await settle();
    assert.equal(shown(), words);
    assert.match(notice("outbox").textContent, what);
    assert.match(notice("outbox").textContent, /1 judgment is stored in this browser/);
    assert.equal(notice("outbox").withText(action).length, 1);
  }
  server.trouble = null;
  notice("outbox").withText("Try now")[0].click();
  await browser.until(() => !studio.outbox.waiting);
  await settle();
  assert.deepEqual(
    [shown(), notice("outbox"), studio.live.textContent],
    ["All saved · 2", null, "The connection is back."],
  );
});

test("a page is held open only where what waits would be lost with it", async (t) => {
  const { browser, page, notice, judge } = await start(t);
  const held = () => {
    const event = new Event("beforeunload", { cancelable: true });
    page.window.dispatchEvent(event);
    return event.defaultPrevented;
  };
  browser.goOffline();
  judge(1, "relevant");
  await settle();
  assert.deepEqual([held(), notice("not-durable")], [false, null]);
  const { database } = await page.load("saving/database.js");
  t.mock.method(database, "run", async (names) => {
    if (names.includes("queue")) throw new DOMException("", "QuotaExceededError");
  });
  judge(2, "relevant");
  await settle();
  assert.equal(held(), true);
  assert.match(notice("not-durable").textContent, /can't store judgments/);
});

test("a label that would overwrite another is kept until it is decided, over a reload", async (t) => {
  const { server, page, studio, judge } = await start(t);
  server.trouble = down(503, "");
  for (const rank of [1, 2]) {
    judge(rank, "relevant");
    server.judge(1, QUERY, imageAt(rank), "not_relevant");
  }
  await settle();
  server.trouble = null;
  await studio.outbox.drained();
  await settle();
  assert.equal(studio.store.progress.relevant, 0);

  const again = await studioOn(page.reload(), [REFUSED]);
  const told = () => again.notices.shown.get("refused")?.element;
  assert.match(told().textContent, /2 judgments were not stored/);
  told().withText("Show them")[0].click();
  const dialog = again.root.querySelector("[data-refused]");
  assert.match(dialog.querySelector("[data-refused-list]").textContent, /Stored label: not relevant\..*Use mine/);
  const choose = async (text) => {
    dialog.querySelector("[data-refused-list]").withText(text)[0].click();
    await settle();
  };
  await choose("Use mine");
  assert.match(told().textContent, /“Relevant” at rank 2 was not stored: It has another label\./);
  await choose("Keep the stored label");
  assert.deepEqual([told(), dialog.open], [undefined, false]);
  await again.outbox.drained();
  assert.deepEqual(
    server.events.map(([, , image, relevance]) => [image, relevance]),
    [
      [imageAt(1), "not_relevant"],
      [imageAt(2), "not_relevant"],
      [imageAt(1), "relevant"],
    ],
  );
  assert.deepEqual(await again.outbox.refused(), []);
});

test("every page tells what was refused after its own was closed, until it is dismissed", async (t) => {
  const { server, browser, page, judge } = await start(t);
  server.trouble = down(503, "");
  judge(1, "not_relevant");
  judge(2, "not_relevant");
  await settle();
  page.crash();
  server.trouble = null;
  server.state.set(QUERY, "closed");
  server.pages.set(`/api/queries/${QUERY}/`, () => ({ text: "a swan" }));
  const main = new FakeElement();
  const other = browser.page();
  other.document.getElementById = (name) => (name === "main" ? main : null);
  await other.load("saving/leftovers.js");
  await browser.until(() => main.children[0]?.hidden === false);
  assert.match(main.textContent, /2 judgments of yours for “a swan” were not stored: The query is complete\./);
  main.withText("Dismiss").at(-1).click();
  await settle();
  assert.equal(main.children[0].hidden, true);
  assert.deepEqual(server.events, []);
});

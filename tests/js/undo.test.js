/** The steps of a query done and undone: across reloads and crashes, each tab its own. */
import assert from "node:assert/strict";
import test from "node:test";
import { Browser, JudgingServer, settle } from "./browser.js";

const QUERY = 7;

/** The undo stack of a query on a page; a step is a number. */
async function stackOn(page, query = QUERY) {
  const { UndoStack } = await page.load("saving/undo.js");
  const stack = new UndoStack({ user: page.user, query });
  await settle();
  const move = async (way, times) => {
    const moved = [];
    for (let time = 0; time < times; time += 1) moved.push((await stack[way]())?.marks[0].image ?? null);
    await stack.writing;
    return moved;
  };
  return {
    page,
    stack,
    push: async (...numbers) => {
      const steps = numbers.map((image) => ({ marks: [{ image, from: null, to: "relevant", source: "list" }] }));
      await Promise.all(steps.map((step) => stack.push(step)));
    },
    undo: (times = 1) => move("undo", times),
    redo: (times = 1) => move("redo", times),
    can: () => [stack.canUndo, stack.canRedo],
  };
}

const start = (t) => new Browser(t, new JudgingServer());
const reloaded = async ({ page }) => stackOn(page.reload());

test("steps are taken back and done again across reloads", async (t) => {
  let stack = await stackOn(start(t).page());
  assert.deepEqual(stack.can(), [false, false]);
  await stack.push(1, 2, 3, 4);
  assert.deepEqual(await stack.undo(2), [4, 3]);
  stack = await reloaded(stack);
  assert.deepEqual(stack.can(), [true, true]);
  assert.deepEqual(await stack.redo(), [3]);
  stack = await reloaded(stack);
  assert.deepEqual(await stack.undo(2), [3, 2]);
  await stack.push(5);
  assert.deepEqual(stack.can(), [true, false]);
  stack = await reloaded(stack);
  assert.deepEqual(stack.can(), [true, false]);
  assert.deepEqual(await stack.undo(4), [5, 1, null, null]);
  assert.deepEqual(await stack.redo(4), [1, 5, null, null]);
  // Another query has steps of its own, and so has another person.
  assert.deepEqual((await stackOn(stack.page, QUERY + 1)).can(), [false, false]);
  assert.deepEqual((await stackOn(stack.page.browser.page({ user: 2 }))).can(), [false, false]);
});

test("what changes can be followed", async (t) => {
  const { stack, push, undo } = await stackOn(start(t).page());
  const heard = [];
  stack.addEventListener("change", () => heard.push([stack.canUndo, stack.canRedo]));
  await push(1);
  await undo();
  assert.deepEqual(heard, [
    [true, false],
    [false, true],
  ]);
});

test("the oldest steps go beyond two thousand", async (t) => {
  const stack = await stackOn(start(t).page());
  await stack.push(...Array.from({ length: 2050 }, (_, number) => number));
  const next = await stackOn(stack.page.reload());
  await next.stack.ready;
  assert.deepEqual(await next.undo(2001), [...Array.from({ length: 2000 }, (_, number) => 2049 - number), null]);
});

test("each tab has its own steps, and a crashed one leaves them to the page opened next", async (t) => {
  const browser = start(t);
  let first = await stackOn(browser.page());
  const second = await stackOn(browser.page());
  await first.push(1, 2);
  assert.deepEqual(second.can(), [false, false]);
  await second.push(3);
  await first.push(4);
  assert.deepEqual(await second.undo(2), [3, null]);
  assert.deepEqual(await first.undo(), [4]);
  first = await reloaded(first);
  assert.deepEqual(await first.undo(), [2]);
  second.page.close();
  await first.redo(2);
  await first.push(5);
  first.page.crash();
  assert.deepEqual(await (await stackOn(browser.page())).undo(4), [5, 4, 2, 1]);
});

test("a duplicated tab begins with steps of its own", async (t) => {
  const browser = start(t);
  const page = browser.page();
  await (await stackOn(page)).push(1);
  const twin = browser.page({ session: new Map(page.session) });
  const opening = stackOn(twin);
  // The page before a reload may take a second to end; this one never does.
  await browser.pass(1000);
  assert.deepEqual((await opening).can(), [false, false]);
  assert.notEqual(twin.session.get(`undo of 1 on ${QUERY}`), page.session.get(`undo of 1 on ${QUERY}`));
});

test("the steps of a page that was closed long ago are thrown away", async (t) => {
  const browser = start(t);
  const old = await stackOn(browser.page());
  await old.push(1);
  const newer = await stackOn(browser.page());
  await newer.push(2);
  for (const { page } of [old, newer]) page.close();
  await browser.pass(31 * 24 * 3600 * 1000);
  const latest = await stackOn(browser.page());
  await latest.push(3);
  const { database } = await browser.page().load("saving/database.js");
  const left = await database.run(["undo"], "readonly", ({ undo }) => undo.all("place", [1, QUERY]));
  assert.deepEqual(
    left.map(({ marks }) => marks[0].image),
    [2, 3],
  );
  assert.deepEqual(await latest.undo(3), [3, 2, null]);
});

test("a browser without a database undoes until the page is left", async (t) => {
  const browser = start(t);
  const broken = () => {
    throw new Error("no");
  };
  const page = browser.page();
  page.window.indexedDB = { open: broken };
  const stack = await stackOn(page);
  await stack.push(1, 2);
  assert.deepEqual(await stack.undo(), [2]);
  assert.deepEqual(await stack.redo(), [2]);
  const next = page.reload();
  next.window.indexedDB = { open: broken };
  assert.deepEqual((await stackOn(next)).can(), [false, false]);
});

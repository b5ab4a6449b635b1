/** The images' page: which rows are drawn, where keys go, what is selected, and what is asked of the server. */
import assert from "node:assert/strict";
import test from "node:test";
import { Browser, JudgingServer } from "./browser.js";

const load = (t, path) => new Browser(t, new JudgingServer()).page().load(`browsing/${path}`);

test("only the rows in sight and a margin are drawn", async (t) => {
  const { layout, inSight, room } = await load(t, "rows.js");
  const laid = layout({ width: 1000, size: 160, caption: 22 });
  assert.equal(laid.columns, 6);
  assert.equal(Math.round(laid.tile * 6 + 30), 1000);
  assert.equal(layout({ width: 50, size: 160, caption: 0 }).columns, 1);
  const ten = { columns: 10, row: 100 };
  const cases = [
    // positions, top, height: first, last
    [100_000, 0, 800, 0, 110],
    [100_000, 50_000, 800, 4970, 5110],
    [100_000, 999_200, 800, 99_890, 100_000],
    [100_000, 5_000_000, 800, 99_990, 100_000],
    [7, 0, 800, 0, 7],
    [0, 0, 800, 0, 0],
    [95, -400, 300, 0, 30],
  ];
  for (const [length, top, height, first, last] of cases) {
    const seen = inSight(ten, length, top, height);
    assert.deepEqual([seen.first, seen.last], [first, last], `${length} at ${top}`);
    assert.equal(seen.height, Math.ceil(length / 10) * 100);
    assert.equal(seen.offset, (seen.first / 10) * 100);
  }
  assert.deepEqual([room(ten, 100_000), room({ columns: 1, row: 400 }, 100_000)], [100_000, 37_500]);
});

test("keys go by tiles, rows and windows, and stay inside", async (t) => {
  const { positionAfter } = await load(t, "rows.js");
  const cases = [
    ["ArrowRight", 5, 6],
    ["ArrowLeft", 0, 0],
    ["ArrowDown", 5, 15],
    ["ArrowUp", 5, 0],
    ["PageDown", 5, 35],
    ["ArrowDown", 95, 99],
    ["Home", 50, 0],
    ["End", 5, 99],
    ["x", 5, null],
  ];
  for (const [key, from, to] of cases) assert.equal(positionAfter(key, from, 10, 4, 100), to, key);
});

test("images are selected one by one, in ranges and many at once", async (t) => {
  const { Selection, rangeOf } = await load(t, "selection.js");
  const selection = new Selection();
  let changes = 0;
  selection.addEventListener("change", () => (changes += 1));
  selection.toggle(7, 2);
  assert.deepEqual(
    [rangeOf(selection.anchor, 5), rangeOf(selection.anchor, 0), rangeOf(null, 4)],
    [
      [2, 5],
      [0, 2],
      [4, 4],
    ],
  );
  selection.add([8, 9, 7]);
  selection.toggle(8, 3);
  assert.deepEqual([[...selection.ids], selection.anchor, selection.has(9)], [[7, 9], 3, true]);
  selection.remove([7]);
  selection.clear();
  assert.deepEqual([selection.size, selection.anchor, changes], [0, null, 5]);
});

test("a custom field has a part of the parameter that all share", async (t) => {
  const page = new Browser(t, new JudgingServer()).page();
  const { setValues, valuesOf } = await page.load("browsing/filters.js");
  const habitat = { parameter: "field", label: "habitat" };
  const chosen = new URLSearchParams("?text=a+bear&field=depth:1..2&field=habitat:forest&license=");
  assert.deepEqual(valuesOf(chosen, habitat), ["forest"]);
  setValues(chosen, habitat, ["a:b", ""]);
  setValues(chosen, { parameter: "license", label: "License" }, []);
  assert.deepEqual(valuesOf(chosen, habitat), ["a:b", ""]);
  assert.equal(chosen.toString(), "text=a+bear&field=depth%3A1..2&field=habitat%3Aa%3Ab&field=habitat%3A");
});

test("the number of positions grows with what is known", async (t) => {
  const page = new Browser(t, new JudgingServer()).page();
  const { Matches } = await page.load("browsing/matches.js");
  const answer = (more, total = null) => ({
    ids: [3, 4],
    scores: [0.5, 0.25],
    more,
    ranked: total && { total },
    tiles: [{ id: 3 }],
  });
  const of = (...first) => new Matches(new URLSearchParams(), answer(...first), 100_000);
  const open = of(true);
  assert.deepEqual([open.idAt(1), open.scoreAt(1), open.tile(3).id, open.length], [4, 0.25, 3, 502]);
  open.total = 5_000_000;
  assert.equal(open.length, 100_000);
  assert.deepEqual([of(false, 1_000).length, of(true, 1_000).length], [2, 1_000]);
  assert.deepEqual(await open.ids(0, 1), [3, 4]);
});

/** The arithmetic of the grid: marks, sizes, layout, strokes and arrow keys. */
import assert from "node:assert/strict";
import test from "node:test";
import { Browser, JudgingServer } from "./browser.js";

const load = (t, path) => new Browser(t, new JudgingServer()).page().load(path);
const entry = (image, relevance = null) => ({ rank: image, image, relevance });

test("marks are drafts until they are what stands", async (t) => {
  const page = new Browser(t, new JudgingServer()).page();
  const { Marks } = await page.load("studio/grid-marks.js");
  const marks = new Marks("grid");
  const [plain, negative] = [entry(1), entry(2, "not_relevant")];
  assert.deepEqual(
    [marks.shown(plain), marks.outcome(plain), marks.shown(negative)],
    [null, "not_relevant", "not_relevant"],
  );
  marks.set(plain, marks.toggled(plain, "relevant"));
  marks.set(negative, "relevant");
  assert.deepEqual([marks.images, marks.isDraft(plain)], [[1, 2], true]);
  assert.equal(marks.toggled(plain, "relevant"), null);
  assert.equal(marks.toggled(plain, "unsure"), "unsure");
  assert.equal(marks.toggled(negative, "relevant"), "not_relevant");
  // A reload of the tab keeps them.
  const again = new (await page.reload().load("studio/grid-marks.js")).Marks("grid");
  assert.deepEqual(again.images, [1, 2]);
  again.set(negative, "not_relevant");
  assert.deepEqual(again.images, [1]);
  again.settle([entry(1, "unsure")]);
  assert.equal(again.size, 1);
  again.settle([entry(1, "relevant")]);
  assert.equal(again.size, 0);
});

test("submitting judges what becomes another than it is", async (t) => {
  const { Marks } = await load(t, "studio/grid-marks.js");
  const marks = new Marks("grid");
  const entries = [entry(1), entry(2), entry(3, "not_relevant"), entry(4, "relevant"), entry(5, "unsure")];
  marks.set(entries[1], "relevant");
  marks.set(entries[2], "unsure");
  marks.set(entries[4], "relevant");
  assert.deepEqual(marks.judgments(entries), [
    { image: 1, relevance: "not_relevant" },
    { image: 2, relevance: "relevant" },
    { image: 3, relevance: "unsure" },
    { image: 5, relevance: "relevant" },
  ]);
});

test("the number of tiles stays within bounds and steps by full rows", async (t) => {
  const { allowedSize, steppedSize } = await load(t, "studio/grid-tiles.js");
  assert.deepEqual([5, 12, 33.4, 99, NaN, undefined].map(allowedSize), [12, 12, 33, 60, 30, 30]);
  assert.deepEqual(
    [12, 13, 30, 60].map((size) => steppedSize(size, 1)),
    [15, 15, 35, 60],
  );
  assert.deepEqual(
    [12, 13, 30, 60].map((size) => steppedSize(size, -1)),
    [12, 12, 28, 54],
  );
});

const GRID = { columns: 4, rows: 3, width: 400, height: 300, count: 10 };

test("a fast stroke passes over no tile between two points", async (t) => {
  const { tilesUnder } = await load(t, "studio/grid-tiles.js");
  const under = (from, to) => tilesUnder({ x: from[0], y: from[1] }, { x: to[0], y: to[1] }, GRID);
  assert.deepEqual(under([50, 50], [350, 50]), [0, 1, 2, 3]);
  assert.deepEqual(under([350, 50], [50, 50]), [3, 2, 1, 0]);
  assert.deepEqual(under([50, 50], [50, 250]), [0, 4, 8]);
  assert.deepEqual(under([150, 150], [150, 150]), [5]);
  // Where no tile is.
  assert.deepEqual(under([250, 250], [350, 250]), []);
  assert.deepEqual(under([-50, -50], [500, -50]), []);
});

test("arrow keys stay on the page", async (t) => {
  const { neighbor } = await load(t, "studio/grid-tiles.js");
  const to = (index) => ["left", "right", "up", "down"].map((way) => neighbor(index, way, GRID));
  assert.deepEqual(to(0), [0, 1, 0, 4]);
  assert.deepEqual(to(5), [4, 6, 1, 9]);
  assert.deepEqual(to(9), [8, 9, 5, 9]);
  assert.deepEqual(to(7), [6, 8, 3, 7]);
});

test("tiles fill the box with most of their images, and few cells stay empty", async (t) => {
  const { bestLayout } = await load(t, "studio/grid-tiles.js");
  assert.deepEqual(bestLayout({ width: 1200, height: 800, count: 24 }), { columns: 6, rows: 4 });
  assert.deepEqual(bestLayout({ width: 800, height: 1200, count: 24 }), { columns: 4, rows: 6 });
  assert.deepEqual(bestLayout({ width: 360, height: 600, count: 12 }), { columns: 3, rows: 4 });
  for (const count of [12, 13, 30, 47, 60]) {
    for (const whole of [false, true]) {
      const { columns, rows } = bestLayout({ width: 1000, height: 700, count, whole });
      assert.ok(columns * rows >= count && columns * (rows - 1) < count, `${count} in ${columns} × ${rows}`);
    }
  }
});

/** A list of so many ranks, some withdrawn and some labeled, as the grid's pages see it. */
function listOf(size, { withdrawn = [], labeled = [] } = {}) {
  const visible = (rank) => rank >= 1 && rank <= size && !withdrawn.includes(rank);
  const behind = (rank, unlabeled) =>
    Array.from({ length: size }, (_, place) => place + 1).filter(
      (one) => one > rank && visible(one) && !(unlabeled && labeled.includes(one)),
    );
  return {
    size,
    next: (rank, { unlabeled = false } = {}) => behind(rank, unlabeled)[0] ?? null,
    previous: (rank) => Array.from({ length: rank - 1 }, (_, place) => rank - 1 - place).find(visible) ?? null,
    visibleRanks: (from, count) => behind(from - 1, false).slice(0, count),
  };
}

test("a submitted page is followed by what is left of it, then by what comes from the next unlabeled on", async (t) => {
  const { following, lastPage, pageBefore } = await load(t, "studio/grid.js");
  const list = listOf(20, { withdrawn: [7], labeled: [1, 2, 3, 4, 5, 6] });
  assert.deepEqual(following(list, [1, 2, 3, 4], [], 4), [8, 9, 10, 11]);
  assert.deepEqual(following(list, [1, 2, 3, 4], [2, 3], 4), [2, 3, 8, 9]);
  // At the list's end, from the first gap on; nothing where all is labeled.
  assert.deepEqual(following(list, [17, 18, 19, 20], [], 4), [8, 9, 10, 11]);
  assert.deepEqual(following(list, [17, 18, 19, 20], [19], 4), [19]);
  const done = listOf(4, { labeled: [1, 2, 3, 4] });
  assert.deepEqual(following(done, [1, 2, 3, 4], [], 4), []);
  assert.deepEqual(pageBefore(list, 9, 4), [4, 5, 6, 8]);
  assert.deepEqual(pageBefore(list, 3, 4), [1, 2, 3, 4]);
  assert.deepEqual(pageBefore(list, 1, 4), []);
  assert.deepEqual(lastPage(list, 4), [17, 18, 19, 20]);
});

test("filters are asked of the server and said in words, one for each", async (t) => {
  const { inWords, NOTHING, parametersOf } = await load(t, "studio/filters.js");
  const say = (choice) => [`${parametersOf({ ...NOTHING, ...choice })}`, inWords({ ...NOTHING, ...choice })];
  assert.deepEqual(say({}), ["", []]);
  // The page itself knows what is judged, with what waits.
  assert.deepEqual(say({ judged: "no" }), ["", ["not labeled by you"]]);
  assert.deepEqual(say({ judged: "unsure" }), ["", ["unsure by your label"]]);
  assert.deepEqual(say({ flagged: "yes", species: [3, 4] }), [
    "flagged=yes&species=3&species=4",
    ["flagged", "2 species"],
  ]);
  assert.deepEqual(say({ from: "2020-01-01", to: "2021-01-01", months: [1, 12] }), [
    "date_from=2020-01-01&date_to=2021-01-01&month=1&month=12",
    ["2020-01-01 to 2021-01-01", "January, December"],
  ]);
  assert.deepEqual(say({ from: "2020-01-01" })[1], ["since 2020-01-01"]);
  assert.deepEqual(say({ to: "2020-01-01" })[1], ["until 2020-01-01"]);
  assert.deepEqual(say({ licenses: ["CC0", ""] }), ["license=CC0&license=", ["CC0 or license not given"]]);
  const box = { west: -1, south: 2, east: 3.5, north: 4 };
  assert.equal(say({ box })[0], "bbox=-1%2C2%2C3.5%2C4");
});

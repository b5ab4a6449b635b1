/** What the live chart shows of a list, to the pixel. */
import assert from "node:assert/strict";
import test from "node:test";
import { Browser, JudgingServer } from "./browser.js";

const chart = (t) => new Browser(t, new JudgingServer()).page().load("studio/chart.js");
const relevant = new Set([3, 4000, 4100]);
/** 5,000 ranks, labeled up to 4,500; one of them withdrawn. */
const LIST = {
  size: 5000,
  entry: (rank) => ({
    score: 1 - rank / 5000,
    relevance: rank > 4500 ? null : relevant.has(rank) ? "relevant" : "not_relevant",
    withdrawn: rank === 4200,
  }),
};
const PROGRESS = { prefix: 4500, streak: 399 };
const points = (path) =>
  path
    .slice(1)
    .split("L")
    .map((point) => point.split(" ").map(Number));

test("a list of 5000 is thinned to the pixels, its least and greatest kept", async (t) => {
  const { curve, extent, inWords, line } = await chart(t);
  const data = curve(LIST, PROGRESS);
  assert.deepEqual(
    [data.judged, data.relevant, data.lastRelevant, data.lastJudged, data.streakFrom],
    [4499, 3, 4100, 4500, 4101],
  );
  assert.equal(
    inWords(data),
    "3 relevant among 4,499 labeled; the last at rank 4,100. 399 negatives in a row. Similarity falls from 1.000 to 0.100.",
  );
  const found = points(
    line(
      data.found,
      1,
      5000,
      (rank) => rank / 20,
      (value) => value,
    ),
  );
  assert.ok(found.length <= 2 * 251);
  assert.deepEqual(
    [found[0], found.at(-1)],
    [
      [0, 0],
      [250, 3],
    ],
  );
  assert.ok(found.every(([, value], place) => !place || value >= found[place - 1][1]));
  const peak = new Float64Array(101);
  peak[50] = 9;
  assert.ok(
    points(
      line(
        peak,
        1,
        100,
        (rank) => rank / 40,
        (value) => value,
      ),
    ).some(([, value]) => value === 9),
  );
  assert.deepEqual(
    [extent(data, 5000, 4501, false), extent(data, 5000, 1, true), extent(data, 20, 1, false)],
    [5000, 5000, 20],
  );
});

test("it shows what is labeled and a little more", async (t) => {
  const { curve, extent, inWords, line } = await chart(t);
  const nothing = curve(
    { size: 300, entry: () => ({ score: 0.2, relevance: null, withdrawn: false }) },
    { prefix: 0, streak: 0 },
  );
  assert.equal(inWords(nothing), "Nothing is labeled yet.");
  assert.deepEqual(
    [extent(nothing, 300, 1, false), extent(nothing, 300, 100, false), nothing.streakFrom],
    [50, 120, 0],
  );
  assert.equal(line(nothing.found, 1, 0, Number, Number), "");
});

test("axes have round ticks", async (t) => {
  const { ticks } = await chart(t);
  assert.deepEqual(ticks(0, 4, 4), [0, 1, 2, 3, 4]);
  assert.deepEqual(ticks(1, 5000, 5), [1000, 2000, 3000, 4000, 5000]);
  assert.deepEqual(ticks(0.12, 0.31, 3), [0.2, 0.3]);
  assert.deepEqual(ticks(2, 2), [2]);
});

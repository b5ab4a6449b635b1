/** Numbers, times and names as people read them. */
import assert from "node:assert/strict";
import test from "node:test";
import { Browser, JudgingServer } from "./browser.js";

function words(t, timeZone = "UTC", browser = new Browser(t, new JudgingServer())) {
  const page = browser.page();
  page.document.documentElement.dataset.timeZone = timeZone;
  return page.load("words.js");
}

test("numbers", async (t) => {
  const { counted, duration, number, pace } = await words(t);
  assert.deepEqual(
    [number(1234567), counted(1, "image"), counted(2000, "image")],
    ["1,234,567", "1 image", "2,000 images"],
  );
  assert.equal(counted(3, "species", "species"), "3 species");
  assert.deepEqual([0, 59.4, 60, 3599, 3900, 36000].map(duration), [
    "0 s",
    "59 s",
    "1 min",
    "59 min",
    "1 h 05 min",
    "10 h 00 min",
  ]);
  assert.deepEqual([pace(0.26), pace(null)], ["0.3 s", "–"]);
});

test("times", async (t) => {
  const browser = new Browser(t, new JudgingServer());
  const { ago, moment } = await words(t, "Asia/Tokyo", browser);
  const now = new Date(Date.UTC(2026, 4, 1, 12));
  const before = (seconds) => ago(new Date(now.getTime() - seconds * 1000), now);
  assert.deepEqual([-5, 9, 10, 59, 60, 7199, 86400, 200_000, 40_000_000].map(before), [
    "just now",
    "just now",
    "10 seconds ago",
    "59 seconds ago",
    "1 minute ago",
    "1 hour ago",
    "yesterday",
    "2 days ago",
    "last year",
  ]);
  assert.match(moment(now), /1 May 2026, 21:00:00/);
  // A time zone that the browser doesn't know.
  assert.equal((await words(t, "Mars/Phobos", browser)).TIME_ZONE, undefined);
});

test("names", async (t) => {
  const { languageName, sentence, speciesName, trouble } = await words(t);
  assert.deepEqual([languageName("de"), languageName("x")], ["German", "x"]);
  assert.equal(sentence("rank 7"), "Rank 7");
  assert.deepEqual(
    [
      speciesName({ common_name: "Owl", scientific_name: "Strix" }),
      speciesName({ common_name: "", scientific_name: "Strix" }),
      speciesName(null),
    ],
    ["Owl", "Strix", ""],
  );
  assert.equal(trouble({ status: 0 }, "Try later."), "There is no connection to the server. Try later.");
  assert.equal(trouble({ status: 400, message: "No." }, "Try later."), "No.");
});

test("names are read from lists as people have them", async (t) => {
  const { isList, parseNames } = await new Browser(t, new JudgingServer()).page().load("species/names.js");
  for (const [text, names] of [
    ["a b\nc d", ["a b", "c d"]],
    ["a b, c d;e f\tg\r\n\r\nh", ["a b", "c d", "e f", "g", "h"]],
    ["1. Strix aluco\n2) Bubo bubo\n(3) Asio otus", ["Strix aluco", "Bubo bubo", "Asio otus"]],
    ["12\tStrix aluco\t1758\n13\tBubo bubo\t", ["Strix aluco", "Bubo bubo"]],
    ["12 Strix aluco", ["Strix aluco"]],
    ["- Strix aluco\n• “Bubo bubo”\n* Asio otus", ["Strix aluco", "Bubo bubo", "Asio otus"]],
    ['"Strix aluco","Bubo bubo"', ["Strix aluco", "Bubo bubo"]],
    ["Strix aluco (Linnaeus, 1758)", ["Strix aluco (Linnaeus"]],
    ["Strix  aluco\nstrix aluco\n STRIX ALUCO ", ["Strix aluco"]],
    ["Chevêche d’Athéna\nМышь", ["Chevêche d’Athéna", "Мышь"]],
    ["2-spot Ladybird\n7 spotted", ["2-spot Ladybird", "spotted"]],
    [" \n;,\t", []],
  ]) {
    assert.deepEqual(parseNames(text), names, text);
  }
  assert.deepEqual(["Strix aluco\n", "Strix aluco\nBubo bubo"].map(isList), [false, true]);
});

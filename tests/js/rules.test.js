/** The rules that allow to hand in, as the page counts them: tests/labeling/test_rule_vectors.py has the same cases. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { stopState } from "../../static/js/studio/stopping.js";
import { Browser, JudgingServer } from "./browser.js";

const { cases } = JSON.parse(readFileSync(new URL("../labeling/rule_vectors.json", import.meta.url)));

async function rules(t) {
  return (await new Browser(t, new JudgingServer()).page().load("studio/rules.js")).handInState;
}

/** Progress as the store has it. */
function progressOf({ relevance, ...options }) {
  const { length, ...counts } = stopState(relevance, relevance.replaceAll(/[rnu]/g, "l"), options);
  return { ...counts, candidates: length, stop: counts };
}

/** What the server says of the rules; nothing of those that the page counts itself. */
function told(ways) {
  const one = ([rule, met]) => {
    const [name, of] = rule.split(":");
    return of
      ? { name, title: "A certificate", met, value: 0.5, of: Number(of), sentence: "50 % certified" }
      : { name };
  };
  return { ways: ways.map((way) => ({ rules: way.map(one) })) };
}

const listOf = ({ relevance, complete }) => ({
  complete,
  size: relevance.length,
  total: relevance.length,
  unembedded: 0,
});

test("every shared case stands on the page as on the server", async (t) => {
  const handInState = await rules(t);
  assert.ok(cases.length > 20);
  for (const one of cases) {
    const found = handInState(told(one.ways), progressOf(one), listOf(one));
    const name = `${one.rule}: ${one.relevance}`;
    assert.equal(found.met, one.met, name);
    assert.equal(found.pause, one.pause, name);
    assert.ok(one.met || found.wanting, name);
    assert.equal(Boolean(found.reason), one.met, name);
    // A minimum has a row of its own behind the streak's.
    if (!one.minimum)
      assert.deepEqual(
        found.rows.map(({ holds }) => holds),
        one.ways.flat().map(([, met]) => met),
        name,
      );
  }
});

test("what is missing is said in words, of the ways that are no last resort", async (t) => {
  const handInState = await rules(t);
  const say = (ways, relevance, list, options) => {
    const one = { relevance, complete: true, required: 3, minimum: 0, ...options };
    return handInState(told(ways), progressOf(one), { ...listOf(one), ...list });
  };
  const streak = ["streak", false];
  const exhausted = ["exhausted", false];
  const certificate = ["certificate:0.9", false];
  assert.equal(say([[streak], [exhausted]], "rn---").wanting, "2 more negatives in a row");
  assert.equal(say([[streak, certificate]], "rnn--").wanting, "1 more negative in a row and a certificate");
  assert.equal(say([[streak], [certificate]], "rnn--").wanting, "1 more negative in a row, or a certificate");
  assert.equal(say([[streak]], "rnnn-", {}, { minimum: 6 }).wanting, "2 more labels");
  assert.equal(say([[exhausted]], "rn---").wanting, "3 more labels");
  const cut = say([[exhausted]], "rnn", { size: 3, total: 1200 }, { complete: false });
  assert.equal(cut.wanting, "a longer list");
  assert.equal(cut.rows[0].note, "The list holds 3 of 1,200 images; it can be extended at its end.");
  assert.equal(say([[streak], [exhausted]], "nnn--").reason, "3 candidates in a row are not relevant");
  const names = say([[streak, certificate], [exhausted]], "rn---").rows.map(({ name }) => name);
  assert.deepEqual(names, ["Negatives in a row", "And a certificate", "Or the whole list labeled"]);
});

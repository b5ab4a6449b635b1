/** The stop rules as the page counts them: tests/labeling/test_stopping.py holds the server to the same cases. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { stopState } from "../../static/js/studio/stopping.js";

const { cases } = JSON.parse(readFileSync(new URL("../labeling/stopping_vectors.json", import.meta.url)));

test("there are shared cases", () => assert.ok(cases.length > 30));

for (const { name, input, expected } of cases) {
  test(`the page says what the server says of ${name}`, () => {
    const { unsure, met, ...state } = stopState(input.relevance, input.sources, input);
    assert.deepEqual(state, expected);
    assert.equal(met, expected.rule !== "none");
    const counted = [...input.relevance].filter(
      (letter, place) => letter === "u" && !input.withdrawn.includes(place + 1),
    );
    assert.equal(unsure, counted.length);
  });
}

for (const [relevance, options] of [
  ["rx", {}],
  ["rn", { withdrawn: [3] }],
  ["rn", { withdrawn: [0] }],
  ["rn", { minimum: -1 }],
  ["rn", { required: 0 }],
]) {
  test(`“${relevance}” with ${JSON.stringify(options)} is refused`, () => {
    const ask = () => stopState(relevance, relevance, { complete: false, required: 3, ...options });
    assert.throws(ask, RangeError);
  });
}

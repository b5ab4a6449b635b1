/** Active seconds: while the page is seen and somebody acts. */
import assert from "node:assert/strict";
import test from "node:test";
import { ActiveClock } from "../../static/js/studio/clock.js";

for (const [name, steps, expected] of [
  [
    "acts and what follows them count",
    [
      [3, "keydown"],
      [2, "take"],
      [4, "take"],
    ],
    [5, 4],
  ],
  [
    "of a pause 30 seconds count",
    [
      [10, "keydown"],
      [100, "pointermove"],
      [5, "take"],
    ],
    [45],
  ],
  [
    "taking is no act",
    [
      [10, "keydown"],
      [20, "take"],
      [80, "take"],
      [0, "keydown"],
      [1, "take"],
    ],
    [30, 10, 1],
  ],
  [
    "a hidden page doesn't count",
    [
      [5, "hide"],
      [60, "show"],
      [2, "take"],
    ],
    [7],
  ],
  [
    "nor do acts on it; coming back is one",
    [
      [5, "hide"],
      [60, "keydown"],
      [5, "show"],
      [40, "take"],
    ],
    [35],
  ],
  [
    "every kind of act counts",
    [
      [31, "wheel"],
      [29, "touchstart"],
      [0, "take"],
      [31, "take"],
    ],
    [59, 30],
  ],
]) {
  test(name, () => {
    let now = 0;
    const target = new EventTarget();
    const page = Object.assign(new EventTarget(), { visibilityState: "visible" });
    const clock = new ActiveClock({ now: () => now, target, page });
    const taken = [];
    for (const [seconds, what] of steps) {
      now += seconds * 1000;
      if (what === "take") taken.push(clock.take());
      else if (what === "hide" || what === "show") {
        page.visibilityState = what === "hide" ? "hidden" : "visible";
        page.dispatchEvent(new Event("visibilitychange"));
      } else target.dispatchEvent(new Event(what));
    }
    assert.deepEqual(taken, expected);
    assert.equal(
      clock.total,
      expected.reduce((sum, seconds) => sum + seconds),
    );
  });
}

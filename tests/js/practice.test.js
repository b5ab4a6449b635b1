/** The practice's keys, and what any page's key may label: an image that a person sees. */
import assert from "node:assert/strict";
import test from "node:test";
import { Browser, FakeElement, JudgingServer } from "./browser.js";

const LABELED_NOTHING = "Not labeled: the image isn't in view.";

/** A practice in a window of 800 × 600; its image is 600 × 300 at `top`, under a panel as far as `covered`. */
async function practice(t) {
  const page = new Browser(t, new JudgingServer()).page();
  const { document } = page;
  const place = { top: 100, covered: 0, width: 600 };
  const image = Object.assign(new FakeElement("img"), {
    ...{ complete: true, naturalWidth: 1200, naturalHeight: 600 },
    getBoundingClientRect: () => ({ left: 0, right: place.width, top: place.top, bottom: place.top + place.width / 2 }),
    contains: (element) => element === image,
    scrollIntoView: () => (place.top = 0),
  });
  document.elementFromPoint = (x, y) => {
    if (x < 0 || y < 0 || x > 800 || y > 600) return null;
    return y < place.covered ? document.body : image;
  };
  document.body.found.set(".practice-image img", image);
  document.querySelector = (selector) => document.body.querySelector(selector);
  const presses = [];
  const named = ["answer", ""].map((name, number) =>
    Object.assign(new FakeElement(), { name, dataset: { keys: `${number} ${name}` }, click: () => presses.push(name) }),
  );
  document.querySelectorAll = () => named;
  await page.load("practice.js");
  /** What the page says after a key, and which buttons were pressed in all. */
  const press = (key) => {
    const target = { matches: () => false };
    const event = Object.assign(new Event("keydown"), { key, getModifierState: () => false });
    document.dispatchEvent(Object.defineProperty(event, "target", { value: target }));
    return [document.querySelector("[data-practice-said]").textContent, presses.length];
  };
  return { image, place, press };
}

test("a key answers of an image in view alone, and else brings it there and says so", async (t) => {
  const { place, press } = await practice(t);
  assert.deepEqual(press("0"), ["", 1]);
  for (const change of [{ top: -200 }, { top: 500 }, { covered: 250 }, { width: 100 }]) {
    Object.assign(place, { top: 100, covered: 0, width: 600 }, change);
    assert.deepEqual(press("0"), [LABELED_NOTHING, 1], JSON.stringify(change));
  }
  Object.assign(place, { top: 500, covered: 0, width: 600 });
  press("0");
  assert.equal(press("0")[1], 2);
});

test("most of the image is enough, and a small one need not be large", async (t) => {
  const { image, place, press } = await practice(t);
  place.covered = 120;
  assert.equal(press("0")[1], 1);
  place.width = 100;
  Object.assign(image, { naturalWidth: 100, naturalHeight: 50 });
  place.covered = 0;
  assert.equal(press("0")[1], 2);
});

test("a key answers of no image that isn't there yet, or failed; what labels nothing needs none", async (t) => {
  const { image, press } = await practice(t);
  for (const state of [{ complete: false }, { complete: true, naturalWidth: 0 }]) {
    Object.assign(image, state);
    assert.deepEqual(press("0"), ["Not labeled: the image wasn't on the screen yet.", 0]);
  }
  assert.equal(press("1")[1], 1);
});

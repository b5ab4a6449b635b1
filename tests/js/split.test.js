/** “Draw the splits”: only the draw that was shown can be applied. */
import assert from "node:assert/strict";
import test from "node:test";
import { Browser, FakeElement } from "./browser.js";

/** The fields of a form without a document, by name. */
class FormFields extends Map {
  constructor(form) {
    super(Object.entries(form.fields));
  }
}

test("Apply waits for another preview once a field differs, and comes back with the field", async (t) => {
  const { FormData } = globalThis;
  t.after(() => Object.assign(globalThis, { FormData }));
  globalThis.FormData = FormFields;
  const page = new Browser(t).page();
  const [form, apply, state] = [new FakeElement("form"), new FakeElement("button"), new FakeElement()];
  form.fields = { val_share: "0.2", seed: "7" };
  apply.disabled = false;
  state.textContent = "Nothing has changed yet.";
  const parts = { "[data-split-form]": form, "[data-split-apply]": apply, "[data-split-state]": state };
  page.document.querySelector = (selector) => parts[selector];
  await page.load("split.js");
  const write = (seed) => {
    form.fields.seed = seed;
    form.dispatchEvent(new Event("input"));
  };
  write("8");
  assert.deepEqual(
    [apply.disabled, state.textContent],
    [true, "The fields have changed: preview the draw again first."],
  );
  write("7");
  assert.deepEqual([apply.disabled, state.textContent], [false, "Nothing has changed yet."]);
});

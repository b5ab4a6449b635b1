/** The page that uploads a folder or a ZIP. */
import assert from "node:assert/strict";
import test from "node:test";
import { Browser, FakeElement, JudgingServer } from "./browser.js";

async function uploadPage(t, files) {
  const page = new Browser(t, new JudgingServer()).page();
  const place = page.document.body;
  const inputs = files.map((chosen) => Object.assign(new FakeElement("input"), { files: chosen }));
  place.querySelectorAll = () => inputs;
  const send = place.querySelector("[data-upload-send]");
  send.disabled = true;
  page.document.querySelector = () => place;
  await page.load("upload.js");
  return { inputs, send };
}

test("files that were chosen before the script began can be sent", async (t) => {
  const { send } = await uploadPage(t, [[], [{ name: "pond.zip" }]]);
  assert.equal(send.disabled, false);
});

test("nothing can be sent until something is chosen", async (t) => {
  const { inputs, send } = await uploadPage(t, [[], []]);
  assert.equal(send.disabled, true);
  inputs[0].files = [{ name: "newt.jpg" }];
  inputs[0].dispatchEvent(new Event("change"));
  assert.equal(send.disabled, false);
});

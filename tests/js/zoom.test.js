/** Keys that move the enlarged image, and those that belong to what has the focus. */
import assert from "node:assert/strict";
import test from "node:test";
import { Browser, FakeElement } from "./browser.js";
import { LabelingServer, studioOn } from "./labeling.js";

test("an arrow key moves the enlarged image, unless a filter's choice or a field has the focus", async (t) => {
  const page = new Browser(t, new LabelingServer()).page();
  const studio = await studioOn(page, [["studio/single.js", "mount"]]);
  studio.view = "single";
  const { zoom } = studio.views.single;
  Object.assign(zoom, { width: 300, height: 200 });
  zoom.attach(Object.assign(new FakeElement("img"), { naturalWidth: 600, naturalHeight: 400 }));
  const moves = (tag) => {
    const matches = (selector) => selector.split(", ").includes(tag);
    const event = Object.assign(new Event("keydown", { cancelable: true }), { key: "ArrowDown" });
    Object.defineProperty(event, "target", { value: { matches } });
    page.document.dispatchEvent(event);
    return event.defaultPrevented;
  };
  assert.equal(moves("body"), false);
  studio.run("zoom_in");
  assert.deepEqual(["body", "button", "input", "select", "textarea"].map(moves), [true, true, false, false, false]);
});

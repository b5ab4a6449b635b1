/** The preview of Markdown: what the server makes of the text, while it is open. */
import assert from "node:assert/strict";
import test from "node:test";
import { Browser, FakeElement, JudgingServer, json, settle } from "./browser.js";

async function start(t) {
  const server = new JudgingServer();
  server.pages.set("/api/markdown/", (_url, { body }) => ({ html: body.text && `<h${body.heading}>${body.text}` }));
  const browser = new Browser(t, server);
  const page = browser.page();
  const [field, details] = [new FakeElement("textarea"), new FakeElement("details")];
  Object.assign(details.dataset, { previewOf: "id_guidelines", heading: "2" });
  page.document.getElementById = (id) => (id === "id_guidelines" ? field : null);
  page.document.querySelectorAll = () => [details];
  await page.load("markdown-preview.js");
  const shown = details.querySelector(".markdown");
  const write = (text) => {
    field.value = text;
    field.dispatchEvent(new Event("input"));
  };
  const open = async (wanted) => {
    details.open = wanted;
    details.dispatchEvent(new Event("toggle"));
    await settle();
  };
  return { server, browser, shown, write, open };
}

test("it shows the text when it is opened, and follows it until it is closed", async (t) => {
  const { browser, shown, write, open } = await start(t);
  write("tails");
  await browser.pass(1000);
  assert.equal(browser.requests.length, 0);
  await open(true);
  assert.equal(shown.innerHTML, "<h2>tails");
  for (const text of ["two", "two t", "two tails"]) write(text);
  await browser.pass(1000);
  assert.deepEqual([shown.innerHTML, browser.requests.length], ["<h2>two tails", 2]);
  write("");
  await browser.pass(1000);
  assert.equal(shown.innerHTML, "Nothing is written yet.");
  await open(false);
  write("ears");
  await browser.pass(1000);
  assert.equal(browser.requests.length, 3);
});

test("an answer that comes after that of a later text isn't shown", async (t) => {
  const { server, browser, shown, write, open } = await start(t);
  let answer;
  server.trouble = ({ body }) => body.text === "old" && new Promise((resolve) => (answer = resolve));
  write("old");
  await open(true);
  write("new");
  await browser.pass(1000);
  answer(json({ html: "late" }));
  await settle();
  assert.equal(shown.innerHTML, "<h2>new");
});

test("without a connection it says so, and shows the text once there is one", async (t) => {
  const { browser, shown, write, open } = await start(t);
  browser.goOffline();
  write("tails");
  await open(true);
  assert.equal(shown.textContent, "There is no preview: The server can't be reached.");
  browser.goOnline();
  await open(true);
  assert.equal(shown.innerHTML, "<h2>tails");
});

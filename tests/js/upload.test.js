/** The page that uploads a folder or a ZIP. */
import assert from "node:assert/strict";
import test from "node:test";
import { Browser, FakeElement, json } from "./browser.js";

const MIB = 1024 * 1024;

/** Stands for the server's uploads; `there` are the bytes of each file that it has. */
class UploadServer {
  constructor() {
    this.there = {};
    this.begun = 0;
    this.requests = [];
  }

  answer({ path, method, body }) {
    const { pathname, searchParams } = new URL(path, "http://here");
    if (pathname === "/import/") {
      this.begun += 1;
      return json({ address: `/import/${this.begun}/` }, 201);
    }
    if (pathname !== `/import/${this.begun}/files/`) return json({}, pathname.endsWith("/unpack/") ? 200 : 404);
    if (method === "GET") return json({ files: this.there });
    const sent = searchParams.has("path")
      ? [[searchParams.get("path"), Number(searchParams.get("at")) + body.size]]
      : body.getAll("path").map((name, position) => [name, body.getAll("file")[position].size]);
    this.requests.push(sent.map(([name]) => name));
    Object.assign(this.there, Object.fromEntries(sent));
    return json({});
  }
}

function file(path, size, lastModified = 0) {
  const made = new File([new Uint8Array(size)], path.split("/").pop(), { lastModified });
  return Object.defineProperty(made, "webkitRelativePath", { value: path.includes("/") ? path : "" });
}

async function uploadPage(browser, files) {
  const page = browser.page();
  const place = page.document.body;
  const inputs = files.map((chosen) => Object.assign(new FakeElement("input"), { files: chosen }));
  const find = page.document.querySelector;
  place.querySelectorAll = () => inputs;
  page.document.querySelector = (selector) => (selector === "[data-upload]" ? place : find(selector));
  page.window.location = { assign: (address) => (page.gone = address) };
  place.querySelector("[data-upload-send]").disabled = true;
  await page.load("upload.js");
  const text = (name) => place.querySelector(`[data-upload-${name}]`).textContent;
  return { page, inputs, send: place.querySelector("[data-upload-send]"), text };
}

test("files that were chosen before the script began can be sent", async (t) => {
  const { send, text } = await uploadPage(new Browser(t, new UploadServer()), [[], [file("pond.zip", 10)]]);
  assert.equal(send.disabled, false);
  assert.equal(text("chosen"), "pond.zip: 1 file, 0.1 MB");
});

test("nothing can be sent until something is chosen that is wanted", async (t) => {
  const { inputs, send } = await uploadPage(new Browser(t, new UploadServer()), [[], []]);
  assert.equal(send.disabled, true);
  for (const [chosen, disabled] of [
    [file("pond/.DS_Store", 1), true],
    [file("pond/newt.jpg", 1), false],
  ]) {
    inputs[0].files = [chosen];
    inputs[0].dispatchEvent(new Event("change"));
    assert.equal(send.disabled, disabled);
  }
});

test("small files go together, large ones in pieces, and a page that was left goes on", async (t) => {
  const server = new UploadServer();
  const browser = new Browser(t, server);
  const small = Array.from({ length: 120 }, (_, number) => file(`pond/${number}.png`, 1000));
  const all = [...small, file("pond/large.tif", 9 * MIB)];
  const first = await uploadPage(browser, [all, []]);
  // The connection is lost after two requests.
  const whole = server.answer.bind(server);
  server.answer = (request) => {
    if (server.requests.length === 2) browser.goOffline();
    return whole(request);
  };
  first.send.click();
  await browser.until(() => first.text("problem") !== "", "the outage");
  assert.match(first.text("problem"), /goes on by itself/);
  assert.match(first.text("status"), /of 9.6 MB, \d+ of 121 files/);
  const sent = Object.keys(server.there).length;
  assert.ok(sent > 0 && sent < 121);
  first.page.crash();
  server.answer = whole;
  browser.goOnline();

  const second = await uploadPage(browser, [[], []]);
  await browser.until(
    () => second.page.document.body.querySelector("[data-upload-earlier]").children.length,
    "the offer",
  );
  assert.match(second.text("earlier"), new RegExp(`“pond” from .*: ${sent} of 121 files are there`));
  second.inputs[0].files = all;
  second.inputs[0].dispatchEvent(new Event("change"));
  second.send.click();
  await browser.until(() => second.page.gone, "the preview");
  assert.equal(second.page.gone, "/import/1/");
  assert.deepEqual(server.there, Object.fromEntries(all.map((one) => [one.webkitRelativePath, one.size])));
  // Nothing that was there was sent again: three forms, and three pieces.
  assert.equal(server.requests.length, 6);

  // It ended, so the same folder begins anew.
  const third = await uploadPage(browser, [all, []]);
  third.send.click();
  await browser.until(() => third.page.gone === "/import/2/", "the next upload");
});

test("an upload goes on by itself when the connection is back", async (t) => {
  const server = new UploadServer();
  const browser = new Browser(t, server);
  const { page, send, text } = await uploadPage(browser, [[file("pond/a.png", 10)], []]);
  const whole = server.answer.bind(server);
  let answers = 0;
  server.answer = (request) => {
    answers += 1;
    return answers === 2 ? json({ detail: "The server's disk is nearly full." }, 507) : whole(request);
  };
  send.click();
  await browser.until(() => text("problem").startsWith("The server's disk"), "the outage");
  await browser.until(() => page.gone, "the preview");
  assert.equal(text("problem"), "");
});

test("a folder that was changed since, or another of the same name, begins anew", async (t) => {
  for (const changed of [
    [file("pond/a.png", 10, Date.UTC(2027, 0, 1))],
    [file("pond/a.png", 9)],
    [file("pond/b.png", 10)],
  ]) {
    const server = new UploadServer();
    const browser = new Browser(t, server);
    server.begun = 1;
    server.there = { "pond/a.png": 10 };
    const before = { address: "/import/1/", name: "pond", began: Date.UTC(2026, 0, 1), files: 2, bytes: 20 };
    browser.local.set("uploads:1", JSON.stringify([before]));
    const { page, send } = await uploadPage(browser, [changed, []]);
    send.click();
    await browser.until(() => page.gone, "the preview");
    assert.equal(page.gone, "/import/2/");
    t.mock.timers.reset();
  }
});

test("folders that are dropped are read to their ends", async (t) => {
  const browser = new Browser(t, new UploadServer());
  const { page, inputs, text, send } = await uploadPage(browser, [[], []]);
  const entry = (path, members) => {
    const rest = [...(members ?? [])];
    return {
      isDirectory: members !== undefined,
      fullPath: path,
      file: (give) => give(file(path.split("/").pop(), 1)),
      createReader: () => ({ readEntries: (give) => give(rest.splice(0, 2)) }),
    };
  };
  const frogs = ["a", "b", "c", ".d"].map((name) => entry(`/pond/Rana/${name}.jpg`));
  const items = [entry("/pond", [entry("/pond/list.csv"), entry("/pond/Rana", frogs)])];
  const drop = new Event("drop", { cancelable: true });
  drop.dataTransfer = { types: ["Files"], items: items.map((one) => ({ webkitGetAsEntry: () => one })), files: [] };
  page.document.body.querySelector("[data-upload-drop]").dispatchEvent(drop);
  await browser.until(() => text("chosen").startsWith("pond"), "the folder");
  assert.equal(text("chosen"), "pond: 4 files, 0.1 MB");
  assert.ok(drop.defaultPrevented);
  assert.equal(inputs[0].value, "");
  assert.equal(send.disabled, false);
});

test("an input takes what it accepts", async (t) => {
  const page = new Browser(t, new UploadServer()).page();
  const { isAccepted } = await page.load("drop-zone.js");
  for (const [accept, name, right] of [
    [".csv, text/csv", "list.CSV", true],
    [".csv, text/csv", "list.json", false],
    [".csv, .xlsx", "list.xlsx", true],
    ["", "run.txt", true],
  ]) {
    assert.equal(isAccepted(accept, name), right, `${name} by ${accept}`);
  }
});

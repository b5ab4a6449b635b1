/** The page that uploads a folder or a ZIP: chosen or dropped, with progress by bytes, going on where one was cut off. */
import { api } from "./api.js";
import { make, button as makeButton } from "./dom.js";
import { dropZone } from "./drop-zone.js";
import { chosenFiles, droppedFiles, isWanted, nameOf } from "./uploading/dropped.js";
import { forget, goesOn, remember, remembered } from "./uploading/remembered.js";
import { requestsLeft, sendAll } from "./uploading/sending.js";
import { ago, counted, number } from "./words.js";

const place = document.querySelector("[data-upload]");
const inputs = [...place.querySelectorAll('input[type="file"]')];
const find = (name) => place.querySelector(`[data-upload-${name}]`);
const sendButton = find("send");
const bar = place.querySelector("progress");
const status = find("status");
const problem = find("problem");
let items = [];

const bytesOf = (files) => files.reduce((sum, { file }) => sum + file.size, 0);
const megabytes = (bytes) => number(bytes < 1e7 ? Math.ceil(bytes / 1e5) / 10 : Math.round(bytes / 1e6));

function say(text) {
  problem.hidden = text === "";
  problem.textContent = text;
}

function choose(found) {
  items = found.filter(isWanted);
  sendButton.disabled = items.length === 0;
  find("chosen").textContent = items.length
    ? `${nameOf(items)}: ${counted(items.length, "file")}, ${megabytes(bytesOf(items))} MB`
    : "";
  say(found.length && !items.length ? "This holds no files but hidden ones." : "");
}

function timeLeft(seconds) {
  if (!Number.isFinite(seconds)) return "";
  return seconds < 90
    ? `, about ${Math.ceil(seconds)} seconds left`
    : `, about ${Math.round(seconds / 60)} minutes left`;
}

/** Draws what arrives of `items`, of which the server had `there` at the beginning. */
function progressOf(there) {
  const total = bytesOf(items);
  const began = Date.now();
  const before = items.filter(({ path, file }) => there[path] === file.size).length;
  let files = before;
  let bytes = Object.values(there).reduce((sum, size) => sum + size, 0);
  const first = bytes;
  const draw = () => {
    bar.value = total ? bytes / total : 1;
    const rate = (bytes - first) / (Date.now() - began);
    const left = Date.now() - began > 3000 ? timeLeft((total - bytes) / rate / 1000) : "";
    const ofFiles = `${number(files)} of ${counted(items.length, "file")}`;
    status.textContent = `${megabytes(bytes)} of ${megabytes(total)} MB, ${ofFiles}${left}`;
  };
  draw();
  return {
    sent(request) {
      files += request.files;
      bytes += request.bytes;
      draw();
    },
    waiting(error) {
      const why = error?.status ? error.message : "The connection is lost.";
      say(error ? `${why} The upload goes on by itself as soon as it can.` : "");
    },
  };
}

/** The address of an upload that was cut off and that `items` go on with, or of a new one; and what is there of it. */
async function uploadFor(name) {
  for (const { address, began } of remembered().filter((upload) => upload.name === name)) {
    const there = await filesThere(address);
    if (there && goesOn(items, there, began)) return { address, there };
  }
  const { address } = await api("/import/", { method: "POST" });
  remember({ address, name, began: Date.now(), files: items.length, bytes: bytesOf(items) });
  return { address, there: {} };
}

/** The bytes of each file that the server has of an upload; null for one that isn't there any more. */
async function filesThere(address) {
  try {
    return (await api(`${address}files/`)).files;
  } catch (error) {
    if (error.status !== 404) throw error;
    forget(address);
    return null;
  }
}

async function send() {
  const { address, there } = await uploadFor(nameOf(items));
  await sendAll(address, requestsLeft(items, there), progressOf(there));
  await api(`${address}unpack/`, { method: "POST" });
  forget(address);
  window.location.assign(address);
}

/** Offers to go on with uploads that were cut off. */
async function offer() {
  for (const upload of remembered()) {
    const there = await filesThere(upload.address).catch(() => null);
    if (!there) continue;
    const bytes = Object.values(there).reduce((sum, size) => sum + size, 0);
    const said =
      upload.files === 1
        ? `${megabytes(bytes)} of ${megabytes(upload.bytes)} MB are there`
        : `${number(Object.keys(there).length)} of ${number(upload.files)} files are there`;
    const input = inputs[upload.files === 1 && /\.zip$/i.test(upload.name) ? 1 : 0];
    const line = make(
      "div",
      { class: "notice" },
      make("span", {
        text: `Go on with the upload of “${upload.name}” from ${ago(new Date(upload.began))}: ${said}. Choose or drop it again.`,
      }),
      make(
        "div",
        { class: "row" },
        makeButton("Choose it", () => input.click()),
        makeButton("Forget it", () => {
          forget(upload.address);
          line.remove();
        }),
      ),
    );
    find("earlier").append(line);
  }
}

for (const input of inputs) {
  input.addEventListener("change", () => {
    for (const other of inputs) if (other !== input) other.value = "";
    choose(chosenFiles([...input.files]));
  });
}
// Files may have been chosen before this script began.
choose(inputs.flatMap((input) => chosenFiles([...input.files])));

dropZone(find("drop"), async (transfer) => {
  if (inputs[0].disabled) return;
  for (const input of inputs) input.value = "";
  find("chosen").textContent = "The folder is being read …";
  choose(await droppedFiles(transfer));
});

/** Keeps what is chosen as it is while it is sent. */
function hold(on) {
  for (const control of [...inputs, sendButton]) control.disabled = on;
}

sendButton.addEventListener("click", async () => {
  hold(true);
  find("progress").hidden = false;
  find("earlier").replaceChildren();
  say("");
  try {
    await send();
  } catch (error) {
    say(`${error.message} Press “Upload” to go on.`);
    hold(false);
  }
});

offer();

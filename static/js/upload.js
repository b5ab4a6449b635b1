/** Uploads a folder or a ZIP in pieces; a piece that fails is sent again, from the byte that the server has. */
import { api } from "./api.js";

const PIECE = 4 * 1024 * 1024;
const TRIES = 5;

const place = document.querySelector("[data-upload]");
const inputs = [...place.querySelectorAll('input[type="file"]')];
const button = place.querySelector("[data-upload-send]");
const bar = place.querySelector("progress");
const status = place.querySelector("[data-upload-status]");
const problem = place.querySelector("[data-upload-problem]");

function chosen() {
  return inputs.flatMap((input) => [...input.files]);
}

/** Files that systems leave behind aren't sent. */
function isWanted(file) {
  return !(file.webkitRelativePath || file.name).split("/").some((part) => part.startsWith("."));
}

function say(text) {
  problem.hidden = text === "";
  problem.textContent = text;
}

async function sendPiece(address, path, file, at) {
  const query = new URLSearchParams({ path, at, size: file.size });
  const options = { method: "POST", raw: file.slice(at, at + PIECE) };
  for (let left = TRIES; ; left -= 1) {
    try {
      return await api(`${address}files/?${query}`, options);
    } catch (error) {
      const lasting = error.status >= 400 && error.status < 500;
      if (lasting || left === 1) throw error;
      await new Promise((resolve) => setTimeout(resolve, 1000 * (TRIES - left + 1)));
    }
  }
}

async function send(files) {
  const total = files.reduce((sum, file) => sum + file.size, 0) || 1;
  const { address } = await api("/import/", { method: "POST" });
  let sent = 0;
  for (const [number, file] of files.entries()) {
    status.textContent = `${number + 1} of ${files.length} files`;
    for (let at = 0; at < file.size || at === 0; at += PIECE) {
      await sendPiece(address, file.webkitRelativePath || file.name, file, at);
      bar.value = (sent + Math.min(at + PIECE, file.size)) / total;
    }
    sent += file.size;
  }
  await api(`${address}unpack/`, { method: "POST" });
  location.assign(address);
}

for (const input of inputs) {
  input.addEventListener("change", () => {
    for (const other of inputs) if (other !== input) other.value = "";
    button.disabled = chosen().length === 0;
    say("");
  });
}
// Files may have been chosen before this script began.
button.disabled = chosen().length === 0;

button.addEventListener("click", async () => {
  const files = chosen().filter(isWanted);
  button.disabled = true;
  bar.parentElement.hidden = false;
  say("");
  try {
    await send(files);
  } catch (error) {
    say(`${error.message} Press “Upload” to try again.`);
    button.disabled = false;
  }
});

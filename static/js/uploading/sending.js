/** Sends the files of an upload: small ones several in a request, large ones in pieces, and goes on after outages. */
import { api } from "../api.js";

const PIECE = 4 * 1024 * 1024;
/** A file up to here goes with others. */
const SMALL = 1024 * 1024;
const MOST_IN_FORM = 50;
/** Requests at once; the server has a few threads for everybody. */
const LANES = 3;
const LONGEST_WAIT = 15_000;

/**
 * What is still to be sent: lists of requests that follow each other, each with its `bytes` and the `files` that it
 * completes.
 * @param {{file: File, path: string}[]} items
 * @param {Object<string, number>} there the bytes that the server has, by path
 */
export function requestsLeft(items, there) {
  const lists = [];
  let form = null;
  for (const { file, path } of items) {
    if (there[path] === file.size) continue;
    if (file.size <= SMALL) {
      if (!form || form.bytes + file.size > PIECE || form.files === MOST_IN_FORM) {
        form = { form: [], bytes: 0, files: 0 };
        lists.push([form]);
      }
      form.form.push({ file, path });
      form.bytes += file.size;
      form.files += 1;
      continue;
    }
    const pieces = [];
    for (let at = there[path] ?? 0; at < file.size; at += PIECE) {
      const bytes = Math.min(PIECE, file.size - at);
      pieces.push({ file, path, at, bytes, files: at + bytes === file.size ? 1 : 0 });
    }
    lists.push(pieces);
  }
  return lists;
}

function sendOne(address, request) {
  if (!request.form) {
    const { file, path, at, bytes } = request;
    const query = new URLSearchParams({ path, at, size: file.size });
    return api(`${address}files/?${query}`, { method: "POST", raw: file.slice(at, at + bytes) });
  }
  const form = new FormData();
  for (const { file, path } of request.form) {
    form.append("path", path);
    form.append("file", file, file.name);
  }
  return api(`${address}files/`, { method: "POST", form });
}

/** Waits until the connection is back, or for a while. */
function pause(milliseconds) {
  return new Promise((resolve) => {
    const end = () => {
      window.removeEventListener("online", end);
      resolve();
    };
    window.addEventListener("online", end);
    setTimeout(end, milliseconds);
  });
}

/**
 * Sends all requests, some at once; one that fails for a lost connection or a server that is away is sent again until
 * it arrives.
 * @param {string} address of the upload
 * @param {object[][]} lists as `requestsLeft` gives them
 * @param {{sent: (request: object) => void, waiting: (error: Error|null) => void}} tell `waiting` with null: it goes on
 */
export async function sendAll(address, lists, tell) {
  const queue = [...lists];
  let refused = null;
  async function arrive(request) {
    for (let wait = 1000; ; wait = Math.min(2 * wait, LONGEST_WAIT)) {
      try {
        await sendOne(address, request);
        return;
      } catch (error) {
        const lasting = error.status >= 400 && error.status < 500 && ![408, 429].includes(error.status);
        if (lasting || refused) throw error;
        tell.waiting(error);
        await pause(wait);
      }
    }
  }
  async function lane() {
    while (queue.length && !refused) {
      for (const request of queue.shift()) {
        if (refused) return;
        await arrive(request);
        tell.waiting(null);
        tell.sent(request);
      }
    }
  }
  const lanes = Array.from({ length: LANES }, () =>
    lane().catch((error) => {
      refused ??= error;
    }),
  );
  await Promise.all(lanes);
  if (refused) throw refused;
}

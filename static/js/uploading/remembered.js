/** The uploads that this browser began and has not ended: {address, name, began, files, bytes}. */
const MOST = 5;
const key = () => `uploads:${document.querySelector('meta[name="user-id"]')?.content}`;

export function remembered() {
  try {
    return JSON.parse(localStorage.getItem(key()) ?? "[]");
  } catch {
    // The storage is full of something else, or forbidden: then nothing is remembered.
    return [];
  }
}

function keep(uploads) {
  try {
    localStorage.setItem(key(), JSON.stringify(uploads.slice(0, MOST)));
  } catch {
    // The upload itself goes on without.
  }
}

export function forget(address) {
  keep(remembered().filter((upload) => upload.address !== address));
}

export function remember(upload) {
  keep([upload, ...remembered().filter((other) => other.address !== upload.address)]);
}

/**
 * Whether these files go on with an upload: all that is there is among them, no larger than they are, and none was
 * changed since.
 * @param {{file: File, path: string}[]} items
 * @param {Object<string, number>} there
 * @param {number} began
 */
export function goesOn(items, there, began) {
  const files = new Map(items.map(({ path, file }) => [path, file]));
  return Object.entries(there).every(([path, bytes]) => {
    const file = files.get(path);
    return file && bytes <= file.size && file.lastModified <= began;
  });
}

/** The files of what was chosen or dropped, each with its path: {file, path}. */

/** @param {File[]} files of an input */
export function chosenFiles(files) {
  return files.map((file) => ({ file, path: file.webkitRelativePath || file.name }));
}

/**
 * The files that were dropped, those of folders with all that is below them.
 * @param {DataTransfer} transfer
 */
export async function droppedFiles(transfer) {
  // At once: the browser forgets them when the event ends.
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return chosenFiles([...transfer.files]);
  const found = [];
  while (entries.length) {
    const entry = entries.pop();
    if (entry.isDirectory) entries.push(...(await members(entry)));
    else {
      const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
      found.push({ file, path: entry.fullPath.replace(/^\//, "") });
    }
  }
  return found.sort((one, other) => (one.path < other.path ? -1 : 1));
}

/** What lies in a folder; the browser tells a hundred at a time. */
async function members(folder) {
  const reader = folder.createReader();
  const all = [];
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return all;
    all.push(...some);
  }
}

/** Files that systems leave behind aren't sent. */
export function isWanted({ path }) {
  return !path.split("/").some((part) => part.startsWith("."));
}

/** What people call the upload of these files: its folder, or its only file, or the first of them. */
export function nameOf(items) {
  return items[0].path.split("/")[0];
}

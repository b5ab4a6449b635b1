/** Which ranks make a page of the grid; asks the store and knows no document. */

/** @typedef {import("./store.js").CandidateStore} Store */

/** `size` ranks that end before `rank`, or the first ones where fewer are before it. */
export function pageBefore(store, rank, size) {
  let first = store.previous(rank);
  if (first === null) return [];
  for (let step = 1; step < size; step += 1) first = store.previous(first) ?? first;
  return store.visibleRanks(first, size);
}

/** The last page of what the filter shows; empty where it shows nothing. */
export function lastPage(store, size) {
  return pageBefore(store, store.size + 1, size);
}

/**
 * The page after `ranks` is submitted: what is left of it, then what comes after it, from the next unlabelled on;
 * at the end of the list, from the first gap on.
 * @param {Store} store
 * @param {number[]} ranks
 * @param {number[]} left those of them that were not submitted
 * @param {number} size
 * @returns {number[]} empty when all is labelled
 */
export function following(store, ranks, left, size) {
  const after = store.next(ranks.at(-1) ?? 0, { unlabelled: true });
  const from = after ?? (left.length ? null : store.next(0, { unlabelled: true }));
  const more = from === null ? [] : store.visibleRanks(from, size);
  return [...left, ...more.filter((rank) => !left.includes(rank)).slice(0, size - left.length)];
}

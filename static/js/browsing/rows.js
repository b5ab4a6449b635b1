/** The arithmetic of a grid of which only the rows in sight are in the document. */

export const GAP = 6;
/** Rows that are drawn above and below those in sight. */
const MARGIN = 3;
/** Pixels; Firefox shows nothing beyond some 17 million. */
const HIGHEST = 15_000_000;
const STEPS = { ArrowLeft: -1, ArrowRight: 1 };

/**
 * How many tiles of about a size lie in a row, and how large they become; `caption` is what stands below each.
 * @param {{width: number, size: number, caption: number}} box in pixels
 */
export function layout({ width, size, caption }) {
  const columns = Math.max(1, Math.floor((width + GAP) / (size + GAP)));
  const tile = Math.max(1, (width - (columns - 1) * GAP) / columns);
  return { columns, tile, row: tile + caption + GAP };
}

/** How many positions there is room for. */
export function room({ columns, row }, length) {
  return Math.min(length, Math.floor(HIGHEST / row) * columns);
}

/** The positions to draw, where their first row begins, and the height of all rows. */
export function inSight({ columns, row }, length, top, height) {
  const rows = Math.ceil(length / columns);
  const first = Math.min(Math.max(0, Math.floor(top / row) - MARGIN), Math.max(0, rows - 1));
  const last = Math.min(rows, Math.max(0, Math.ceil((top + height) / row)) + MARGIN);
  return {
    first: first * columns,
    last: Math.max(first * columns, Math.min(length, last * columns)),
    offset: first * row,
    height: rows * row,
  };
}

/** The position to which a key goes, or null for a key that goes nowhere. */
export function positionAfter(key, position, columns, rowsInSight, length) {
  const page = Math.max(1, rowsInSight - 1) * columns;
  const by = { ...STEPS, ArrowUp: -columns, ArrowDown: columns, PageUp: -page, PageDown: page }[key];
  if (key === "Home") return 0;
  if (key === "End") return length - 1;
  return by ? Math.min(length - 1, Math.max(0, position + by)) : null;
}

/** How many columns and rows a page of thumbnails gets, and which tile lies where; knows no document. */

export const FEWEST = 12;
export const MOST = 60;
export const USUAL = 30;
/** Between tiles, in CSS pixels; the same in grid.css. */
export const GAP = 4;

/** What the keys step through: numbers that divide into rows without holes in most windows. */
const STEPS = [12, 15, 18, 20, 24, 28, 30, 35, 40, 45, 48, 54, 60];

/** A number of tiles that is allowed. */
export function allowedSize(size) {
  return Number.isFinite(size) ? Math.min(MOST, Math.max(FEWEST, Math.round(size))) : USUAL;
}

/** The next larger (by > 0) or smaller number of tiles. */
export function steppedSize(size, by) {
  return by > 0
    ? (STEPS.find((step) => step > size) ?? MOST)
    : (STEPS.findLast((step) => step < size) ?? FEWEST);
}

/**
 * How far a tile may be from square before the rest of it counts for nothing: a crop fills what most pictures could,
 * a whole picture leaves the rest of a long tile empty.
 */
const LONGEST = { cropped: 1.4, whole: 1.1 };
/** Of the largest: tiles that show this much are as good, and then fewer empty cells decide. */
const NEARLY = 0.94;

/**
 * The columns and rows in which `count` tiles fill a box without scrolling and show most of their pictures.
 * @param {{width: number, height: number, count: number, whole?: boolean, gap?: number}} box sizes in CSS pixels;
 *   `whole` for pictures that are not cropped
 * @returns {{columns: number, rows: number}}
 */
export function bestLayout({ width, height, count, whole = false, gap = GAP }) {
  const longest = whole ? LONGEST.whole : LONGEST.cropped;
  const found = [];
  for (let columns = 1; columns <= Math.max(1, count); columns += 1) {
    const rows = Math.max(1, Math.ceil(count / columns));
    const wide = Math.max(0, (width - gap * (columns - 1)) / columns);
    const high = Math.max(0, (height - gap * (rows - 1)) / rows);
    const area = Math.min(wide, high * longest) * Math.min(high, wide * longest);
    found.push({ columns, rows, area, empty: columns * rows - count });
  }
  const most = Math.max(...found.map(({ area }) => area));
  const good = found.filter(({ area }) => area >= most * NEARLY);
  good.sort((one, other) => one.empty - other.empty || other.area - one.area);
  const [{ columns, rows }] = good;
  return { columns, rows };
}

/**
 * The tiles under a straight stroke, in its order, each once: a fast pointer reports few points, and none between
 * them may be passed over.
 * @param {{x: number, y: number}} from in pixels from the grid's left upper corner
 * @param {{x: number, y: number}} to
 * @param {{columns: number, rows: number, width: number, height: number, count: number}} grid
 * @returns {number[]} indices of tiles
 */
export function tilesUnder(from, to, grid) {
  const cellWidth = grid.width / grid.columns;
  const cellHeight = grid.height / grid.rows;
  const length = Math.hypot((to.x - from.x) / cellWidth, (to.y - from.y) / cellHeight);
  const steps = Math.max(1, Math.ceil(length * 8));
  const found = new Set();
  for (let step = 0; step <= steps; step += 1) {
    const column = Math.floor((from.x + ((to.x - from.x) * step) / steps) / cellWidth);
    const row = Math.floor((from.y + ((to.y - from.y) * step) / steps) / cellHeight);
    const index = row * grid.columns + column;
    const inside = column >= 0 && column < grid.columns && row >= 0 && index < grid.count;
    if (inside) found.add(index);
  }
  return [...found];
}

/** The index that an arrow key leads to, the same at an edge; left and right go on in the row beside. */
export function neighbour(index, direction, { columns, count }) {
  const to = index + { left: -1, right: 1, up: -columns, down: columns }[direction];
  return to >= 0 && to < count ? to : index;
}

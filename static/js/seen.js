/** Whether a person sees an image well enough for a key to label it, on whatever page. */

const NOT_YET = "Not labeled: the image wasn't on the screen yet.";
const NOT_SEEN = "Not labeled: the image isn't in view.";
/** CSS pixels of its longer side below which an image can't be judged, unless it has no more itself. */
const LEAST_SHOWN = 160;
/** Of nine points of what is shown of the image, how many have to be in the window with nothing over them. */
const POINTS_SEEN = 7;

/** Whether enough of the image is in the window, large enough and under nothing that isn't part of the stage. */
function inView(image, frame, stage) {
  const [whole, box] = [image, frame].map((node) => node.getBoundingClientRect());
  const [left, right] = [Math.max(whole.left, box.left), Math.min(whole.right, box.right)];
  const [top, bottom] = [Math.max(whole.top, box.top), Math.min(whole.bottom, box.bottom)];
  const own = Math.max(image.naturalWidth ?? LEAST_SHOWN, image.naturalHeight ?? LEAST_SHOWN);
  if (Math.max(right - left, bottom - top) < Math.min(LEAST_SHOWN, own) - 1) return false;
  const thirds = [1 / 6, 1 / 2, 5 / 6];
  const points = thirds.flatMap((x) => thirds.map((y) => [left + x * (right - left), top + y * (bottom - top)]));
  return points.filter((point) => stage.contains(document.elementFromPoint(...point))).length >= POINTS_SEEN;
}

/**
 * Says why a key may not label an image, which it brings into view for the next key; "" where a person sees it.
 * @param {?Element} image null while it isn't there
 * @param {Element} frame what is outside of it is cut off
 * @param {Element} [stage] what belongs to it may lie over the image
 * @returns {string} for the page's line of status
 */
export function whyUnseen(image, frame, stage = frame) {
  if (!image) return NOT_YET;
  if (inView(image, frame, stage)) return "";
  stage.scrollIntoView({ block: "nearest", behavior: "instant" });
  return NOT_SEEN;
}

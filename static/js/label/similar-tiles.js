/** The tiles of "More like this": a picture, how near it is, where it stands, and its marks. */

import { make, RELEVANCE_NAMES } from "./panel-tools.js";

const MARKS = [
  ["relevant", "R"],
  ["not_relevant", "N"],
  ["unsure", "U"],
];

/**
 * The three buttons that mark an image, as `[data-mark]`.
 * @param {(relevance: string) => void} mark
 * @returns {HTMLElement}
 */
export function markButtons(mark) {
  const buttons = MARKS.map(([relevance, letter]) =>
    make(
      "button",
      {
        type: "button",
        class: `similar-mark ${relevance}`,
        "data-mark": relevance,
        "aria-label": RELEVANCE_NAMES[relevance],
        title: RELEVANCE_NAMES[relevance],
        "aria-pressed": "false",
        on: { click: () => mark(relevance) },
      },
      letter,
    ),
  );
  return make("div", { class: "similar-marks", role: "group", "aria-label": "Label" }, ...buttons);
}

/** Show on the buttons made by `markButtons` what stands. */
export function showMark(root, relevance) {
  root.dataset.relevance = relevance || "none";
  for (const button of root.querySelectorAll("[data-mark]")) {
    button.setAttribute("aria-pressed", String(button.dataset.mark === relevance));
  }
}

/** Where an image stands, e.g. "0.83 · in the list at rank 812". */
export function placeOf(item) {
  const rank = item.rank ? `in the list at rank ${item.rank.toLocaleString("en")}` : "not in the list";
  return `${item.score.toFixed(2)} · ${rank}`;
}

/**
 * One tile of the grid.
 * @param {{image: number, thumbnail_url: string, score: number, rank: number|null, species: object|null}} item
 * @param {number} index place among the nearest, from 0
 * @param {{mark: (relevance: string) => void, closer: () => void, more: () => void}} does
 */
export function tile(item, index, does) {
  const name = item.species?.common_name || item.species?.scientific_name || "";
  const picture = make("img", {
    src: item.thumbnail_url,
    alt: name,
    loading: index < 24 ? "eager" : "lazy",
    decoding: "async",
    on: { click: does.closer },
  });
  const more = make("button", {
    type: "button",
    class: "similar-more",
    "aria-label": "More like this one",
    title: "More like this one",
    text: "≈",
    on: { click: does.more },
  });
  const element = make(
    "div",
    { class: "similar-tile", role: "group", tabindex: "-1", "data-image": item.image },
    make("div", { class: "similar-picture" }, picture, more),
    make("p", { class: "similar-place", text: placeOf(item) }),
    markButtons(does.mark),
  );
  return make("li", {}, element);
}

/** The name of a tile for screen readers, with what stands. */
export function tileName(item, index, relevance) {
  const name = item.species?.common_name || item.species?.scientific_name;
  const stands = relevance ? `labelled ${RELEVANCE_NAMES[relevance].toLowerCase()}` : "no label";
  return [`Image ${index + 1}`, name, placeOf(item).replace(" · ", ", "), stands].filter(Boolean).join(", ");
}

/** Make one tile the one that Tab reaches, with its buttons; the others are reached by arrows. */
export function roving(grid, index) {
  grid.querySelectorAll(".similar-tile").forEach((element, at) => {
    const order = at === index ? "0" : "-1";
    element.tabIndex = Number(order);
    for (const button of element.querySelectorAll("button")) button.tabIndex = Number(order);
  });
}

/** How many tiles stand in a row now. */
export function columnsOf(grid) {
  const tops = [...grid.children].map((item) => item.offsetTop);
  const second = tops.findIndex((top) => top > tops[0]);
  return second === -1 ? Math.max(1, tops.length) : second;
}

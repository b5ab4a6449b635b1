/** A query with a candidate list, as labeling/studio/api.py serves it, and what the labeling page makes of it. */
import { FakeElement, JudgingServer, settle } from "./browser.js";

export const QUERY = 7;
const MOST_ACTS = 1000;
const LETTERS = { relevant: "r", not_relevant: "n", unsure: "u" };
const SOURCE_LETTERS = {
  list: "l",
  search: "s",
  similar: "m",
  audit: "a",
  import: "i",
  learned: "o",
  second: "b",
  run: "r",
};

/** The image at a rank. */
export const imageAt = (rank) => 100 + rank;

export class LabelingServer extends JudgingServer {
  constructor({ size = 20, total = size } = {}) {
    super();
    this.list = { id: 1, state: "ready", size, total, complete: size === total, unembedded: 0 };
    this.query = { state: "open", can_label: true };
    this.withdrawn = [];
    this.flagged = [];
    this.others = [];
    const base = `/api/queries/${QUERY}/`;
    this.pages.set(`${base}outline/`, () => this.#outline());
    this.pages.set(`${base}changes/`, (url) => this.#changes(Number(url.searchParams.get("cursor"))));
    this.pages.set(`${base}candidates/`, (url) => this.#candidates(url.searchParams));
    this.pages.set("/api/preferences/labeling/", () => ({}));
  }

  get ranks() {
    return Array.from({ length: this.list.size }, (_, place) => place + 1);
  }

  #standing(rank) {
    const last = this.last(this.user, QUERY, imageAt(rank));
    return last?.relevance ? last : null;
  }

  #outline() {
    const letters = (letter) =>
      this.ranks.map((rank) => (this.#standing(rank) ? letter(this.#standing(rank)) : "-")).join("");
    return {
      annotator: this.user,
      list: { ...this.list },
      query: { ...this.query },
      cursor: this.acts.length,
      images: this.ranks.map(imageAt),
      scores: this.ranks.map((rank) => 1 - rank / 1000),
      relevance: letters(({ relevance }) => LETTERS[relevance]),
      sources: letters(({ source }) => SOURCE_LETTERS[source]),
      grades: letters(({ grade }) => grade ?? "-"),
      withdrawn: this.withdrawn,
      flagged: this.flagged,
      minimum_labels: 0,
      hand_in: { rule: "streak or exhausted", ways: [] },
      progress: { stop: { required: 5 }, seconds_per_image: 2, active_seconds: 30 },
    };
  }

  #changes(cursor) {
    const acts = this.acts.slice(cursor, cursor + MOST_ACTS);
    const own = new Map(
      acts.filter(({ user, query }) => user === this.user && query === QUERY).map((act) => [act.image, act]),
    );
    return {
      query: { ...this.query },
      list: { id: this.list.id, size: this.list.size },
      own: [...own.values()].map(({ image, relevance, source, grade }) => ({ image, relevance, source, grade })),
      cursor: cursor + acts.length,
      withdrawn: this.withdrawn,
      flagged: this.flagged,
      others: this.others,
      comments: [],
    };
  }

  #candidates(parameters) {
    const start = Number(parameters.get("start_rank"));
    const wanted = parameters.has("ranks")
      ? parameters.get("ranks").split(",").map(Number)
      : this.ranks.filter((rank) => rank >= start && rank < start + Number(parameters.get("limit")));
    const found = wanted.filter((rank) => this.ranks.includes(rank) && !this.withdrawn.includes(rank));
    return {
      results: found.map((rank) => ({
        rank,
        image: imageAt(rank),
        url: `/images/${imageAt(rank)}.jpg`,
        thumbnail_url: `/thumbnails/${imageAt(rank)}.webp`,
        relevance: this.#standing(rank)?.relevance ?? null,
        grade: this.#standing(rank)?.grade ?? null,
        reason: this.#standing(rank)?.reason ?? "",
        flags: [],
      })),
    };
  }
}

/**
 * The studio of the query on a page, without views, at the first image that has no label.
 * @param {[string, string][]} mounts scripts, and what of each is mounted
 */
export async function studioOn(page, mounts = []) {
  const { Studio } = await page.load("studio/studio.js");
  const parts = await Promise.all(mounts.map(async ([path, name]) => (await page.load(path))[name]));
  const studio = new Studio(new FakeElement(), {
    query: QUERY,
    api: `/api/queries/${QUERY}/`,
    source: { kind: "list" },
    user: { id: page.user, name: "ann", role: "annotator" },
    least_relevant_grade: null,
    keymap: { actions: [], signs: {} },
    preferences: { view: {}, keys: {} },
  });
  for (const mount of parts) mount(studio);
  await studio.start();
  await settle();
  return studio;
}

/** What the store has for the first ranks. */
export const labels = (store, count) => Array.from({ length: count }, (_, place) => store.entry(place + 1).relevance);

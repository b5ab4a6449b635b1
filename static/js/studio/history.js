/** The history of the judgments of the image on screen: who, when, from what to what, and where. */
import { api } from "../api.js";
import { make, modal, showState } from "../dom.js";
import { ago, counted, GRADE_NAMES, moment, number, RELEVANCE_NAMES, sentence, trouble } from "../words.js";

const SOURCES = {
  list: "in the list",
  search: "in a search",
  similar: "in More like this",
  audit: "in an audit",
  import: "imported",
  learned: "in the order that learns",
  second: "as a second opinion",
  run: "as an image of a run",
  correction: "as a correction",
  reader: "among more images",
  picked: "among further images",
};

/** @param {Studio} studio */
export function mount(studio) {
  const dialog = studio.root.querySelector("[data-history]");
  if (!dialog) return;
  const body = dialog.querySelector("[data-history-body]");
  const state = dialog.querySelector("[data-history-state]");
  const retry = dialog.querySelector("[data-history-retry]");
  const open = modal(dialog);
  let image = null;

  async function load() {
    const wanted = image;
    retry.hidden = true;
    showState(state, "Loading …");
    let results;
    try {
      ({ results } = await api(`${studio.api}history/?image=${wanted}`));
    } catch (error) {
      if (wanted !== image) return;
      const why = "The history can't be loaded without it; your labels are stored in this browser.";
      showState(state, trouble(error, why), true);
      retry.hidden = false;
      return;
    }
    if (wanted !== image) return;
    body.replaceChildren(results.length ? historyList(results) : nothing());
    const waiting = studio.outbox.waiting;
    const verb = waiting === 1 ? "waits" : "wait";
    state.textContent = waiting
      ? `${counted(waiting, "label")} still ${verb} to be saved and may not be listed yet.`
      : results.length
        ? counted(results.length, "judgment")
        : "";
  }

  studio.action("history", () => {
    const entry = studio.store.entry(studio.rank);
    if (!entry) return;
    image = entry.image;
    const whose =
      studio.user.role === "annotator"
        ? "Your own judgments; reviewers see everybody's."
        : "The judgments of all annotators.";
    dialog.querySelector("[data-history-whose]").textContent = `${sentence(studio.source.where(entry.rank))}. ${whose}`;
    body.replaceChildren();
    open(dialog.querySelector(".panel-foot [data-close]"));
    load();
  });
  retry.addEventListener("click", load);
}

/** The API's acts of judging as a list, the newest first. */
export function historyList(results) {
  const now = new Date();
  const items = [...results].reverse().map((event) => {
    const date = new Date(event.at);
    const where = [SOURCES[event.source] ?? event.source];
    if (event.revision) where.push(`revision ${number(event.revision)}, place ${number(event.place)}`);
    if (event.rank) where.push(`rank ${number(event.rank)}`);
    if (event.seconds > 0) where.push(`${event.seconds.toFixed(1)} s`);
    return make(
      "li",
      {},
      make(
        "p",
        { class: "history-change" },
        badge(event.previous, "no label"),
        make("span", { "aria-hidden": "true", text: "→" }),
        make("span", { class: "visually-hidden", text: "to" }),
        badge(event.relevance, "taken back", event.grade),
      ),
      make("p", {}, make("strong", { text: event.annotator }), ` ${where.join(" · ")}`),
      event.reason ? make("p", { dir: "auto", text: event.reason }) : "",
      make(
        "p",
        { class: "small muted" },
        make("time", { datetime: event.at, text: `${ago(date, now)} · ${moment(date)}` }),
      ),
    );
  });
  return make("ol", { class: "history-list", reversed: true }, ...items);
}

function badge(relevance, nothingText, grade = null) {
  return make("span", {
    class: `badge ${relevance || "none"}`,
    text: GRADE_NAMES[grade] ?? (relevance ? RELEVANCE_NAMES[relevance] : nothingText),
  });
}

function nothing() {
  return make(
    "div",
    { class: "empty" },
    make("strong", { text: "No judgment yet" }),
    make("span", { text: "Every label of this image and every change to it will be listed here." }),
  );
}

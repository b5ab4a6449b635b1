/** What the labeling page shows of a review besides its images: votes and history, what is decided, the ways out. */
import { api } from "../api.js";
import { make } from "../dom.js";
import { number, RELEVANCE_NAMES, trouble } from "../words.js";
import { historyList } from "./history.js";

const HISTORY_SOON = 150;

/** @param {Studio} studio its source is a ReviewSource */
export function mount(studio) {
  mountDecided(studio);
  mountVotes(studio);
  mountHistory(studio);
  const { still_labeling: people } = studio.source.given;
  if (people.length) {
    studio.notices.show("still-labeling", {
      text: `Still labeling: ${people.join(", ")}. More images may come.`,
      actions: [{ label: "OK", run: () => studio.notices.hide("still-labeling") }],
    });
  }
  studio.root.addEventListener("click", (event) => {
    const link = event.target.closest("[data-review-complete]");
    if (link && studio.outbox.waiting) {
      event.preventDefault();
      complete(studio, link.href);
    }
  });
}

/** Goes to the completion once every judgment is stored. */
async function complete(studio, address) {
  studio.say("Saving your judgments …");
  await studio.outbox.drained();
  window.location.assign(address);
}

function mountDecided(studio) {
  const shown = (name) => studio.root.querySelector(`[data-show="${name}"]`);
  const meter = studio.root.querySelector(".meters progress");
  studio.on("progress", ({ judged, candidates }) => {
    shown("judged").textContent = number(judged);
    shown("candidates").textContent = number(candidates);
    meter.max = Math.max(1, candidates);
    meter.value = judged;
  });
}

/** Everybody's vote on the image on screen, and the way to its place in the list. */
function mountVotes(studio) {
  const votes = studio.root.querySelector("[data-votes]");
  const shown = studio.root.querySelector("[data-votes-shown]");
  const hidden = studio.root.querySelector("[data-votes-hidden]");
  const link = studio.root.querySelector("[data-in-list]");
  const ranks = studio.root.querySelector("[data-model-ranks]");
  const render = () => {
    const { store, source, rank } = studio;
    const there = store.entry(rank) !== null;
    const byModel = there ? source.items[rank - 1].model_ranks : [];
    ranks.hidden = !byModel.length;
    ranks.textContent = `Rank by ${byModel.map((ranked) => `${ranked.model}: ${number(ranked.rank)}`).join("; by ")}`;
    shown.hidden = !there || !source.votesShown(rank);
    hidden.hidden = !there || !shown.hidden;
    votes.replaceChildren(...(there ? source.votes(rank).map((vote) => item(studio, vote)) : []));
    const listed = there && source.listRank(rank);
    link.hidden = !listed || studio.closed !== "";
    link.href = `${link.dataset.inList}?rank=${listed}`;
  };
  for (const event of ["rank", "labels", "closed"]) studio.on(event, render);
  studio.action("votes", () => {
    studio.source.blind = false;
    render();
  });
}

function item({ user }, { annotator, username, relevance, decides }) {
  const own = annotator === user.id;
  return make(
    "li",
    {},
    make("span", { class: `badge ${relevance}`, text: RELEVANCE_NAMES[relevance] }),
    make("span", { text: own ? "You" : username }),
    decides && !own ? make("span", { class: "small muted", text: "reviewer" }) : null,
  );
}

/** The history of the image on screen, read when one stays at it and when one has judged it. */
function mountHistory(studio) {
  const body = studio.root.querySelector("[data-review-history]");
  let image = null;
  let timer = 0;
  async function load() {
    const wanted = image;
    let content;
    try {
      const { results } = await api(`${studio.api}history/?image=${wanted}`);
      content = historyList(results);
    } catch (error) {
      content = make("p", { class: "small muted", text: trouble(error, "The history can't be loaded without it.") });
    }
    if (wanted === image) body.replaceChildren(content);
  }
  const soon = () => {
    clearTimeout(timer);
    if (image !== null) timer = setTimeout(load, HISTORY_SOON);
  };
  studio.on("rank", (rank) => {
    const now = studio.store.entry(rank)?.image ?? null;
    if (now === image) return;
    image = now;
    body.replaceChildren();
    soon();
  });
  studio.outbox.addEventListener("answer", soon);
}

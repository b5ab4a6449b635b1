/** The order that learns on the page: when another revision is asked for, and what stays in place when it comes. */
import { number } from "../words.js";

const LABELS = 10;
/** Images after the present one that stay next, since they are decoded. */
const STAYS = 4;

/** What is on the screen, and one by one what is decoded next. */
function held({ store, rank, view, views }) {
  if (view === "grid") return views.grid.ranks;
  return [rank, ...store.after(rank, STAYS, { unlabeled: true })].filter((next) => store.entry(next));
}

/** @param {Studio} studio */
export function mount(studio) {
  const { source, outbox, root } = studio;
  /** Judgments that the server has stored since the last revision. */
  let fresh = 0;
  let asking = false;

  const show = () => {
    const node = root.querySelector("[data-revision]");
    node.textContent = source.revision ? `, revision ${number(source.revision.number)}` : "";
  };

  async function ask() {
    if (asking) return;
    asking = true;
    const before = fresh;
    const revision = await source.ask();
    asking = false;
    if (revision === null) return;
    fresh -= before;
    source.take(revision, held(studio));
    if (fresh >= LABELS) ask();
  }

  studio.on("rank", (rank) => {
    const shown = studio.view === "grid" ? studio.views.grid.ranks : [rank];
    for (const met of shown) source.met.add(met);
  });
  studio.on("order", show);
  studio.on("ready", show);
  outbox.addEventListener("answer", ({ detail: { results } }) => {
    fresh += results.filter(({ status }) => status === "stored").length;
    if (fresh >= LABELS || (fresh && studio.view === "grid")) ask();
  });
}

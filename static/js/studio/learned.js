/** The order that learns on the page: when another revision is asked for, and what stays in place when it comes. */
import { number } from "../words.js";

const LABELS = 10;
/** Images after the present one that stay next, since they are decoded. */
const STAYS = 4;

/** What is on the screen, and one by one what is decoded next. */
function held({ store, rank, view, views }) {
  if (view === "grid") return views.grid.ranks;
  return [rank, ...store.after(rank, STAYS, { unlabeled: true })].filter((one) => store.entry(one));
}

/** @param {Studio} studio */
export function mount(studio) {
  const { store, outbox, root } = studio;
  /** Judgments that the server has stored since the last revision. */
  let fresh = 0;
  let asking = false;

  const show = () => {
    const node = root.querySelector("[data-revision]");
    node.textContent = store.revision ? `, revision ${number(store.revision.number)}` : "";
  };

  async function ask() {
    if (asking) return;
    asking = true;
    const before = fresh;
    const made = await store.ask();
    asking = false;
    if (made === null) return;
    fresh -= before;
    store.take(made, held(studio));
    if (fresh >= LABELS) ask();
  }

  studio.on("rank", (rank) => {
    const ranks = studio.view === "grid" ? studio.views.grid.ranks : [rank];
    for (const one of ranks) store.met.add(one);
  });
  studio.on("order", show);
  studio.on("ready", show);
  outbox.addEventListener("answer", ({ detail: { results } }) => {
    fresh += results.filter(({ status }) => status === "stored").length;
    if (fresh >= LABELS || (fresh && studio.view === "grid")) ask();
  });
}

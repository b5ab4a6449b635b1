/** What happens elsewhere while one labels: the query closes, the list changes, others label, images leave. */
import { counted } from "./panel-tools.js";

const CLOSED = {
  open: "You have handed in your part of this query.",
  draft: "The query is a draft again, so it isn't labelled now.",
  submitted: "The query was handed in, so it isn't labelled now.",
  complete: "The query was completed, so it isn't labelled any more.",
  rejected: "The query was rejected, so it isn't labelled any more.",
};

function watchQuery(studio) {
  const { store, notices } = studio;
  const render = () => {
    const { state, can_label: open } = store.query;
    studio.closed = open ? "" : (CLOSED[state] ?? "The query isn't labelled now.");
    studio.emit("closed", studio.closed);
    if (open) {
      notices.hide("closed");
      return;
    }
    notices.show("closed", {
      kind: "warning",
      text: `${studio.closed} What you judged before is kept.`,
      actions: [{ label: "All queries", run: () => window.location.assign("/") }],
    });
  };
  store.addEventListener("query", render);
  studio.on("ready", render);
}

/** Keeps the image on the screen, or the nearest place, when the list is another one. */
function watchList(studio) {
  const { store, notices } = studio;
  let image = null;
  studio.on("rank", (rank) => {
    image = store.entry(rank)?.image ?? null;
  });
  studio.on("list", () => {
    if (!["ready", "end"].includes(studio.state)) return;
    if (store.list.state !== "ready") {
      studio.start();
      return;
    }
    const rank = image === null ? null : store.rankOf(image);
    if (rank) studio.go(rank);
    else studio.toNextUnlabelled(Math.min(studio.rank, store.size));
    notices.show("list", {
      text: `The candidate list has changed: it has ${counted(store.size, "candidate")} now.`,
      actions: [{ label: "Fine", run: () => notices.hide("list") }],
    });
  });
}

/** Goes on from an image that is not shown any more. */
function watchVisible(studio) {
  const { store } = studio;
  const move = (why) => {
    if (studio.state !== "ready" || store.visible(studio.rank)) return;
    const rank = store.next(studio.rank, { unlabelled: true }) ?? store.next(studio.rank) ?? store.next(0);
    studio.go(rank ?? store.size + 1);
    if (why) studio.say(why);
  };
  store.addEventListener("withdrawn", () => move("That image was withdrawn, so it isn't labelled."));
  studio.on("matching", () => move(""));
}

function watchOthers(studio) {
  const node = studio.root.querySelector("[data-others]");
  studio.changes.addEventListener("others", () => {
    const people = studio.changes.others;
    node.textContent = people
      .map(({ annotator, judged }) => `${annotator} labelled ${judged.toLocaleString("en")}`)
      .join(", ")
      .replace(/$/, people.length ? " here today" : "");
    node.title = node.textContent;
    studio.emit("changes", { others: people });
  });
  studio.changes.addEventListener("own", ({ detail: { marks } }) => {
    studio.say(`${counted(marks.length, "label")} came from another tab or device.`);
    studio.emit("changes", { own: marks });
  });
}

/** @param {import("./studio.js").Studio} studio */
export function mountWatch(studio) {
  watchQuery(studio);
  watchList(studio);
  watchVisible(studio);
  watchOthers(studio);
  studio.on("ready", () => studio.changes.start());
}

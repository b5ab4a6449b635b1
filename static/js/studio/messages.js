/** What the page says: instead of an image (loading, none, failed, the end), in notices, and of what is saved. */
import { button, make } from "../dom.js";
import { counted, number } from "../words.js";
import { draw, reach, sentences } from "./audit.js";

function box(title, text, ...buttons) {
  return make(
    "div",
    { class: "empty" },
    make("strong", { text: title }),
    text ? make("p", { text }) : null,
    buttons.length ? make("div", { class: "row" }, ...buttons) : null,
  );
}

function choice(text, run, primary = false) {
  return button(text, run, { class: primary ? "button primary" : "button" });
}

const QUERIES = () => make("a", { class: "button", href: "/", text: "All queries" });

function building() {
  return box(
    "The candidate list is being made",
    "Every image of the filter is compared with the query. This page continues when it is ready.",
  );
}

function nothing(list) {
  if (list.state === "failed") return box("The candidate list could not be made", list.detail, QUERIES());
  return box("There is nothing to label", list.detail || "The list holds no candidates.", QUERIES());
}

function failed(studio, error) {
  const again = choice("Try again", () => studio.start(), true);
  if (error.status === 401 || error.status === 403) {
    const { pathname, search } = window.location;
    const href = `${studio.page.login}?next=${encodeURIComponent(pathname + search)}`;
    return box(
      "You are logged out",
      "Your judgments are stored on this device and will be sent after you log in again.",
      make("a", { class: "button primary", href, text: "Log in" }),
    );
  }
  return box("The candidates could not be loaded", error.message, again, QUERIES());
}

function nothingToReview(studio) {
  const { only } = studio.source.given;
  const text = only ? `No image is ${only}.` : "No image is unsure and no two annotators disagree.";
  return box(only ? "No image of this kind" : "Nothing to review", text, ...waysOut(studio));
}

/** To the completion where the query is handed in, and back to its page. */
function waysOut(studio, primary = true) {
  const complete = studio.root.querySelector("[data-review-complete]")?.cloneNode(true);
  complete?.classList.remove("compact");
  complete?.classList.toggle("primary", primary);
  const { href } = studio.root.querySelector("a.back");
  const back = make("a", { class: "button", href, text: "Back to the query" });
  return complete ? [complete, back] : [back];
}

function endOfReview(studio) {
  const { store, source } = studio;
  const { candidates, remaining } = store.progress;
  const { only } = source.given;
  const last = choice("Back to the last image", () => studio.go(store.previous(store.size + 1)));
  if (!remaining) {
    return box(
      only ? `No more ${only} images` : "No more images to decide",
      `${counted(candidates, "image")} decided.`,
      ...waysOut(studio),
      last,
    );
  }
  const open = store.visibleRanks(1, store.size).find((rank) => !source.isDone(rank));
  return box(
    "The end of the review",
    `${counted(remaining, "image")} ${remaining === 1 ? "is" : "are"} still undecided.`,
    choice("Go to the first undecided image", () => studio.go(open), true),
    ...waysOut(studio, false),
  );
}

/** The way to the next query of the same kind. */
function endOfBlind(studio) {
  const { store, root } = studio;
  if (store.outline.left) return box("Saving your judgments …", "What is left shows when they are stored.");
  const link = (to, text, primary) => make("a", { class: primary ? "button primary" : "button", href: to, text });
  const { href } = root.querySelector("a.back");
  const { end_title: endTitle, end_text: endText, next } = studio.source.given;
  return box(endTitle, endText, link(next, "Next query", true), link(href, "Back to the query"));
}

/** What is certified, and the way on; also before anything is drawn. */
function endOfAudit(studio) {
  if (studio.blind) return endOfBlind(studio);
  const { drawn, unjudged, now, to_judge: waiting } = studio.store.outline;
  const { paused, exhausted } = studio.source;
  const left = unjudged && !exhausted;
  if (waiting) return box("Saving your judgments …", "What they certify shows when they are stored.");
  const { href } = studio.root.querySelector("a.back");
  const { ranking } = studio.source.given;
  const [name, label] = drawn ? ["Draw more images", "Audit"] : ["Draw images", "An audit by random images"];
  const done = now.met || !left;
  const leave = !done && (now.out_of_reach || paused);
  const link = (to, text, primary) => make("a", { class: primary ? "button primary" : "button", href: to, text });
  const ways = [link(ranking, "To the ranking", leave), link(href, "Back to the query", done)];
  if (left) ways.unshift(choice(name, () => draw(studio), !done && !leave));
  return box(now.met ? "Certified" : label, sentences(now.sentence, reach(now), paused), ...ways);
}

function end(studio) {
  if (studio.review) return endOfReview(studio);
  if (studio.audit) return endOfAudit(studio);
  const { store } = studio;
  const { list, progress } = store;
  const whole = (primary) =>
    choice(
      "Show the whole list",
      () => {
        store.setMatching(null);
        studio.toNextUnlabeled();
      },
      primary,
    );
  if (store.next(0) === null) {
    return store.matching
      ? box("Nothing to show", "No candidate matches the filters.", whole(true))
      : box("Nothing to show", "All images of the list were withdrawn.", QUERIES());
  }
  const back = choice("Back to the last image", () => studio.go(store.previous(store.size + 1)));
  const have = progress.remaining === 1 ? "has" : "have";
  if (progress.remaining > 0) {
    if (store.matching && store.next(0, { unlabeled: true }) === null) {
      return box(
        "No more images to label under these filters",
        `${counted(progress.remaining, "other candidate")} of the list ${have} no label yet.`,
        whole(true),
        back,
      );
    }
    if (store.next(0, { unlabeled: true }) === null) {
      return box(
        "The end of what comes up",
        `${counted(progress.remaining, "candidate")} of the list ${have} no label and ${progress.remaining === 1 ? "doesn’t" : "don’t"} come up ` +
          "in this order. Audits draw from all of them.",
        choice("Hand in …", () => studio.run("stop_panel"), true),
        back,
      );
    }
    return box(
      "The end of the list",
      `${counted(progress.remaining, "candidate")} before it ${have} no label yet; ` +
        "the streak waits at the first of them.",
      choice("Go to the first unlabeled image", () => studio.toNextUnlabeled(), true),
      back,
    );
  }
  const labeled = `${counted(progress.candidates, "candidate")} labeled, ${number(progress.relevant)} relevant.`;
  const stop = (primary) => choice("Hand in …", () => studio.run("stop_panel"), primary);
  if (progress.stop.exhausted) {
    return box("The list is exhausted", `${labeled} Hand the query in, or step back to check.`, stop(true), back);
  }
  if (list.size < list.total) {
    return box(
      "The end of the list so far",
      `${labeled} The filter has ${counted(list.total, "image")}.`,
      choice("Extend the list", (event) => extend(studio, event.currentTarget), true),
      stop(false),
      back,
    );
  }
  const missing = list.unembedded
    ? ` The list isn't exhausted: ${counted(list.unembedded, "image")} of the filter can't be ranked yet.`
    : "";
  return box("All candidates are labeled", labeled + missing, stop(true), back);
}

async function extend(studio, pressed) {
  pressed.disabled = true;
  pressed.textContent = "Extending …";
  try {
    await studio.extend();
  } catch (error) {
    pressed.disabled = false;
    pressed.textContent = "Extend the list";
    studio.notices.show("extend", {
      kind: "error",
      text: `The list was not extended: ${error.message}`,
      actions: [{ label: "Dismiss", run: () => studio.notices.hide("extend") }],
    });
  }
}

/** @param {Studio} studio */
export function mountMessages(studio) {
  const root = studio.root.querySelector("[data-message]");
  const makers = {
    building,
    empty: ({ list }) => {
      if (studio.audit) return endOfAudit(studio);
      return studio.review ? nothingToReview(studio) : nothing(list);
    },
    failed: ({ error }) => failed(studio, error),
    end: () => end(studio),
  };
  const render = (detail) => {
    const content = makers[detail.state]?.(detail);
    root.replaceChildren(...(content ? [content] : []));
    if (content && detail.state !== "building") studio.announce(content.textContent);
  };
  studio.on("state", render);
  for (const event of ["progress", "list", "matching"]) {
    studio.on(event, () => studio.state === "end" && render({ state: "end" }));
  }
}

/** Messages over the top of the stage: they come and go without moving anything. */
export class Notices {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.shown = new Map();
  }

  /**
   * Shows a notice, or changes the one with the same id.
   * @param {string} id
   * @param {{kind?: "info"|"success"|"warning"|"error", text: string, actions?: {label: string, run?: () => void,
   *   href?: string}[]}} notice a link opens in a new tab, since this page must stay
   */
  show(id, { kind = "info", text, actions = [] }) {
    const known = this.shown.get(id);
    const content = JSON.stringify([kind, text, actions.map(({ label }) => label)]);
    if (known?.content === content) {
      known.actions = actions;
      return;
    }
    const entry = { content, actions };
    const buttons = actions.map(({ label, href }, index) =>
      href
        ? make("a", { class: "button compact", href, target: "_blank", rel: "noopener", text: label })
        : button(label, () => entry.actions[index].run()),
    );
    entry.element = make(
      "div",
      {
        class: kind === "info" ? "notice" : `notice ${kind}`,
        "data-notice": id,
        role: kind === "error" ? "alert" : "status",
      },
      make("span", { text }),
      buttons.length ? make("span", { class: "row" }, ...buttons) : null,
    );
    if (known) known.element.replaceWith(entry.element);
    else this.root.append(entry.element);
    this.shown.set(id, entry);
  }

  hide(id) {
    this.shown.get(id)?.element.remove();
    this.shown.delete(id);
  }
}

/** Why judgments wait, and what one can do about it. */
function notice(studio, { waiting, problem }) {
  const retry = { label: "Try now", run: () => studio.outbox.retryNow() };
  const login = { label: "Log in", href: studio.page.login };
  const [text, when, ...actions] = {
    offline: ["There is no connection to the server.", "when it is back", retry],
    logged_out: ["You are logged out.", "when you have logged in again", login, retry],
    other_user: ["Somebody else has logged in in this browser.", "when you log in again", login, retry],
    full: [problem.message, "when there is room", retry],
    server: [problem.message, "as soon as the server answers", retry],
  }[problem.kind];
  const are = waiting === 1 ? "is" : "are";
  const theirs = `${counted(waiting, "judgment")} ${are} stored in this browser and will be sent ${when}.`;
  return { kind: "warning", text: `${text} ${theirs}`, actions };
}

const SHORT = {
  offline: "Offline",
  logged_out: "Logged out",
  other_user: "Other user",
  full: "Disk full",
  server: "No answer",
};

function summary({ waiting, saved, problem, elsewhere }) {
  const done = number(saved);
  const counts = `${number(waiting)} waiting, ${done} saved`;
  if (waiting) return problem ? `${SHORT[problem.kind]} · ${counts}` : counts;
  if (elsewhere) return `All saved here · ${elsewhere} waiting elsewhere`;
  return saved ? `All saved · ${done}` : "All saved";
}

/** @param {Studio} studio */
export function mountSaved(studio) {
  const node = studio.root.querySelector("[data-saved]");
  const text = node.querySelector("[data-saved-text]");
  let hadProblem = false;
  const render = () => {
    const { waiting, problem, durable } = studio.outbox;
    const troubled = Boolean(problem && waiting);
    text.textContent = summary(studio.outbox);
    node.title = text.textContent;
    node.classList.toggle("waiting", waiting > 0 && !troubled);
    node.classList.toggle("trouble", troubled);
    if (troubled) studio.notices.show("outbox", notice(studio, studio.outbox));
    else studio.notices.hide("outbox");
    if (hadProblem && !problem) studio.announce("The connection is back.");
    hadProblem = Boolean(problem);
    if (durable) studio.notices.hide("not-durable");
    else {
      studio.notices.show("not-durable", {
        kind: "warning",
        text:
          "This browser can't store judgments (a private window, or a full disk). " +
          "Don’t close this page until everything is saved.",
      });
    }
  };
  studio.outbox.addEventListener("state", render);
  // What waits is kept in the browser and sent by the next page; only without that keeping it would be lost.
  window.addEventListener("beforeunload", (event) => {
    if (studio.outbox.waiting && !studio.outbox.durable) event.preventDefault();
  });
  render();
}

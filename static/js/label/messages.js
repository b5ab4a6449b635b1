/** What stands in the stage when there is no picture to judge: loading, none, failed, the end. */
import { counted, make } from "./panel-tools.js";

function box(title, text, ...buttons) {
  return make(
    "div",
    { class: "empty" },
    make("strong", { text: title }),
    text ? make("p", { text }) : null,
    buttons.length ? make("div", { class: "row" }, ...buttons) : null,
  );
}

function button(text, run, primary = false) {
  return make("button", { type: "button", class: primary ? "button primary" : "button", text, on: { click: run } });
}

const QUERIES = () => make("a", { class: "button", href: "/", text: "All queries" });

function building() {
  return box(
    "The candidate list is being made",
    "Every image of the filter is compared with the query. This page goes on by itself.",
  );
}

function nothing(list) {
  if (list.state === "failed") return box("The candidate list could not be made", list.detail, QUERIES());
  return box("There is nothing to label", list.detail || "The list holds no candidates.", QUERIES());
}

function failed(studio, error) {
  const again = button("Try again", () => studio.start(), true);
  if (error.status === 401 || error.status === 403) {
    const href = `${studio.root.dataset.login}?next=${encodeURIComponent(window.location.pathname)}`;
    return box(
      "You are logged out",
      "What you judged on this device is kept and will be sent after the next log-in.",
      make("a", { class: "button primary", href, text: "Log in" }),
    );
  }
  return box("The candidates could not be loaded", error.message, again, QUERIES());
}

function end(studio) {
  const { store } = studio;
  const { list, progress } = store;
  const whole = (primary) =>
    button("Show the whole list", () => {
      store.setMatching(null);
      studio.toNextUnlabelled(1);
    }, primary);
  if (store.next(0) === null) {
    return store.matching
      ? box("Nothing to show", "No candidate matches the filters.", whole(true))
      : box("Nothing to show", "All images of the list were withdrawn.", QUERIES());
  }
  const back = button("Back to the last one", () => studio.go(store.previous(store.size + 1)));
  const have = progress.remaining === 1 ? "has" : "have";
  if (progress.remaining > 0) {
    if (store.matching && store.next(0, { unlabelled: true }) === null) {
      return box(
        "All that the filters show is labelled",
        `${counted(progress.remaining, "other candidate")} of the list ${have} no label yet.`,
        whole(true),
        back,
      );
    }
    return box(
      "The end of the list",
      `${counted(progress.remaining, "candidate")} before it ${have} no label yet; ` +
        "the streak waits at the first of them.",
      button("Go to the first without a label", () => studio.toNextUnlabelled(1), true),
      back,
    );
  }
  const found = `${counted(progress.candidates, "candidate")} labelled, ${progress.relevant.toLocaleString("en")} relevant.`;
  const stop = (primary) => button("Hand in …", () => studio.run("stop_panel"), primary);
  if (progress.stop.exhausted) {
    return box(
      "The list is exhausted",
      `${found} Hand the query in, or step back to check.`,
      stop(true),
      back,
    );
  }
  if (list.size < list.total) {
    return box(
      "The end of the list so far",
      `${found} The filter has ${counted(list.total, "image")}.`,
      button("Extend the list", (event) => extend(studio, event.currentTarget), true),
      stop(false),
      back,
    );
  }
  const missing = list.unembedded
    ? ` The list isn't exhausted: ${counted(list.unembedded, "image")} of the filter can't be ranked yet.`
    : "";
  return box("All candidates are labelled", found + missing, stop(true), back);
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

/** @param {import("./studio.js").Studio} studio */
export function mountMessages(studio) {
  const root = studio.root.querySelector("[data-message]");
  const makers = {
    building,
    empty: ({ list }) => nothing(list),
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

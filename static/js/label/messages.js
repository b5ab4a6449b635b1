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
    return box("Nothing to show", store.matching ? "No candidate matches the filters." : "All images of the list were withdrawn.", ...(store.matching ? [whole(true)] : []));
  }
  const back = button("Back to the last one", () => studio.go(store.previous(store.size + 1)));
  if (progress.remaining > 0) {
    if (store.matching && store.next(0, { unlabelled: true }) === null) {
      return box(
        "All that the filters show is labelled",
        `${counted(progress.remaining, "other candidate")} of the list ${progress.remaining === 1 ? "has" : "have"} no label yet.`,
        whole(true),
        back,
      );
    }
    return box(
      "The end of the list",
      `${counted(progress.remaining, "candidate")} before it ${progress.remaining === 1 ? "has" : "have"} no label yet; the streak waits at the first of them.`,
      button("Go to the first without a label", () => studio.toNextUnlabelled(1), true),
      back,
    );
  }
  const found = `${progress.relevant.toLocaleString("en")} of them relevant`;
  const stop = (primary) => button("Hand in …", () => studio.run("stop_panel"), primary);
  if (progress.stop.exhausted) {
    return box(
      "The list is exhausted",
      `All ${counted(progress.candidates, "candidate")} are labelled, ${found}. Hand the query in, or step back to check.`,
      stop(true),
      back,
    );
  }
  if (list.size < list.total) {
    return box(
      "The end of the list so far",
      `All ${counted(list.size, "candidate")} are labelled, ${found}. The filter has ${list.total.toLocaleString("en")} images.`,
      button("Extend the list", (event) => extend(studio, event.currentTarget), true),
      stop(false),
      back,
    );
  }
  const missing = list.unembedded
    ? `${counted(list.unembedded, "image")} of the filter ${list.unembedded === 1 ? "has" : "have"} no embedding yet, so the list isn't exhausted.`
    : `${progress.relevant.toLocaleString("en")} of ${counted(progress.candidates, "candidate")} are relevant.`;
  return box("All candidates are labelled", missing, stop(true), back);
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

/** The page's frame: buttons and their keys, meters, what is saved. */
import { listen } from "./keymap.js";
import { mountMessages } from "./messages.js";
import { mountRefused } from "./refused.js";
import { mountSaved } from "./saved.js";
import { mountSide } from "./side.js";
import { mountWatch } from "./watch.js";

const JUDGING = ["relevant", "not_relevant", "unsure"];

/** Seconds as people say them: "45 s", "12 min", "1 h 05 min". */
export function inTime(seconds) {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
}

function mountButtons(studio) {
  const { root } = studio;
  root.addEventListener("click", (event) => {
    const button = event.target.closest("[data-do]");
    if (!button || button.closest("dialog")) return;
    // After a click the keys belong to the page again; who came by keyboard keeps the place.
    if (event.detail > 0) button.blur();
    studio.run(button.dataset.do, event);
  });
  const choices = root.querySelectorAll("[data-view-choice]");
  choices.forEach((button) => {
    button.addEventListener("click", (event) => {
      if (event.detail > 0) button.blur();
      studio.setView(button.dataset.viewChoice);
    });
  });
  studio.on("view", (view) => {
    choices.forEach((button) => {
      button.setAttribute("aria-pressed", String(button.dataset.viewChoice === view));
    });
    root.querySelectorAll("[data-bar]").forEach((bar) => {
      bar.hidden = bar.dataset.bar !== view;
    });
  });
}

function mountKeys(studio) {
  const { keymap, root } = studio;
  const render = () => {
    root.querySelectorAll("[data-key-for]").forEach((node) => {
      node.textContent = studio.keysOf(node.dataset.keyFor)[0] ?? "";
    });
    root.querySelectorAll("[data-do]").forEach((button) => {
      const keys = keymap.keys(button.dataset.do);
      if (keys.length) button.setAttribute("aria-keyshortcuts", keys.map(ariaKey).join(" "));
    });
  };
  keymap.addEventListener("change", render);
  render();
  listen(studio);
}

function ariaKey(key) {
  return key.replace("Ctrl+", "Control+").replace(/\+$/, "Plus");
}

function mountActions(studio) {
  for (const relevance of JUDGING) {
    studio.action(relevance, () => studio.views[studio.view].mark(relevance));
  }
  studio.action("undo", () => studio.undo());
  studio.action("redo", () => studio.redo());
  studio.action("toggle_view", () => studio.setView(studio.view === "single" ? "grid" : "single"));
  studio.action("next_unlabelled", () => studio.state !== "loading" && studio.toNextUnlabelled(1));
  const [undo, redo] = ["undo", "redo"].map((name) => studio.root.querySelector(`[data-do=${name}]`));
  const render = () => {
    undo.disabled = !studio.undoStack.canUndo;
    redo.disabled = !studio.undoStack.canRedo;
  };
  studio.undoStack.addEventListener("change", render);
  render();
}

function mountMeters(studio) {
  const meter = studio.root.querySelector(".meters progress");
  const set = (name, value) => {
    studio.root.querySelectorAll(`[data-show="${name}"]`).forEach((node) => {
      node.textContent = value;
    });
  };
  studio.on("progress", (progress) => {
    const pace = progress.seconds_per_image;
    set("judged", progress.judged.toLocaleString("en"));
    set("candidates", progress.candidates.toLocaleString("en"));
    set("relevant", progress.relevant.toLocaleString("en"));
    set("streak", progress.streak);
    set("required", progress.stop.required);
    set("remaining", progress.remaining.toLocaleString("en"));
    set("pace", pace === null || pace === undefined ? "–" : `${pace.toFixed(1)} s`);
    set("active", inTime(progress.active_seconds ?? 0));
    meter.max = progress.stop.required;
    meter.value = Math.min(progress.streak, progress.stop.required);
    gap.hidden = !waits(studio.store, progress);
    gap.textContent = `waits at rank ${(progress.next_rank ?? 0).toLocaleString("en")}`;
  });
  const gap = studio.root.querySelector("[data-gap]");
  gap.addEventListener("click", () => studio.toNextUnlabelled(1));
}

/** Whether something is labelled behind the first candidate without a label, so that the streak doesn't count it. */
function waits(store, { next_rank: first, remaining }) {
  if (first === null) return false;
  return store.size - first + 1 - remaining > [...store.withdrawn].filter((rank) => rank > first).length;
}

/** Marks the query's text when not all of it fits. */
function mountText(studio) {
  const heading = studio.root.querySelector(".query-text");
  const text = heading.firstElementChild;
  const measure = () => {
    if (heading.matches(":hover, :focus")) return;
    const long = text.scrollHeight > text.clientHeight + 2;
    heading.classList.toggle("long", long);
    if (long) heading.tabIndex = 0;
    else heading.removeAttribute("tabindex");
  };
  new ResizeObserver(measure).observe(heading);
  measure();
}

/** @param {import("./studio.js").Studio} studio */
export function mount(studio) {
  mountActions(studio);
  mountButtons(studio);
  mountKeys(studio);
  mountMeters(studio);
  mountText(studio);
  mountSaved(studio);
  mountRefused(studio);
  mountSide(studio);
  mountMessages(studio);
  mountWatch(studio);
}

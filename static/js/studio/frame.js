/** The page's frame: buttons and their keys, meters, the side column with its panels (a sheet on phones). */
import { make } from "../dom.js";
import { duration, GRADE_NAMES, number, pace, RELEVANCE_NAMES } from "../words.js";
import { mountWatch } from "./changes.js";
import { listen } from "./keys.js";
import { mountMessages, mountSaved } from "./messages.js";
import { mountRefused } from "./refused.js";
import { goTo } from "./strip.js";

function mountButtons(studio) {
  const { root } = studio;
  // A term shows its sentence while one points at it; the keys stay with the page.
  root.addEventListener("mousedown", (event) => event.target.closest(".term-word") && event.preventDefault());
  root.addEventListener("click", (event) => {
    const button = event.target.closest("[data-do]");
    if (!button || button.closest("dialog")) return;
    // After a click the keys belong to the page again; the keyboard's focus stays.
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
    // In a window of little height the page scrolls.
    root.querySelector("[data-stage]").scrollIntoView({ block: "nearest", behavior: "instant" });
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
  for (const relevance of Object.keys(RELEVANCE_NAMES)) {
    studio.action(relevance, () => studio.views[studio.view].mark(relevance));
  }
  studio.action("undo", () => studio.undo());
  studio.action("redo", () => studio.redo());
  if (studio.gridded) {
    studio.action("toggle_view", () => studio.setView(studio.view === "single" ? "grid" : "single"));
  }
  studio.action("next_unlabeled", () => studio.state !== "loading" && studio.toNextUnlabeled());
  const [undo, redo] = ["undo", "redo"].map((name) => studio.root.querySelector(`[data-do=${name}]`));
  const render = () => {
    undo.disabled = !studio.undoStack.canUndo;
    redo.disabled = !studio.undoStack.canRedo;
  };
  studio.undoStack.addEventListener("change", render);
  render();
}

/** Writes a value wherever the page shows it; a long one is there in full while one points at it. */
function show(studio, name, value) {
  for (const node of studio.root.querySelectorAll(`[data-show="${name}"]`)) {
    node.textContent = value;
    node.title = value.length > 24 ? value : "";
  }
}

function mountMeters(studio) {
  const meter = studio.root.querySelector(".meters progress");
  const set = (name, value) => show(studio, name, value);
  studio.on("progress", (progress) => {
    set("judged", number(progress.judged));
    set("candidates", number(progress.candidates));
    set("relevant", number(progress.relevant));
    set("streak", number(progress.streak));
    set("required", number(progress.stop.required));
    set("remaining", number(progress.remaining));
    set("pace", pace(progress.seconds_per_image));
    set("active", duration(progress.active_seconds ?? 0));
    meter.max = progress.stop.required;
    meter.value = Math.min(progress.streak, progress.stop.required);
    gap.hidden = !waits(studio.store, progress);
    gap.textContent = `waits at rank ${number(progress.next_rank ?? 0)}`;
  });
  const gap = studio.root.querySelector("[data-gap]");
  gap.addEventListener("click", () => {
    if (studio.learned) goTo(studio, studio.store.progress.next_rank);
    else studio.toNextUnlabeled();
  });
}

/** Whether something is labeled behind the first candidate without a label, so that the streak doesn't count it. */
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

/** @param {Studio} studio */
export function mount(studio) {
  mountActions(studio);
  mountButtons(studio);
  mountKeys(studio);
  if (studio.listed) mountMeters(studio);
  mountText(studio);
  mountSaved(studio);
  mountRefused(studio);
  mountSide(studio);
  mountMessages(studio);
  mountWatch(studio);
}

function place({ latitude, longitude, location_uncertainty: uncertainty, coordinates_obscured: obscured }) {
  if (typeof latitude !== "number" || typeof longitude !== "number") return "not given";
  const side = (value, positive, negative) => `${Math.abs(value).toFixed(2)}° ${value < 0 ? negative : positive}`;
  const around = uncertainty ? ` ± ${number(Math.round(uncertainty))} m` : "";
  return `${side(latitude, "N", "S")}, ${side(longitude, "E", "W")}${around}${obscured ? ", obscured" : ""}`;
}

function date(value) {
  if (!value) return "not given";
  return new Date(value).toLocaleDateString(undefined, { dateStyle: "medium", timeZone: "UTC" });
}

/** The image's values in the custom fields that an admin has shown to annotators. */
function showFields(list, values) {
  const words = { true: "yes", false: "no" };
  list.replaceChildren(
    ...Object.entries(values).flatMap(([name, value]) => [
      make("dt", { dir: "auto", text: name }),
      make("dd", { dir: "auto", text: words[value] ?? String(value) }),
    ]),
  );
  list.hidden = !list.childElementCount;
}

function mountInfo(studio) {
  const root = studio.root.querySelector("[data-info]");
  const set = (name, value) => show(studio, name, value);
  const render = () => {
    const details = studio.current;
    const entry = studio.rank && studio.store.entry(studio.rank);
    const names = details?.species;
    const listed = entry && studio.source.listRank(entry.rank);
    set("rank", entry ? (listed ? number(listed) : "not in the list") : "–");
    if (studio.learned) set("why", entry ? studio.source.why(entry.rank) : "–");
    set("score", listed ? entry.score.toFixed(3) : "–");
    set("common-name", names?.common_name ?? "");
    set("scientific-name", names?.scientific_name ?? "");
    set("place", details ? place(details) : "–");
    set("date", details ? date(details.observed_at) : "–");
    set("license", details ? details.license || "not given" : "–");
    set("rights", details ? details.rights_holder || "not given" : "–");
    showFields(studio.root.querySelector("[data-custom-fields]"), details?.custom_fields ?? {});
    root.querySelector("[data-species]").hidden = studio.page.names_hidden;
    renderLabel(studio, entry, !entry || studio.closed !== "");
    // Behind the list's end there is no page to submit.
    studio.root.querySelector("[data-bar=grid] .submit")?.toggleAttribute("disabled", !entry);
  };
  for (const event of ["rank", "labels", "state", "closed"]) studio.on(event, render);
  render();
}

function renderLabel(studio, entry, off) {
  const relevance = entry?.relevance ?? null;
  const grade = entry ? studio.store.gradeOf(entry.image) : null;
  const given = grade === null ? relevance : `grade_${grade}`;
  const badge = studio.root.querySelector("[data-given]");
  badge.hidden = !relevance;
  badge.className = `badge given ${relevance ?? ""}`;
  badge.textContent = relevance ? `Labeled: ${(GRADE_NAMES[grade] ?? RELEVANCE_NAMES[relevance]).toLowerCase()}` : "";
  studio.root.querySelectorAll("[data-bar=single] .judge").forEach((button) => {
    button.setAttribute("aria-pressed", String(button.dataset.do === given));
    button.disabled = off;
  });
  const skip = studio.root.querySelector("[data-skip-name]");
  skip.textContent = relevance || studio.audit ? "Forward" : "Skip";
  // Nothing that was drawn is skipped.
  skip.closest("button").disabled = Boolean(studio.audit) && !relevance;
}

function mountTabs(studio, side) {
  const tabs = [...side.querySelectorAll("[role=tab]")];
  const select = (name) => {
    const chosen = tabs.find(({ dataset }) => dataset.tab === name);
    if (!chosen) return null;
    for (const tab of tabs) {
      const on = tab === chosen;
      tab.setAttribute("aria-selected", String(on));
      tab.tabIndex = on ? 0 : -1;
      side.querySelector(`[data-panel="${tab.dataset.tab}"]`).hidden = !on;
    }
    return chosen;
  };
  const choose = (name) => {
    studio.preferences.set("side_tab", name);
    return select(name);
  };
  for (const tab of tabs) {
    tab.addEventListener("click", () => choose(tab.dataset.tab));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length];
      choose(next.dataset.tab).focus();
    });
  }
  select(studio.preferences.get("side_tab"));
  studio.on("ready", () => {
    // The guidelines come first for whoever starts a query.
    const starts = studio.listed && !studio.store.progress.judged;
    if (side.dataset.guidelines !== undefined && starts) select("reference");
  });
  return select;
}

/** The details stay open or folded as the person left them. */
function mountDetails({ preferences }, side) {
  const details = side.querySelector("[data-details]");
  details.open = preferences.get("details", false);
  details.addEventListener("toggle", () => preferences.set("details", details.open));
}

/** On phones the column is a sheet over the lower part of the window. */
function mountSheet(studio, side) {
  const opener = studio.root.querySelector("[data-sheet-open]");
  const open = (wanted) => {
    side.classList.toggle("open", wanted);
    opener.setAttribute("aria-expanded", String(wanted));
    if (!wanted && side.contains(document.activeElement)) opener.focus();
  };
  const isOpen = () => side.classList.contains("open");
  opener.addEventListener("click", () => open(!isOpen()));
  side.querySelector("[data-sheet-close]").addEventListener("click", () => open(false));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && isOpen() && !studio.blocked) open(false);
  });
  studio.root.querySelector("[data-stage]").addEventListener("pointerdown", () => isOpen() && open(false));
  return open;
}

/** @param {Studio} studio */
function mountSide(studio) {
  const side = studio.root.querySelector("[data-side]");
  mountInfo(studio);
  const select = mountTabs(studio, side);
  mountDetails(studio, side);
  const sheet = mountSheet(studio, side);
  studio.on("panel", (name) => {
    select(name);
    sheet(true);
    side.querySelector(`[data-panel="${name}"]`)?.scrollIntoView({ block: "nearest", behavior: "instant" });
  });
}

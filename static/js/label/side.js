/** The side column: what is known of the image, and the panels beside it; a sheet on phones. */
import { RELEVANCE_NAMES } from "./panel-tools.js";

function place({ latitude, longitude, location_uncertainty: uncertainty }) {
  if (typeof latitude !== "number" || typeof longitude !== "number") return "not given";
  const side = (value, positive, negative) =>
    `${Math.abs(value).toFixed(2)}° ${value < 0 ? negative : positive}`;
  const around = uncertainty ? ` ± ${Math.round(uncertainty).toLocaleString("en")} m` : "";
  return `${side(latitude, "N", "S")}, ${side(longitude, "E", "W")}${around}`;
}

function date(value) {
  if (!value) return "not given";
  return new Date(value).toLocaleDateString(undefined, { dateStyle: "medium", timeZone: "UTC" });
}

function mountInfo(studio) {
  const root = studio.root.querySelector("[data-info]");
  const set = (name, value) => {
    studio.root.querySelectorAll(`[data-show="${name}"]`).forEach((node) => {
      node.textContent = value;
      // What doesn't fit is there when one points at it.
      node.title = value.length > 24 ? value : "";
    });
  };
  const render = () => {
    const details = studio.current;
    const entry = studio.rank && studio.store.entry(studio.rank);
    const names = details?.species;
    set("rank", entry ? entry.rank.toLocaleString("en") : "–");
    set("score", entry ? entry.score.toFixed(3) : "–");
    set("common-name", names?.common_name ?? "");
    set("scientific-name", names?.scientific_name ?? "");
    set("place", details ? place(details) : "–");
    set("date", details ? date(details.observed_at) : "–");
    set("license", details ? details.license || "not given" : "–");
    set("rights", details ? details.rights_holder || "not given" : "–");
    root.querySelector("[data-species]").hidden = studio.namesHidden;
    renderLabel(studio, entry?.relevance ?? null, !entry || studio.closed !== "");
    // Behind the list's end there is no page to submit.
    studio.root.querySelector("[data-bar=grid] .submit").disabled = !entry;
  };
  studio.on("rank", render);
  studio.on("labels", render);
  studio.on("state", render);
  studio.on("closed", render);
  render();
}

function renderLabel(studio, relevance, off) {
  const badge = studio.root.querySelector("[data-given]");
  badge.hidden = !relevance;
  badge.className = `badge given ${relevance ?? ""}`;
  badge.textContent = relevance ? `Labelled: ${RELEVANCE_NAMES[relevance].toLowerCase()}` : "";
  studio.root.querySelectorAll("[data-bar=single] .judge").forEach((button) => {
    button.setAttribute("aria-pressed", String(button.dataset.do === relevance));
    button.disabled = off;
  });
  studio.root.querySelector("[data-skip-name]").textContent = relevance ? "Forward" : "Skip";
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
  select(studio.preferences.get("side_tab", "chart"));
  studio.on("ready", () => {
    // Who begins with a query reads its guidelines first.
    if (side.dataset.guidelines !== undefined && !studio.store.progress.judged) select("reference");
  });
  return select;
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

/** @param {import("./studio.js").Studio} studio */
export function mountSide(studio) {
  const side = studio.root.querySelector("[data-side]");
  mountInfo(studio);
  const select = mountTabs(studio, side);
  const sheet = mountSheet(studio, side);
  studio.on("panel", (name) => {
    select(name);
    sheet(true);
  });
}

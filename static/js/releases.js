/** Keeps every [data-release] that is being made up to date, and reloads the page when one has ended. */
import { api } from "./api.js";

const EVERY = 1000;
const MAKING = ["queued", "running"];

function count(step) {
  if (step.total === null || step.state === "waiting") return step.state;
  return `${step.done.toLocaleString("en")} of ${step.total.toLocaleString("en")}`;
}

function line(step) {
  const item = document.createElement("li");
  item.className = step.state;
  const title = document.createElement("span");
  title.textContent = step.title;
  const told = document.createElement("span");
  told.className = "small muted";
  told.textContent = count(step);
  item.append(title, " ", told);
  return item;
}

function draw(node, release) {
  const badge = node.querySelector("[data-release-state]");
  badge.className = `badge ${release.state}`;
  badge.textContent = release.state;
  const steps = release.progress;
  if (!steps.length) return;
  const done = steps.filter((step) => step.state === "done").length;
  node.querySelector("[data-release-count]").textContent = `${Math.floor((100 * done) / steps.length)} %`;
  node.querySelector("[data-release-waiting]")?.remove();
  node.querySelector("[data-release-steps]")?.replaceChildren(...steps.map(line));
}

async function follow(node) {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, document.hidden ? 5 * EVERY : EVERY));
    try {
      const release = await api(`/api/releases/${node.dataset.release}/`);
      draw(node, release);
      if (!MAKING.includes(release.state)) {
        window.location.reload();
        return;
      }
    } catch (error) {
      if ([401, 403, 404].includes(error.status)) return;
    }
  }
}

document.querySelectorAll("[data-release]").forEach(follow);

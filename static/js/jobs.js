/** Keeps each [data-job] and [data-release] up to date while it is made, then reloads what depends on it. */
import { api } from "./api.js";
import { make } from "./dom.js";
import { duration } from "./words.js";

const EVERY = 1000;
const UNFINISHED = ["queued", "running"];

function timeLeft(job) {
  if (!job.rate || !job.total) return "";
  const seconds = Math.round((job.total - job.done - job.failed) / job.rate);
  if (seconds <= 0) return "";
  return seconds < 90 ? `about ${seconds} s left` : `about ${Math.round(seconds / 60)} min left`;
}

function loadingSentence(loading) {
  if (!loading) return "";
  const megabytes = (bytes) => (bytes / 1e6).toFixed(1);
  if (!loading.bytes) return "The model is being loaded.";
  return `The model is being fetched: ${megabytes(loading.bytes)} MB, ${megabytes(loading.rate)} MB per second.`;
}

function drawState(badge, state) {
  if (!badge) return;
  badge.className = `badge ${state}`;
  badge.textContent = state;
}

function drawJob(node, job) {
  const meter = node.querySelector("progress");
  if (meter && job.total) {
    meter.max = job.total;
    meter.value = job.done + job.failed;
  }
  const set = (name, text) => {
    const target = node.querySelector(`[data-job-${name}]`);
    if (target) target.textContent = text;
  };
  set("count", job.total === null ? `${job.done}` : `${job.done + job.failed} of ${job.total}`);
  // Several devices are faster than the job's own slices: their figures stand below.
  const alone = !document.querySelector("[data-devices]");
  for (const time of document.querySelectorAll(`[data-job-time="${job.id}"]`)) {
    time.textContent = duration(job.working_seconds);
  }
  set("rate", alone && job.rate ? `${job.rate.toFixed(1)} per second` : "");
  set("left", alone ? timeLeft(job) : "");
  set("failed", job.failed ? `${job.failed} failed` : "");
  set("loading", loadingSentence(job.result.loading));
  drawState(node.querySelector(".badge"), job.state);
  drawDevices();
}

/** What the server draws of an embedding job's devices. */
async function drawDevices() {
  const node = document.querySelector("[data-devices]");
  if (!node || node.contains(document.activeElement)) return;
  const answer = await fetch(node.dataset.devices);
  if (answer.ok) node.innerHTML = await answer.text();
}

function drawRelease(node, { state, progress: steps }) {
  drawState(node.querySelector("[data-release-state]"), state);
  if (!steps.length) return;
  const done = steps.filter((step) => step.state === "done").length;
  node.querySelector("[data-release-count]").textContent = `${Math.floor((100 * done) / steps.length)} %`;
  node.querySelector("[data-release-waiting]")?.remove();
  node.querySelector("[data-release-steps]")?.replaceChildren(...steps.map(stepLine));
}

function stepLine({ title, state, done, total }) {
  const counted = total !== null && state !== "waiting";
  const text = counted ? `${done.toLocaleString("en")} of ${total.toLocaleString("en")}` : state;
  return make("li", { class: state }, make("span", { text: title }), " ", make("span", { class: "small muted", text }));
}

async function follow(node, address, draw) {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, document.hidden ? 5 * EVERY : EVERY));
    try {
      const found = await api(address);
      draw(node, found);
      if (!UNFINISHED.includes(found.state)) {
        window.location.reload();
        return;
      }
    } catch (error) {
      if ([401, 403, 404].includes(error.status)) return;
    }
  }
}

for (const node of document.querySelectorAll("[data-job]")) follow(node, `/api/jobs/${node.dataset.job}/`, drawJob);
for (const node of document.querySelectorAll("[data-release]")) {
  follow(node, `/api/releases/${node.dataset.release}/`, drawRelease);
}

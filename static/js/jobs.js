/** Keeps every [data-job] on the page up to date until its job has ended, then reloads what depends on it. */
import { api } from "./api.js";

const EVERY = 1000;
const ENDED = ["done", "failed", "cancelled"];

function timeLeft(job) {
  if (!job.rate || !job.total) return "";
  const seconds = Math.round((job.total - job.done - job.failed) / job.rate);
  if (seconds <= 0) return "";
  return seconds < 90 ? `about ${seconds} s left` : `about ${Math.round(seconds / 60)} min left`;
}

function draw(node, job) {
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
  set("rate", job.rate ? `${job.rate.toFixed(1)} a second` : "");
  set("left", timeLeft(job));
  set("failed", job.failed ? `${job.failed} failed` : "");
  const badge = node.querySelector(".badge");
  if (badge) {
    badge.className = `badge ${job.state}`;
    badge.textContent = job.state;
  }
}

async function follow(node) {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, document.hidden ? 5 * EVERY : EVERY));
    try {
      const job = await api(`/api/jobs/${node.dataset.job}/`);
      draw(node, job);
      if (ENDED.includes(job.state)) {
        window.location.reload();
        return;
      }
    } catch (error) {
      if (error.status === 401 || error.status === 403 || error.status === 404) return;
    }
  }
}

document.querySelectorAll("[data-job]").forEach(follow);

/** The review page: a reviewer's judgment of one image, stored before its button shows it. */
import { api, uuid } from "./api.js";
import { make } from "./dom.js";
import { RELEVANCE_NAMES } from "./words.js";

const grid = document.querySelector("[data-review]");
const status = document.querySelector("[data-review-status]");

/** Adds the reviewer's own act to an image's history, below what the page came with. */
function remember(item, previous, relevance) {
  const who = make("span", { text: grid.dataset.reviewer });
  const when = make("time", { class: "muted", datetime: new Date().toISOString(), text: "just now" });
  const change = `${RELEVANCE_NAMES[previous] ?? "Not labeled"} → ${RELEVANCE_NAMES[relevance]}`;
  item.querySelector(".history").append(make("li", {}, who, " ", when, make("br"), change));
}

grid?.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-image]");
  if (!button) return;
  const item = button.closest("li");
  const buttons = item.querySelectorAll("button");
  buttons.forEach((other) => (other.disabled = true));
  try {
    const judgment = {
      image: Number(button.dataset.image),
      relevance: button.dataset.relevance,
      client_id: uuid(),
      seconds: 0,
    };
    const answer = await api(grid.dataset.review, { method: "POST", body: [judgment] });
    const [result] = answer.results;
    if (result.status === "refused") throw new Error(result.detail);
    buttons.forEach((other) => other.classList.toggle("primary", other === button));
    remember(item, item.dataset.own, judgment.relevance);
    item.dataset.own = judgment.relevance;
    status.textContent = `Image ${judgment.image}: stored as ${button.textContent.toLowerCase()}.`;
  } catch (error) {
    status.textContent = `Not stored: ${error.message}`;
  }
  buttons.forEach((other) => (other.disabled = false));
});

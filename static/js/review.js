/** The review page: a reviewer's judgment of one image, stored before its button shows it. */
import { api, uuid } from "./api.js";

const grid = document.querySelector("[data-review]");
const status = document.querySelector("[data-review-status]");

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
    status.textContent = `Image ${judgment.image}: stored as ${button.textContent.toLowerCase()}.`;
  } catch (error) {
    status.textContent = `Not stored: ${error.message}`;
  }
  buttons.forEach((other) => (other.disabled = false));
});

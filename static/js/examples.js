/** The examples on a query's page: admins take one away, and it is gone once the server says so. */
import { api } from "./api.js";

const section = document.querySelector("[data-examples]");
const state = section?.querySelector("[data-examples-state]");

section?.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-unpin]");
  if (!button) return;
  button.disabled = true;
  try {
    await api(`${section.dataset.examples}${button.dataset.unpin}/`, { method: "DELETE" });
  } catch (error) {
    // 404: somebody else took it away already.
    if (error.status !== 404) {
      button.disabled = false;
      state.textContent = `Not unpinned: ${error.message}`;
      return;
    }
  }
  const item = button.closest("li");
  const neighbour = item.nextElementSibling ?? item.previousElementSibling;
  item.remove();
  state.textContent = "Unpinned.";
  neighbour?.querySelector("[data-unpin]")?.focus();
});

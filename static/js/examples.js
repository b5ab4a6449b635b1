/** The examples on a query's page: admins can unpin one, and it disappears once the server has stored that. */
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
    // 404: somebody else has unpinned it already.
    if (error.status !== 404) {
      button.disabled = false;
      state.textContent = `Not unpinned: ${error.message}`;
      return;
    }
  }
  const item = button.closest("li");
  const neighbor = item.nextElementSibling ?? item.previousElementSibling;
  item.remove();
  state.textContent = "Unpinned.";
  neighbor?.querySelector("[data-unpin]")?.focus();
});

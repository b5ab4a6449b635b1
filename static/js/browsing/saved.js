/** Filters saved by a name: one's own, and those that admins share with everybody. */
import { api } from "../api.js";
import { button, make, showState } from "../dom.js";

export class SavedFilters {
  /** @param {HTMLElement} root @param {{saved: object[], shares: boolean}} page @param {() => string} address what stands there now */
  constructor(root, page, address) {
    this.root = root;
    this.page = page;
    this.saved = page.saved;
    this.state = root.querySelector("[data-saved-state]");
    root.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save(event.target, address());
    });
    this.#draw();
  }

  async #save(form, address) {
    const name = form.elements.name.value.trim();
    if (!name) return;
    try {
      const shared = form.elements.shared?.checked ?? false;
      const saved = await api("/api/filters/", { method: "POST", body: { name, address, shared } });
      this.saved = [...this.saved.filter(({ id }) => id !== saved.id), saved];
      this.saved.sort((a, b) => a.name.localeCompare(b.name));
      form.reset();
      this.#draw();
      showState(this.state, `“${name}” is saved.`);
    } catch (error) {
      showState(this.state, error.message, true);
    }
  }

  async #remove(saved) {
    try {
      await api(`/api/filters/${saved.id}/`, { method: "DELETE" });
      this.saved = this.saved.filter((one) => one !== saved);
      this.#draw();
      showState(this.state, `“${saved.name}” is removed.`);
    } catch (error) {
      showState(this.state, error.message, true);
    }
  }

  #draw() {
    const rows = this.saved.map((saved) =>
      make(
        "li",
        { class: "row" },
        make("a", { href: `/corpus/?${saved.address}` }, make("bdi", { text: saved.name })),
        saved.shared ? make("span", { class: "badge", text: "shared" }) : null,
        !saved.shared || this.page.shares
          ? button("✕", () => this.#remove(saved), {
              class: "button quiet compact",
              "aria-label": `Remove the filter ${saved.name}`,
            })
          : null,
      ),
    );
    this.root.querySelector("[data-saved-list]").replaceChildren(...rows);
  }
}

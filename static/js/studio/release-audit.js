/** The labeling page over what a release's audit drew of a query: images in their order, until none is left. */
import { api } from "../api.js";
import { counted, number } from "../words.js";
import { AuditStore } from "./audit-store.js";
import { AuditReader } from "./audit.js";

export class ReleaseAuditStore extends AuditStore {
  read() {
    return api(`${this.address}draws/`, { method: "POST", body: { count: this.ahead() } });
  }

  /** Unlike other labeling, it goes on after one's hand-in. */
  setQuery(query) {
    super.setQuery({ ...query, can_label: ["open", "submitted"].includes(query.state) });
  }
}

/** @param {Studio} studio its store is a ReleaseAuditStore */
export function mount(studio) {
  new AuditReader(studio);
  const show = (name, text) => {
    studio.root.querySelector(`[data-audit-show="${name}"]`).textContent = text;
  };
  const render = () => {
    const { found } = studio.store;
    if (!found) return;
    show("to-judge", number(found.left));
    show("left", found.left ? `${counted(found.left, "image")} left to judge.` : "Everything is judged.");
  };
  studio.on("progress", render);
  studio.on("state", render);
}

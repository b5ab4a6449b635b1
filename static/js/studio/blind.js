/**
 * The labeling page over images of a query that are shown without what is known of them, in their order, until none is
 * left: what a release's audit drew, labels of others for a second opinion, or what runs request.
 */
import { api } from "../api.js";
import { counted, number } from "../words.js";
import { AuditStore } from "./audit-store.js";
import { AuditReader } from "./audit.js";

export class BlindStore extends AuditStore {
  /**
   * @param {string} source with which judgments are sent: "audit", "second" or "run"
   * @param {string[]} states of a query in which they go on, unlike other labeling also after one's hand-in
   */
  constructor(apiBase, address, source, states) {
    super(apiBase, address);
    this.source = source;
    this.states = states;
  }

  sourceAt() {
    return this.source;
  }

  read() {
    return api(`${this.address}draws/`, { method: "POST", body: { count: this.ahead() } });
  }

  setQuery(query) {
    super.setQuery({ ...query, can_label: this.states.includes(query.state) });
  }
}

/** @param {Studio} studio its store is a BlindStore */
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

/**
 * On every page of somebody logged in: sends the judgments that a closed or crashed labeling page has left, and
 * shows those that the server refused, since the labeling page of a closed query can't be opened any more.
 */
import { api } from "../api.js";
import { button, make } from "../dom.js";
import { counted } from "../words.js";
import { senderFor } from "./sender.js";

class RefusedNotices {
  constructor(sender) {
    this.sender = sender;
    /** Promises of the queries' texts, by key. */
    this.texts = new Map();
    this.root = make("div", { class: "stack", role: "status", hidden: true });
    document.getElementById("main")?.prepend(this.root);
    const render = () => this.render().catch(() => {});
    sender.addEventListener("answer", render);
    sender.addEventListener("dismissed", render);
    render();
  }

  /** One notice for each query and reason. */
  async render() {
    const groups = new Map();
    for (const refused of await this.sender.queue.refused(this.sender.user)) {
      const key = `${refused.query} ${refused.result.detail}`;
      groups.set(key, [...(groups.get(key) ?? []), refused]);
    }
    const notices = await Promise.all([...groups.values()].map((group) => this.#notice(group)));
    this.root.replaceChildren(...notices);
    this.root.hidden = !notices.length;
  }

  #text(query) {
    if (!this.texts.has(query)) {
      const text = api(`/api/queries/${query}/`).then((details) => `“${details.text}”`);
      this.texts.set(
        query,
        text.catch(() => "a query"),
      );
    }
    return this.texts.get(query);
  }

  async #notice(group) {
    const [{ query, result }] = group;
    const many = group.length > 1;
    const ids = group.map((refused) => refused.client_id);
    return make(
      "div",
      { class: "notice error" },
      make(
        "span",
        {},
        `${counted(group.length, "judgment")} of yours for `,
        make("a", { href: `/queries/${query}/`, dir: "auto", text: await this.#text(query) }),
        ` ${many ? "were" : "was"} not stored: ${result.detail}`,
      ),
      button("Dismiss", () => this.sender.dismiss(ids), { class: "button" }),
    );
  }
}

const user = Number(document.querySelector('meta[name="user-id"]')?.content ?? 0);
if (user) {
  const sender = senderFor(user);
  if (!document.getElementById("studio")) new RefusedNotices(sender);
}

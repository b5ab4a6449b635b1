/**
 * On every page of somebody logged in: sends the judgments that a closed or crashed labelling page has left, and
 * shows those that the server refused, since the labelling page of a closed query can't be opened any more.
 */
import { api } from "./api.js";
import { senderFor } from "./label/sender.js";

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

class RefusedNotices {
  constructor(sender) {
    this.sender = sender;
    /** Promises of the queries' texts, by key. */
    this.texts = new Map();
    this.root = element("div", { className: "stack", hidden: true });
    this.root.setAttribute("role", "status");
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
      const asked = api(`/api/queries/${query}/`).then(({ text }) => `“${text}”`);
      this.texts.set(query, asked.catch(() => "a query"));
    }
    return this.texts.get(query);
  }

  async #notice(group) {
    const [{ query, result }] = group;
    const many = group.length > 1;
    const ids = group.map((refused) => refused.client_id);
    return element(
      "div",
      { className: "notice error" },
      element(
        "span",
        {},
        `${group.length} ${many ? "judgments" : "judgment"} of yours for `,
        element("a", { href: `/queries/${query}/`, textContent: await this.#text(query) }),
        ` ${many ? "were" : "was"} not stored: ${result.detail}`,
      ),
      element("button", {
        type: "button",
        className: "button",
        textContent: "Dismiss",
        onclick: () => this.sender.dismiss(ids),
      }),
    );
  }
}

const user = Number(document.querySelector('meta[name="user-id"]')?.content ?? 0);
if (user) {
  const sender = senderFor(user);
  if (!document.getElementById("studio")) new RefusedNotices(sender);
}

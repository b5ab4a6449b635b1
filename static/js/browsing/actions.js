/** What is done with the selected images: the bar at the lower edge, and the dialog of what an action needs. */
import { api } from "../api.js";
import { button, make, modal, showState } from "../dom.js";
import { counted, number } from "../words.js";

const TYPED = 200;

/** Events: "all" (select all that match), "done" (detail: the action), "list" (download the list). */
export class Actions extends EventTarget {
  /** @param {HTMLElement} bar @param {HTMLDialogElement} dialog @param {object} page @param {object} selection */
  constructor(bar, dialog, page, selection) {
    super();
    this.bar = bar;
    this.dialog = dialog;
    this.page = page;
    this.selection = selection;
    this.part = (name) => dialog.querySelector(`[data-${name}]`);
    this.open = modal(dialog);
    const tools = bar.querySelector("[data-actions]");
    for (const action of page.actions) tools.append(button(`${action.title} …`, () => this.#ask(action)));
    bar.querySelector("[data-all]").addEventListener("click", () => this.dispatchEvent(new Event("all")));
    bar.querySelector("[data-list]").addEventListener("click", () => this.dispatchEvent(new Event("list")));
    bar.querySelector("[data-clear]").addEventListener("click", () => selection.clear());
    selection.addEventListener("change", () => this.#draw());
    dialog.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    });
    // What is under way goes on to the end of its request.
    dialog.addEventListener("close", () => (this.stopped = true));
  }

  say(text) {
    this.bar.querySelector("[data-selected]").textContent = text;
  }

  #draw() {
    const { size } = this.selection;
    this.bar.hidden = !size;
    this.say(`${counted(size, "image")} selected`);
    const open = this.bar.querySelector("[data-open]");
    open.hidden = size !== 1;
    if (size === 1) open.href = `/images/${[...this.selection.ids][0]}/`;
  }

  #ask(action) {
    this.action = action;
    this.query = null;
    this.part("title").textContent = `${action.title}: ${counted(this.selection.size, "image")}`;
    this.part("about").textContent = action.about;
    this.part("skipped").replaceChildren();
    const fields = [];
    if (action.queries) fields.push(...this.#queryField(action));
    if (action.choices) {
      const { name, label, options } = action.choices;
      const radios = options.map(([value, words], index) => {
        const attributes = { type: "radio", name, value: JSON.stringify(value), checked: index === 0 };
        return make("label", { class: "check" }, make("input", attributes), make("span", { text: words }));
      });
      fields.push(make("fieldset", { class: "field" }, make("legend", { text: label }), ...radios));
    }
    if (action.note) {
      const input = make("input", { type: "text", id: "action-note", name: "note", maxlength: 1000 });
      fields.push(make("div", { class: "field" }, make("label", { for: "action-note", text: "Note" }), input));
    }
    this.part("fields").replaceChildren(...fields);
    const send = this.part("send");
    send.textContent = action.title;
    send.disabled = Boolean(action.queries);
    showState(this.part("state"), "");
    this.open(this.part("fields").querySelector("input") ?? send);
  }

  #queryField(action) {
    const found = make("div", { class: "stack query-choices", role: "radiogroup", "aria-label": "Queries" });
    const search = async () => {
      const text = input.value.trim();
      try {
        const { results } = await api(`${action.queries}${text ? `&search=${encodeURIComponent(text)}` : ""}`);
        if (action === this.action) found.replaceChildren(...this.#queries(results));
      } catch (error) {
        showState(this.part("state"), error.message, true);
      }
    };
    const input = make("input", { type: "search", id: "action-query", autocomplete: "off" });
    input.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(search, TYPED);
    });
    search();
    const label = make("label", { for: "action-query", text: "Query" });
    return [make("div", { class: "field" }, label, input), found];
  }

  #queries(results) {
    if (!results.length) return [make("p", { class: "muted small", text: "No open query matches." })];
    return results.map(({ id, text }) => {
      const radio = make("input", { type: "radio", name: "query", value: id, checked: id === this.query });
      radio.addEventListener("change", () => {
        this.query = id;
        this.part("send").disabled = false;
      });
      return make("label", { class: "check" }, radio, make("bdi", { text }));
    });
  }

  /** Sends the images in as many requests as they need, one after another. */
  async #send() {
    const { action, selection, page } = this;
    const ids = [...selection.ids];
    const form = new FormData(this.dialog.querySelector("form"));
    const body = {};
    if (action.choices) body[action.choices.name] = JSON.parse(form.get(action.choices.name));
    if (action.note) body.note = form.get("note").trim();
    const address = action.endpoint.replace("{query}", this.query);
    const state = this.part("state");
    this.part("send").disabled = true;
    this.stopped = false;
    let done = 0;
    const skipped = new Map();
    const dealtWith = [];
    try {
      for (let start = 0; start < ids.length && !this.stopped; start += page.at_once) {
        const some = ids.slice(start, start + page.at_once);
        if (ids.length > some.length) showState(state, `${number(start)} of ${number(ids.length)} …`);
        const answer = await api(address, { method: "POST", body: { ...body, ids: some } });
        done += typeof answer.done === "number" ? answer.done : answer.done.length;
        for (const { why } of answer.skipped) skipped.set(why, (skipped.get(why) ?? 0) + 1);
        const left = new Set(answer.skipped.map(({ id }) => id));
        dealtWith.push(...some.filter((id) => !left.has(id)));
      }
      showState(state, `Done: ${counted(done, "image")}${skipped.size ? "; the others stay selected." : "."}`);
    } catch (error) {
      showState(state, done ? `${counted(done, "image")} done, then: ${error.message}` : error.message, true);
      this.part("send").disabled = false;
    }
    const rows = [...skipped].map(([why, count]) => make("li", { text: `${counted(count, "image")}: ${why}` }));
    this.part("skipped").replaceChildren(...rows);
    if (!dealtWith.length) return;
    selection.remove(dealtWith);
    this.dispatchEvent(new CustomEvent("done", { detail: action }));
    if (!skipped.size && done) this.dialog.close();
  }
}

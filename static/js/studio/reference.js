/**
 * The reference: the query's guidelines, pinned examples, and the species of its filter with their
 * images, names, lineage and look-alikes. Read once, when it is first seen.
 */
import { api } from "../api.js";
import { button, make, modal } from "../dom.js";
import { counted, languageName, number, speciesName, trouble } from "../words.js";

const OPEN_UP_TO = 2; // species; more of them start folded
const FIND_FROM = 9; // species; fewer are found by looking
const FRAMES_TO_SHOW = 30;

/** @param {Studio} studio */
export function mount(studio) {
  const root = studio.root.querySelector("[data-reference]");
  if (root) new Reference(studio, root).start();
}

class Reference {
  constructor(studio, root) {
    this.studio = studio;
    this.root = root;
    this.body = root.querySelector("[data-reference-body]");
    this.examples = new ExampleDialog(studio.root.querySelector("[data-example]"));
    const dialog = studio.root.querySelector("[data-compare]");
    this.compare = dialog && comparing(dialog);
    this.loading = null;
  }

  start() {
    this.studio.action("reference", () => this.show());
    this.studio.on("rank", () => this.markSpecies());
    new IntersectionObserver((entries, observer) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      this.load();
    }).observe(this.root);
  }

  /** Brings the section into view, loads it and focuses it. */
  async show() {
    this.studio.openPanel("reference");
    await this.takeFocus();
    await this.load();
    this.root.scrollIntoView({ block: "start" });
  }

  /** On phones the panel slides in, and takes the focus only once it has begun to. */
  async takeFocus() {
    for (let frame = 0; frame < FRAMES_TO_SHOW && document.activeElement !== this.root; frame += 1) {
      this.root.focus({ preventScroll: true });
      await new Promise(requestAnimationFrame);
    }
  }

  /** Loads the reference once; again after `reload`. */
  load() {
    this.loading ??= api(`${this.studio.api}reference/`).then(
      (reference) => this.render(reference),
      (error) => {
        this.loading = null;
        this.fail(error);
      },
    );
    return this.loading;
  }

  reload() {
    this.loading = null;
    return this.load();
  }

  fail(error) {
    const retry = button("Try again", () => this.load());
    const message = make("p", { text: trouble(error, "The reference could not be loaded.") });
    this.body.replaceChildren(make("div", { class: "notice error small" }, message, retry));
  }

  render(reference) {
    const folded = new Set();
    for (const details of this.body.querySelectorAll("details[data-species]:not([open])")) {
      folded.add(Number(details.dataset.species));
    }
    this.pin ??= mountPinning(this.studio, this.root, () => this.reload());
    this.pin?.show(reference.pinned);
    const parts = [
      guidelines(reference.guidelines_html),
      this.pinned(
        "Relevant",
        reference.pinned.filter((example) => example.relevant),
      ),
      this.pinned(
        "Not relevant",
        reference.pinned.filter((example) => !example.relevant),
      ),
      this.species(reference, folded),
    ].filter(Boolean);
    if (parts.length === 0) {
      const text = "This query has no guidelines, pinned examples or species filter.";
      parts.push(make("p", { class: "small muted", text }));
    }
    if (reference.names_hidden) {
      const text = "Species names are hidden while you label.";
      parts.push(make("p", { class: "small muted", text }));
    }
    this.body.replaceChildren(...parts);
    this.markSpecies();
  }

  pinned(title, examples) {
    if (examples.length === 0) return null;
    const kind = examples[0].relevant ? "relevant" : "not_relevant";
    const shown = examples.map((example) => ({
      ...example,
      title: examples[0].relevant ? "Relevant example" : "Not relevant example",
    }));
    return make(
      "section",
      { class: "reference-pinned" },
      make("h3", {}, make("span", { class: `badge ${kind}`, text: `${title} examples` })),
      this.imageRow(shown, "large"),
    );
  }

  /** A row of images, each a button that shows it larger. */
  imageRow(examples, size = "") {
    const items = examples.map((example, index) => {
      const img = make("img", { src: example.thumbnail_url, alt: "", loading: "lazy" });
      const name = example.note ? `${example.title}: ${example.note}` : example.title;
      const larger = button("", () => this.examples.open(examples, index), {
        class: null,
        "aria-label": `${name}, larger (${index + 1} of ${examples.length})`,
      });
      larger.append(img);
      const note = example.note ? make("bdi", { class: "small", text: example.note }) : null;
      return make("li", {}, larger, note);
    });
    return make("ul", { class: `reference-images ${size}` }, ...items);
  }

  species(reference, folded) {
    const all = reference.species;
    if (reference.names_hidden || all.length === 0) return null;
    const rows = all.map((species) => this.oneSpecies(species, all.length <= OPEN_UP_TO && !folded.has(species.id)));
    const list = make("div", { class: "reference-list" }, ...rows);
    const total = reference.species_total ?? all.length;
    const shown = all.length < total ? `first ${all.length} of ${number(total)}` : String(total);
    const head = make("h3", { text: `Species filter (${shown})` });
    const find = all.length >= FIND_FROM ? finder(all, rows) : null;
    return make("section", { class: "reference-all" }, head, find, list);
  }

  oneSpecies(species, open) {
    const name = speciesName(species);
    const images = species.examples.map((example) => ({ ...example, title: name }));
    const lineage = species.lineage.filter(Boolean);
    return make(
      "details",
      { "data-species": species.id, open },
      make(
        "summary",
        {},
        make("span", { class: "reference-name", text: name }),
        species.common_name ? make("span", { class: "scientific muted small", text: species.scientific_name }) : null,
        make("span", { class: "badge reference-here", text: "on screen", hidden: true }),
        make("span", { class: "small muted nowrap", text: counted(species.image_count, "image") }),
      ),
      images.length ? this.imageRow(images) : make("p", { class: "small muted", text: "No images in the corpus." }),
      lineage.length ? make("p", { class: "small muted", text: lineage.join(" › ") }) : null,
      vernaculars(species.names),
      lookalikes(species, this.compare),
    );
  }

  /** Marks the listed species that the image on screen shows. */
  markSpecies() {
    const shown = this.studio.current?.species?.id;
    for (const badge of this.body.querySelectorAll(".reference-here")) {
      badge.hidden = Number(badge.closest("[data-species]").dataset.species) !== shown;
    }
  }
}

function guidelines(html) {
  if (!html) return null;
  const text = make("div", { class: "markdown small" });
  text.innerHTML = html; // of the server, which lets no HTML of the text through
  return make("section", {}, make("h3", { text: "Guidelines" }), text);
}

/** A field that keeps the species in whose names its text occurs. */
function finder(all, rows) {
  const texts = all.map((species) =>
    [species.scientific_name, species.common_name, ...species.names.map((name) => name.name)].join("\n").toLowerCase(),
  );
  const none = make("p", { class: "small muted", text: "No species has this name.", hidden: true });
  const field = make("input", {
    type: "search",
    "aria-label": "Find a species of the filter",
    placeholder: "Find a species",
    on: {
      input: () => {
        const wanted = field.value.trim().toLowerCase();
        rows.forEach((row, index) => {
          row.hidden = !texts[index].includes(wanted);
        });
        none.hidden = rows.some((row) => !row.hidden);
      },
    },
  });
  return make("div", { class: "stack reference-find" }, field, none);
}

function vernaculars(names) {
  const byLanguage = new Map();
  for (const { language, name } of names) {
    if (!language) continue; // the scientific name, which stands above
    byLanguage.set(language, [...(byLanguage.get(language) || []), name]);
  }
  if (byLanguage.size === 0) return null;
  const rows = [...byLanguage].flatMap(([language, own]) => [
    make("dt", { text: languageName(language) }),
    make("dd", { lang: language, text: own.join(", ") }),
  ]);
  return make("dl", { class: "facts small" }, ...rows);
}

/** The look-alikes of a species, each a button that shows both side by side where `compare` does. */
function lookalikes(species, compare) {
  if (species.lookalikes.length === 0) return null;
  const items = species.lookalikes.map((lookalike) => {
    const name = speciesName(lookalike);
    const image = lookalike.thumbnail_url
      ? make("img", { src: lookalike.thumbnail_url, alt: "", loading: "lazy" })
      : make("span", { class: "reference-no-image", "aria-hidden": "true" });
    const beside =
      compare &&
      button("", () => compare(species, lookalike), {
        class: null,
        "aria-label": `${speciesName(species)} and ${name} side by side`,
      });
    beside?.append(image);
    return make(
      "li",
      {},
      beside ?? image,
      make(
        "span",
        { class: "small" },
        name,
        lookalike.common_name
          ? make("span", { class: "scientific muted", text: ` ${lookalike.scientific_name}` })
          : null,
        lookalike.times ? make("span", { class: "muted", text: ` confused ${number(lookalike.times)}\u00a0×` }) : null,
      ),
    );
  });
  return make(
    "div",
    { class: "reference-lookalikes" },
    make("h4", { class: "small", text: "Looks like" }),
    make("ul", { class: "reference-images" }, ...items),
  );
}

/** A function that shows two species side by side in a dialog, as their page does. */
function comparing(dialog) {
  const open = modal(dialog);
  const body = dialog.querySelector("[data-compare-body]");
  return async (species, other) => {
    dialog.querySelector("[data-compare-title]").textContent = `${speciesName(species)} and ${speciesName(other)}`;
    body.replaceChildren(make("p", { class: "small muted", text: "Loading …" }));
    open(dialog.querySelector("[data-close]"));
    try {
      const address = `${dialog.dataset.compare}${species.id}/${other.id}/?part`;
      const answer = await fetch(address, { credentials: "same-origin" });
      if (!answer.ok || answer.redirected) throw new Error();
      body.innerHTML = await answer.text(); // of the server, which lets no HTML of people through
    } catch {
      body.replaceChildren(make("p", { class: "small", text: "The species can’t be shown without the server." }));
    }
  };
}

/**
 * @param {Studio} studio
 * @param {HTMLElement} root the reference section
 * @param {() => Promise<void>} changed called after an example was pinned or unpinned
 * @returns {{show: (pinned: {image: number, relevant: boolean, note: string}[]) => void} | null}
 *   null where the user may not pin
 */
function mountPinning(studio, root, changed) {
  const panel = root.querySelector("[data-reference-pin]");
  if (!panel) return null;
  const note = panel.querySelector("[data-pin-note]");
  const state = panel.querySelector("[data-pin-state]");
  const buttons = [...panel.querySelectorAll("[data-pin]")];
  let pinned = new Map();
  let shown = null; // the image that the note was filled in for

  function refresh() {
    const image = studio.current?.image ?? null;
    const standing = pinned.get(image);
    for (const button of buttons) {
      const kind = button.dataset.pin;
      button.disabled = image === null;
      if (kind === "unpin") button.hidden = !standing;
      else button.setAttribute("aria-pressed", String(standing?.relevant === (kind === "relevant")));
    }
    if (image !== shown) {
      shown = image;
      note.value = standing?.note || "";
      state.textContent = "";
    }
    if (!state.textContent && standing) {
      state.textContent = `Pinned as ${standing.relevant ? "a relevant" : "a not relevant"} example.`;
    }
  }

  async function act(kind) {
    const image = studio.current?.image;
    if (!image) return;
    const path = `${studio.api}examples/`;
    state.textContent = "Saving …";
    try {
      if (kind === "unpin") await api(`${path}${image}/`, { method: "DELETE" });
      else {
        const body = { image, relevant: kind === "relevant", note: note.value.trim() };
        await api(path, { method: "POST", body });
      }
    } catch (error) {
      state.textContent = trouble(error, "Nothing was changed; try again when it is back.");
      return;
    }
    const text = {
      relevant: "Pinned as a relevant example.",
      not_relevant: "Pinned as a not relevant example.",
      unpin: "Unpinned.",
    };
    if (kind === "unpin") {
      note.value = "";
      buttons.find((button) => button.dataset.pin === "relevant").focus();
    }
    await changed();
    if (studio.current?.image === image) state.textContent = text[kind];
    else studio.announce(text[kind]);
  }

  for (const button of buttons) button.addEventListener("click", () => act(button.dataset.pin));
  studio.on("rank", refresh);
  return {
    show(examples) {
      pinned = new Map(examples.map((example) => [example.image, example]));
      refresh();
    },
  };
}

/** A dialog that shows the images of a row one by one, as large as the window allows. */

class ExampleDialog {
  /** @param {HTMLDialogElement} dialog */
  constructor(dialog) {
    this.dialog = dialog;
    this.openDialog = modal(dialog);
    this.img = dialog.querySelector("[data-example-image]");
    this.steps = [...dialog.querySelectorAll("[data-example-step]")];
    for (const button of this.steps) {
      button.addEventListener("click", () => this.step(Number(button.dataset.exampleStep)));
    }
    dialog.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (by) this.step(by);
    });
  }

  /**
   * @param {{title: string, url: string, note?: string}[]} examples
   * @param {number} index the one to begin with
   */
  open(examples, index) {
    this.examples = examples;
    this.show(index);
    this.openDialog(this.dialog.querySelector(".panel-foot [data-close]"));
  }

  step(by) {
    const index = this.index + by;
    if (index >= 0 && index < this.examples.length) this.show(index);
  }

  show(index) {
    this.index = index;
    const { title, url, note } = this.examples[index];
    this.dialog.querySelector("[data-example-title]").textContent = title;
    this.dialog.querySelector("[data-example-note]").textContent = note || "";
    this.img.src = url;
    this.img.alt = note ? `${title}: ${note}` : title;
    const many = this.examples.length;
    for (const button of this.steps) {
      // Focus would be lost from a button that becomes disabled, so it only says that it is.
      const end = button.dataset.exampleStep === "-1" ? index === 0 : index === many - 1;
      button.setAttribute("aria-disabled", String(end));
      button.hidden = many === 1;
    }
    const place = this.dialog.querySelector("[data-example-place]");
    place.textContent = many === 1 ? "" : `${index + 1} of ${many}`;
  }
}

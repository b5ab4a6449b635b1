/** What the labelling page shows; knows the document, decides nothing. */

const WORDS = { relevant: "Relevant", not_relevant: "Not relevant", unsure: "Unsure" };

export function describe(relevance) {
  return WORDS[relevance] ?? "";
}

function place({ latitude, longitude, location_uncertainty: uncertainty }) {
  if (latitude === null || latitude === undefined || longitude === null) return "";
  const side = (value, positive, negative) =>
    `${Math.abs(value).toFixed(2)}° ${value < 0 ? negative : positive}`;
  const around = uncertainty ? ` ± ${Math.round(uncertainty)} m` : "";
  return `${side(latitude, "N", "S")}, ${side(longitude, "E", "W")}${around}`;
}

function date(value) {
  return value
    ? new Date(value).toLocaleDateString(undefined, { dateStyle: "medium", timeZone: "UTC" })
    : "";
}

export class View {
  constructor(root) {
    this.root = root;
    this.stage = root.querySelector(".stage");
    this.dialog = root.querySelector("dialog");
    this.dialog.addEventListener("cancel", (event) => event.preventDefault());
  }

  get blocked() {
    return this.dialog.open;
  }

  #set(name, value) {
    this.root.querySelectorAll(`[data-show="${name}"]`).forEach((node) => {
      node.textContent = value;
    });
  }

  #message(title, text, button) {
    const box = document.createElement("div");
    box.className = "empty";
    const strong = document.createElement("strong");
    strong.textContent = title;
    const paragraph = document.createElement("p");
    paragraph.textContent = text;
    box.append(strong, paragraph);
    if (button) box.append(button);
    this.stage.replaceChildren(box);
    this.root.dataset.state = "message";
    this.#about(null);
  }

  #button(text, action, primary = true) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = primary ? "button primary" : "button";
    button.textContent = text;
    if (typeof action === "string") button.dataset.do = action;
    else button.addEventListener("click", action);
    return button;
  }

  candidate(candidate, picture) {
    picture.alt = `Candidate ${candidate.rank}`;
    this.stage.replaceChildren(picture);
    this.root.dataset.state = "labelling";
    this.#about(candidate);
  }

  #about(candidate) {
    const species = candidate?.species;
    this.#set("rank", candidate ? candidate.rank : "–");
    this.#set("score", candidate ? candidate.score.toFixed(3) : "–");
    this.#set("common-name", species?.common_name ?? "");
    this.#set("scientific-name", species?.scientific_name ?? "");
    this.#set("place", candidate ? place(candidate) || "not given" : "–");
    this.#set("date", candidate ? date(candidate.observed_at) || "not given" : "–");
    this.root.querySelectorAll("[data-species]").forEach((node) => {
      node.hidden = !species;
    });
    const given = candidate?.relevance;
    const badge = this.root.querySelector("[data-given]");
    badge.hidden = !given;
    badge.className = `badge given ${given ?? ""}`;
    badge.textContent = given ? `Labelled: ${describe(given).toLowerCase()}` : "";
    this.root.querySelectorAll("[data-do^='label:']").forEach((button) => {
      button.disabled = !candidate;
      button.setAttribute("aria-pressed", String(button.dataset.do === `label:${given}`));
    });
  }

  pictureFailed(candidate) {
    this.#message(
      "This picture could not be loaded",
      `Image ${candidate.image}. Check the connection; the picture can still be labelled later.`,
      this.#button("Load it again", () => window.location.reload(), false),
    );
  }

  progress(progress) {
    this.#set("judged", progress.judged.toLocaleString());
    this.#set("candidates", progress.candidates.toLocaleString());
    this.#set("relevant", progress.relevant.toLocaleString());
    this.#set("streak", progress.streak);
    this.#set("required", progress.stop.required);
    this.#set("remaining", progress.remaining.toLocaleString());
    const pace = progress.seconds_per_image;
    this.#set("pace", pace === null || pace === undefined ? "–" : `${pace.toFixed(1)} s`);
    const meter = this.root.querySelector("progress");
    meter.max = progress.stop.required;
    meter.value = Math.min(progress.streak, progress.stop.required);
    this.root.querySelector("[data-stop-met]").hidden =
      !progress.stop.met || progress.stop.exhausted;
  }

  saved({ waiting, error }) {
    const node = this.root.querySelector("[data-saved]");
    node.classList.toggle("waiting", waiting > 0);
    node.textContent = waiting ? `${waiting} not saved yet` : "All saved";
    const notice = this.root.querySelector("[data-offline]");
    notice.hidden = !(error && waiting);
    if (error && waiting) {
      const signedOut = error.status === 401 || error.status === 403;
      notice.querySelector("[data-offline-text]").textContent = signedOut
        ? `You are logged out. ${waiting} judgments are kept on this page: log in again in another tab, then retry.`
        : `${error.message} ${waiting} judgments are kept on this page and sent again by themselves.`;
      notice.querySelector("a").hidden = !signedOut;
    }
  }

  refused(candidate, reason) {
    const notice = this.root.querySelector("[data-refused]");
    notice.hidden = false;
    notice.querySelector("[data-refused-text]").textContent =
      `The judgment of candidate ${candidate.rank} was not stored: ${reason}`;
  }

  stop(progress) {
    if (this.dialog.open) return;
    this.dialog.querySelector("[data-dialog-title]").textContent = "The stop rule is met";
    this.dialog.querySelector("[data-dialog-text]").textContent =
      `${progress.streak} candidates in a row are not relevant. ` +
      `You found ${progress.relevant} relevant among ${progress.judged}.`;
    this.dialog.showModal();
  }

  closeStop() {
    this.dialog.close();
  }

  handingIn() {
    this.root.querySelectorAll("[data-do='hand-in']").forEach((button) => {
      button.disabled = true;
      button.textContent = "Handing in …";
    });
  }

  refusedHandIn(error) {
    if (this.dialog.open) this.dialog.close();
    this.root.querySelectorAll("[data-do='hand-in']").forEach((button) => {
      button.disabled = false;
      button.textContent = "Hand in";
    });
    const notice = this.root.querySelector("[data-refused]");
    notice.hidden = false;
    notice.querySelector("[data-refused-text]").textContent = `Not handed in: ${error.message}`;
  }

  building() {
    this.#message(
      "The candidate list is being made",
      "Every image of the filter is compared with the query. This page goes on by itself.",
    );
  }

  nothing(list) {
    this.#message("There is nothing to label", list.detail || "The list holds no candidates.");
  }

  failed(error, again) {
    this.#message(
      "The candidates could not be loaded",
      error.message,
      again && this.#button("Try again", again),
    );
  }

  end(list, progress, extend) {
    if (progress?.stop.exhausted) {
      this.#message(
        "The list is exhausted",
        `All ${progress.candidates.toLocaleString()} candidates are labelled, ` +
          `${progress.relevant.toLocaleString()} of them relevant. Hand the query in, or step back to check.`,
        this.#button("Hand in", "hand-in"),
      );
    } else if (list && list.size < list.total) {
      this.#message(
        "The end of the list so far",
        `All ${list.size.toLocaleString()} candidates are labelled, of ${list.total.toLocaleString()} images in the filter.`,
        this.#button("Extend the list", extend),
      );
    } else {
      this.#message(
        "All candidates are labelled",
        list?.unembedded
          ? `${list.unembedded.toLocaleString()} images of the filter have no embedding yet, so it isn't exhausted.`
          : "The last judgments are being saved.",
      );
    }
  }

  announce(text) {
    this.root.querySelector("[data-live]").textContent = text;
  }
}

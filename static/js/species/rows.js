/** Species and their groups in words, and as rows of a picker's list. */
import { make } from "../dom.js";
import { counted, languageName, speciesName } from "../words.js";
import { GROUP_NAMES } from "./source.js";

const RANKS_SHOWN = ["order", "family", "genus"];

/** "Strigiformes › Strigidae › Strix", from the ranks that are known. */
export function lineageOf(species) {
  return RANKS_SHOWN.map((rank) => species[rank])
    .filter(Boolean)
    .join(" › ");
}

/** "4 images", or of a list's species "4 candidates". */
export function imagesOf({ here, image_count }) {
  return here === undefined ? counted(image_count, "image") : counted(here, "candidate");
}

/** "Genus Strix", "Look-alike group “brown owls”". */
export function groupTitle({ kind, name }) {
  return `${GROUP_NAMES[kind]} ${kind === "lookalike" ? `“${name}”` : name}`;
}

function groupName({ kind, name }) {
  if (kind === "genus") return make("i", { text: name });
  return kind === "lookalike" ? `“${name}”` : name;
}

/** "4 species". */
export function sizeOf({ species_count }) {
  return counted(species_count, "species", "species");
}

/** One species to choose. */
export function speciesRow(species, { id, chosen }) {
  const { common_name, scientific_name, matched_name, matched_language, thumbnail_url } = species;
  const title = make("span", { class: "picker-title" }, speciesName(species));
  if (common_name) title.append(" ", make("i", { class: "picker-scientific", text: scientific_name }));
  else title.classList.add("picker-scientific");
  const names = make("span", { class: "picker-names" }, title);
  if (matched_name && ![common_name, scientific_name].includes(matched_name)) {
    const language = matched_language ? ` (${languageName(matched_language)})` : "";
    names.append(make("span", { class: "picker-matched", text: `“${matched_name}”${language}` }));
  }
  names.append(make("span", { class: "picker-lineage", text: lineageOf(species) }));
  const img = thumbnail_url
    ? make("img", { src: thumbnail_url, alt: "", width: 44, height: 44 })
    : make("span", { class: "picker-no-image" });
  return row(id, img, names, chosen ? "chosen" : imagesOf(species));
}

/** One group, of which all species are chosen together. */
export function groupRow(group, { id }) {
  const names = make(
    "span",
    { class: "picker-names" },
    make("span", { class: "picker-title" }, `${GROUP_NAMES[group.kind]} `, groupName(group)),
    make("span", { class: "picker-lineage", text: `${sizeOf(group)}, ${imagesOf(group)}` }),
  );
  return row(id, make("span", { class: "picker-plus", "aria-hidden": "true", text: "+" }), names, "add all");
}

function row(id, img, names, end) {
  return make(
    "li",
    { role: "option", id, "aria-selected": "false" },
    img,
    names,
    make("span", { class: "picker-end", text: end }),
  );
}

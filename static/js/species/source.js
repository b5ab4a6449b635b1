/** Where a picker finds species: the server's whole corpus, or what is among a list's candidates. */
import { api } from "../api.js";

export const GROUP_NAMES = { genus: "Genus", family: "Family", lookalike: "Look-alike group" };
const GROUP_FIELDS = { genus: "genus", family: "family", lookalike: "lookalike_group" };

/**
 * What a search finds: species as the API gives them, `total` of all that match, and groups to add as a whole.
 * @typedef {{species: object[], groups: object[], total: number}} Found
 * @typedef {{found: object[], missing: string[], suggestions: {name: string, species: object[]}[], outside?: object[]}} Resolved
 *   `outside`: species that the corpus has, but not this source
 */

/** All species of the corpus, through the API. */
export class CorpusSource {
  /** What is offered before anything is typed: null for nothing. @returns {Promise<Found|null>} */
  async first() {
    return null;
  }

  /**
   * Species with images called like `text`, with the groups called so and those of the species that fits best.
   * @returns {Promise<Found>} rejects with ApiError, or AbortError when `signal` is aborted
   */
  async search(text, { limit, signal }) {
    const parameters = `search=${encodeURIComponent(text)}`;
    const groups = api(`/api/species/groups/?${parameters}`, { signal });
    // Without a handler of its own it would count as unhandled where the species fail first.
    groups.catch(() => {});
    const { results, count } = await api(`/api/species/?${parameters}&with_images=true&limit=${limit}`, { signal });
    const related = results[0]?.groups.length ? await this.#groupsOf(results[0].id, signal) : [];
    const there = [...(await groups), ...related].filter(({ image_count: images }) => images);
    return { species: results, groups: eachOnce(there), total: count };
  }

  /** What a species' chip shows when it is opened. */
  async details(id) {
    const [species, groups] = await Promise.all([api(`/api/species/${id}/`), this.#groupsOf(id)]);
    return { ...species, groups };
  }

  async #groupsOf(id, signal) {
    return api(`/api/species/groups/?species=${id}`, { signal });
  }

  /** @returns {Promise<Resolved>} the species that names, and groups `{kind, name}`, stand for */
  async resolve({ names = [], groups = [] }) {
    return api("/api/species/resolve/", {
      method: "POST",
      body: { names, groups: groups.map(({ kind, name }) => ({ kind, name })) },
    });
  }
}

/** The species among the candidates of one list, with the number of candidates of each as `here`. */
export class CandidatesSource extends CorpusSource {
  /** @param {{id: number, count: number}[]} species all that there are among the candidates, most candidates first */
  constructor(species) {
    super();
    this.counts = new Map(species.map(({ id, count }) => [id, count]));
  }

  async first(limit) {
    const ids = [...this.counts.keys()].slice(0, limit);
    const { found } = await this.resolve({ names: ids.map(String) });
    const species = found.sort((a, b) => ids.indexOf(a.id) - ids.indexOf(b.id));
    return { species, groups: [], total: this.counts.size };
  }

  async search(text, { limit, signal }) {
    const found = await super.search(text, { limit: 500, signal });
    const species = this.#among(found.species);
    return {
      species: species.slice(0, limit),
      groups: await this.#groupsAmong(found.groups),
      total: species.length,
    };
  }

  async details(id) {
    const species = await super.details(id);
    const [one] = this.#among([species]);
    return { ...species, ...one, groups: await this.#groupsAmong(species.groups) };
  }

  async resolve(wanted) {
    const resolved = await super.resolve(wanted);
    const suggestions = resolved.suggestions
      .map(({ name, species }) => ({ name, species: this.#among(species) }))
      .filter(({ species }) => species.length);
    const outside = resolved.found.filter(({ id }) => !this.counts.has(id));
    return { ...resolved, found: this.#among(resolved.found), suggestions, outside };
  }

  /** The groups of which two or more species are among the candidates, counted there. */
  async #groupsAmong(groups) {
    if (!groups.length) return [];
    const { found } = await this.resolve({ groups });
    return groups
      .map((group) => {
        const members = found.filter((species) => species[GROUP_FIELDS[group.kind]] === group.name);
        const here = members.reduce((sum, species) => sum + species.here, 0);
        return { ...group, species_count: members.length, here };
      })
      .filter(({ species_count: count }) => count > 1);
  }

  #among(species) {
    return species.filter(({ id }) => this.counts.has(id)).map((one) => ({ ...one, here: this.counts.get(one.id) }));
  }
}

function eachOnce(groups) {
  return [...new Map(groups.map((group) => [`${group.kind} ${group.name}`, group])).values()];
}

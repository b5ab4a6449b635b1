/** @param {import("./studio.js").Studio} studio */
export function mount(studio) {
  void studio;
}

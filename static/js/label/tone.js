/** Brightness and contrast of the picture, by sliders and keys, kept for the next session. */

const STEP = 0.1;
const LEAST = 0.3;
const MOST = 3;
const TONES = ["brightness", "contrast"];

const percent = (value) => `${Math.round(value * 100)} %`;

/**
 * @param {import("./studio.js").Studio} studio
 * @param {HTMLElement} root the single view: its picture takes the tone from custom properties of this element
 */
export function mountTone(studio, root) {
  const button = root.querySelector("[data-tone-open]");
  const panel = root.querySelector("[data-tone]");
  const sliders = Object.fromEntries(TONES.map((name) => [name, panel.querySelector(`[name="${name}"]`)]));

  const value = (name) => studio.preferences.get(name, 1);

  function render() {
    for (const name of TONES) {
      root.style.setProperty(`--${name}`, value(name));
      sliders[name].value = value(name);
      sliders[name].setAttribute("aria-valuetext", percent(value(name)));
      panel.querySelector(`[data-value="${name}"]`).textContent = percent(value(name));
    }
    const changed = TONES.some((name) => value(name) !== 1);
    root.classList.toggle("toned", changed);
    button.classList.toggle("on", changed);
  }

  function set(name, wanted) {
    const held = Math.round(Math.min(Math.max(wanted, LEAST), MOST) * 100) / 100;
    studio.preferences.set(name, held);
    render();
  }

  function step(name, by) {
    set(name, value(name) + by);
    studio.say(`${name === "brightness" ? "Brightness" : "Contrast"} ${percent(value(name))}`);
  }

  function reset() {
    for (const name of TONES) studio.preferences.set(name, 1);
    render();
  }

  function open(wanted) {
    panel.hidden = !wanted;
    button.setAttribute("aria-expanded", String(wanted));
    if (wanted) sliders.brightness.focus();
  }

  for (const name of TONES) {
    sliders[name].addEventListener("input", () => set(name, Number(sliders[name].value)));
  }
  button.addEventListener("click", () => open(panel.hidden));
  panel.querySelector("[data-tone-reset]").addEventListener("click", reset);
  panel.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    open(false);
    button.focus();
  });
  document.addEventListener("pointerdown", (event) => {
    if (!panel.hidden && !panel.contains(event.target) && !button.contains(event.target)) open(false);
  });
  studio.action("brighter", () => step("brightness", STEP));
  studio.action("darker", () => step("brightness", -STEP));
  studio.action("more_contrast", () => step("contrast", STEP));
  studio.action("less_contrast", () => step("contrast", -STEP));
  studio.action("plain_picture", () => {
    reset();
    studio.say("The picture as it is");
  });
  render();
}

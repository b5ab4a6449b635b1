/** Counts the seconds in which the page is visible and the person is there (at most 30 s after the last act). */

const IDLE_AFTER = 30_000;

export class ActiveClock {
  constructor() {
    this.total = 0;
    this.mark = performance.now();
    this.visible = !document.hidden;
    const act = () => this.#count();
    for (const kind of ["keydown", "pointerdown", "pointermove", "wheel"]) {
      window.addEventListener(kind, act, { passive: true, capture: true });
    }
    document.addEventListener("visibilitychange", () => {
      this.#count();
      this.visible = !document.hidden;
    });
  }

  #count() {
    const now = performance.now();
    if (this.visible) this.total += Math.min(now - this.mark, IDLE_AFTER);
    this.mark = now;
  }

  /** Active seconds since the last call, to the millisecond. */
  take() {
    this.#count();
    const seconds = Math.round(this.total) / 1000;
    this.total = 0;
    return seconds;
  }
}

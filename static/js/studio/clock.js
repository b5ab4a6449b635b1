/** Counts the seconds in which the page is visible and the person is there. */
const IDLE_AFTER = 30_000;
const ACTS = ["keydown", "pointerdown", "pointermove", "wheel", "touchstart"];

/**
 * Active time: the page is visible, and the last act is at most 30 s ago. Of a longer stretch without an act, the
 * first 30 s count.
 */
export class ActiveClock {
  /**
   * @param {{now?: () => number, target?: EventTarget, page?: Document}} [options] `now` gives milliseconds that never
   *   run backwards; acts are heard on `target`, visibility on `page`
   */
  constructor({ now = () => performance.now(), target = window, page = document } = {}) {
    this.now = now;
    this.page = page;
    this.visible = page.visibilityState === "visible";
    /** Up to here time has been counted. */
    this.mark = now();
    this.lastAct = this.mark;
    this.waiting = 0;
    this.taken = 0;
    const act = () => {
      this.#count();
      this.lastAct = this.mark;
    };
    for (const kind of ACTS) target.addEventListener(kind, act, { passive: true, capture: true });
    page.addEventListener("visibilitychange", () => {
      this.#count();
      this.visible = page.visibilityState === "visible";
      // Returning to the page counts as an act.
      if (this.visible) this.lastAct = this.mark;
    });
  }

  #count() {
    const now = this.now();
    if (this.visible) {
      const end = Math.min(now, this.lastAct + IDLE_AFTER);
      this.waiting += Math.max(0, end - this.mark);
    }
    this.mark = now;
  }

  /** Active seconds since the last call, to the millisecond: what one judgment took. */
  take() {
    this.#count();
    const seconds = Math.round(this.waiting) / 1000;
    this.waiting = 0;
    this.taken += seconds;
    return seconds;
  }

  /** Active seconds since the page was opened. */
  get total() {
    this.#count();
    return this.taken + this.waiting / 1000;
  }
}

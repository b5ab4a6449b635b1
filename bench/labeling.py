"""How fast labeling is: `python -m bench.labeling`.

A list of a new application is labeled in both views in Chromium. Every time is compared with that
of a request that does nothing. Many annotators at once are in `bench.load`. `--candidates` is the
number of images of a list, at least two pages of the grid.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

import numpy as np
from playwright.sync_api import Browser, Page, sync_playwright

from bench import harness
from bench.crowd import bare_requests, site
from tests.processes import CHROMIUM, wait_for
from tests.site import Site

PACED_IMAGES: Final = 300
PACED_PAGES: Final = 13
AIM_NEXT: Final = 0.050
HEAD: Final = "What | Median | 95 % | × bare request | Remark"
GRID_SIZE: Final = 40
RELEVANT_EVERY: Final = 20
"""Keeps the list from 100 negatives in a row, so that the page doesn't ask about stopping."""
PERSON: Final = "ann0"

# From the key's own timestamp to the end of the first frame in which what follows is in place and
# decoded: the callback runs before that frame is painted, the message after it.
_ARM: Final = """(view) => {
  const tiles = () =>
    [...document.querySelectorAll('[data-tiles] [data-rank]:not([data-rank=""])')];
  const shown = () => view === "single"
    ? document.querySelector("[data-canvas] img") : tiles()[0]?.dataset.rank;
  const before = shown();
  const images = () => view === "single"
    ? [shown()] : tiles().map((tile) => tile.querySelector("img"));
  const isNext = () => shown() !== before &&
    images().every((image) => image?.complete && image.naturalWidth > 0);
  window.waited = new Promise((resolve, reject) => {
    window.addEventListener("keydown", (event) => {
      const check = () => {
        if (!isNext()) {
          requestAnimationFrame(check);
          return;
        }
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => resolve(performance.now() - event.timeStamp);
        port2.postMessage(null);
      };
      requestAnimationFrame(check);
    }, { capture: true, once: true });
    setTimeout(() => reject(new Error("Nothing followed the key.")), 30_000);
  });
}"""
# The page takes a key for an image that it knows to be on screen.
_READY: Final = {
    "single": "() => document.querySelector('[data-single]').dataset.painted",
    "grid": """() => {
      const tiles = document.querySelectorAll('[data-tiles] [data-rank]:not([data-rank=""])');
      return tiles.length > 0 && [...tiles].every((tile) => "seen" in tile.dataset);
    }""",
}
_SHOWN: Final = {"single": "[data-canvas] img", "grid": "[data-tiles] [data-seen]"}


@dataclass(slots=True)
class Session:
    """One person's work on one list."""

    images: int = 0
    waits: list[float] = field(default_factory=list)
    """Seconds from each key to what follows it on screen."""
    elapsed: float = 0.0
    """Seconds from the first key until the last judgment was in the database."""
    requests: int = 0
    bytes: int = 0
    """As sent, headers included, from the opening of the page on, without what was cached."""


def main(options: Any) -> tuple[bool, list[str]]:
    """The times of labeling."""
    depth = options.candidates
    harness.log("Starting an application of its own and drawing its images …")
    with (
        harness.temporary_folder() as folder,
        site(folder, depth=depth, annotators=1) as where,
        sync_playwright() as playwright,
    ):
        bare, one_row = bare_requests(where), bare_requests(where, "/api/preferences/labeling/")
        image = where.api(PERSON, "GET", "/api/images/?limit=1")["results"][0]["thumbnail_url"]
        shown = bare_requests(where, image)
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        with playwright.chromium.launch(executable_path=CHROMIUM, args=arguments) as browser:

            def work(text: str, view: str, most: int, pause: float) -> Session:
                harness.log(f"Labeling {text} …")
                query, images = where.open_query(text), min(depth, most)
                return _label(where, browser, query, view, images=images, pause=pause)

            fast = work("a bird on a branch at night", "single", depth, 0)
            paced = work("a beetle in a meadow", "single", PACED_IMAGES, 1 / 3)
            grid = work("a snail on a leaf", "grid", depth, 0)
            turned = work("a spider in its web", "grid", PACED_PAGES * GRID_SIZE, 5)

    def within(waits: Sequence[float]) -> str:
        return f"{np.mean(np.array(waits) < AIM_NEXT):.1%} within {AIM_NEXT * 1000:.0f} ms"

    key, page = "Single: key to next image painted", f"Grid: page of {GRID_SIZE} to next painted"
    rows = [
        [
            *(name, harness.ms(median(waits)), harness.ms(float(np.percentile(waits, 95)))),
            *(f"{median(waits) / median(bare):.1f}", remark),
        ]
        for name, waits, remark in (
            ("Bare request: a static file", bare, "the reference"),
            ("Bare request: logged in, one row", one_row, ""),
            ("Bare request: an image that was shown before", shown, ""),
            (f"{key}, as fast as keys come", fast.waits, within(fast.waits)),
            (f"{key}, 3 a second", paced.waits, within(paced.waits)),
            (f"{page}, without a pause", grid.waits, f"{len(grid.waits)} pages"),
            (f"{page}, one in 5 s", turned.waits, f"{len(turned.waits)} pages"),
        )
    ]
    for name, session in (("Single", fast), ("Grid", grid)):
        rate = f"{session.images / session.elapsed:.1f}"
        remark = f"{session.images} in {session.elapsed:.1f} s"
        rows.append([f"{name}: judgments a second in the database", rate, "", "", remark])
        hundreds = session.images / 100
        traffic = f"{session.requests / hundreds:.0f} / {session.bytes / hundreds / 1e6:.2f} MB"
        remark = "the opening of the page included"
        rows.append([f"{name}: a hundred images: requests / bytes", traffic, "", "", remark])
    return True, [harness.table(HEAD, rows)]


def _label(
    where: Site, browser: Browser, query: int, view: str, *, images: int, pause: float
) -> Session:
    """Label a list image by image ("single") or by pages of GRID_SIZE with a relevant image on each
    ("grid"). `pause` is the least time for a step in seconds. The last image or page is left, since
    nothing follows it on screen.
    """
    session, path = Session(), f"/api/queries/{query}/"
    preferences = {"view": {"view": view, "grid_size": GRID_SIZE}}
    where.api(PERSON, "PUT", "/api/preferences/labeling/", preferences)
    with browser.new_context(viewport={"width": 1366, "height": 850}) as context:
        context.add_cookies(where.cookies(PERSON))
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.goto(f"{where.url}/")
        _count(page, session)
        page.goto(f"{where.url}/queries/{query}/label/")
        page.locator(_SHOWN[view]).first.wait_for()
        page.wait_for_load_state("networkidle")
        began = due = time.perf_counter()
        step = GRID_SIZE if view == "grid" else 1
        while session.images + 2 * step <= images:
            page.wait_for_function(_READY[view])
            if view == "grid":
                page.keyboard.press("Space")
            time.sleep(max(0.0, due + pause - time.perf_counter()))
            due = max(due + pause, time.perf_counter())
            session.images += step
            relevant = session.images % RELEVANT_EVERY == 0
            page.evaluate(_ARM, view)
            page.keyboard.press("Enter" if view == "grid" else "r" if relevant else "n")
            session.waits.append(float(page.evaluate("() => window.waited")) / 1000)
        wait_for(
            lambda: where.api(PERSON, "GET", path)["progress"]["judged"] >= session.images,
            what=f"{session.images} judgments in the database",
        )
        session.elapsed = time.perf_counter() - began
    return session


def _count(page: Page, session: Session) -> None:
    """Count the page's requests and bytes from now on."""
    devtools = page.context.new_cdp_session(page)
    cached: set[str] = set()

    def received(event: dict[str, Any]) -> None:
        if event["response"].get("fromDiskCache"):
            cached.add(event["requestId"])

    def finished(event: dict[str, Any]) -> None:
        if event["requestId"] not in cached:
            session.requests += 1
            session.bytes += int(event["encodedDataLength"])

    devtools.on("Network.requestServedFromCache", lambda event: cached.add(event["requestId"]))
    devtools.on("Network.responseReceived", received)
    devtools.on("Network.loadingFinished", finished)
    devtools.send("Network.enable")


if __name__ == "__main__":
    packages = ("Django", "gunicorn", "playwright")
    harness.run(main, "Labeling", packages, candidates=1000)

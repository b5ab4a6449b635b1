"""The README's pictures of the labeling page, taken of a new demo: `make pictures`."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Final

from playwright.sync_api import Page, ViewportSize, sync_playwright

from tests.processes import CHROMIUM, Served, wait_for

FOLDER: Final = Path(__file__).parent
TEXT: Final = "animals in front of a camera trap at night"
IMAGES: Final = 600
LABELED: Final = 3
VIEWPORT: Final = ViewportSize(width=1366, height=857)
TILES: Final = "[data-tiles] [data-rank] img"
SHOWN: Final = """() => {
  const tiles = [...document.querySelectorAll('[data-tiles] [data-rank]:not([data-rank=""])')];
  return tiles.length > 0 && tiles.every((tile) => "seen" in tile.dataset);
}"""
RELEVANT: Final = f"""
import json
from demo.queries import QUERIES
from demo.release import relevant_images
[query] = [query for query in QUERIES if query.query_text == {TEXT!r}]
print(json.dumps(sorted(relevant_images(query))))
"""


def main() -> None:
    """Label the first images of a query by what is drawn, and take a picture of each view."""
    with tempfile.TemporaryDirectory() as folder:
        served = Served(Path(folder) / "var", "demo", f"--images={IMAGES}")
        try:
            wait_for(
                lambda: "All images are there" in served.output.read_text(),
                seconds=900,
                what="the demo",
            )
            answer = served.manage("shell", "--verbosity=0", "--command", RELEVANT)
            relevant = set(json.loads(answer.stdout))
            people = json.loads((served.var_dir / "demo_passwords.json").read_text())
            passwords = {person["name"]: person["password"] for person in people}
            with (
                sync_playwright() as playwright,
                playwright.chromium.launch(
                    executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
                ) as browser,
            ):
                page = browser.new_page(viewport=VIEWPORT, bypass_csp=True)
                page.goto(f"{served.url}/login/")
                page.fill("[name=username]", "annotator")
                page.fill("[name=password]", passwords["annotator"])
                page.press("[name=password]", "Enter")
                page.get_by_role("link", name=TEXT).first.click()
                page.get_by_role("link", name="Label").first.click()
                label(page, relevant)
        finally:
            served.stop()


def label(page: Page, relevant: set[int]) -> None:
    """Label the first images one at a time, then mark a page of the grid."""
    for _ in range(LABELED):
        page.wait_for_function("document.querySelector('[data-single]').dataset.painted")
        image = page.locator("[data-canvas] img")
        before = image.get_attribute("src")
        assert before is not None
        page.keyboard.press("r" if shown_id(before) in relevant else "n")
        page.wait_for_function(
            "before => document.querySelector('[data-canvas] img')?.getAttribute('src') !== before",
            arg=before,
        )
    page.get_by_text("All saved").wait_for()
    page.screenshot(path=FOLDER / "label.png")
    page.keyboard.press("g")
    page.wait_for_function(SHOWN)
    for tile in page.locator(TILES).all():
        address = tile.get_attribute("src")
        if address and shown_id(address) in relevant:
            tile.locator("xpath=..").click()
    page.mouse.move(0, 0)
    page.screenshot(path=FOLDER / "grid.png")


def shown_id(address: str) -> int:
    """The image's id in the address of one of its files, /images/ID/VERSION.jpg."""
    return int(address.rpartition("/images/")[2].partition("/")[0])


if __name__ == "__main__":
    main()

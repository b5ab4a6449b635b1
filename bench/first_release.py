"""What a newcomer does from an empty folder to a release: `python -m bench.first_release`.

One person does it in the browser, after `make serve`: the first admin, images, a model, a query,
its labels, review, split, release; then an annotator labels a second query on a phone, and another
the first image of the demo. Counted are clicks (or taps), characters typed, keys pressed, and the
seconds that the machine takes, without those in which a person thinks. `--photographs` is a folder
as `import_images` takes it; where it isn't there, a few pictures are drawn. `--pictures FOLDER`
keeps the page at the end of each step.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any, Final

from PIL import Image
from playwright.sync_api import Browser, Locator, Page, sync_playwright

from bench import harness
from tests import ROOT
from tests.processes import CHROMIUM, Served, wait_for

PHOTOGRAPHS: Final = ROOT.parent / "shared" / "photos"
RELEVANT: Final = ("Anas platyrhynchos", "Anser anser", "Cygnus olor")
PASSWORD: Final = "a-brown-owl-at-dawn-8"
HEAD: Final = "Step | Clicks | Characters | Keys | Seconds"
SECOND_QUERY: Final = """
from django.contrib.auth import get_user_model
from labeling.lifecycle.services import query_create, query_transition
admin = get_user_model().objects.get(username="ada")
query = query_create(text="a duck", category="Species ID", split="val", created_by=admin)
query_transition(query=query, to_state="open", by=admin)
"""
# The picture on screen, or the end of the list.
SHOWN: Final = """before => {
  const image = document.querySelector("[data-single][data-painted] [data-canvas] img");
  const end = document.querySelector("#studio").dataset.state === "end";
  const source = image?.getAttribute("src");
  return end ? "end" : source && source !== before ? source : null;
}"""


class Person:
    """Somebody at a page, whose actions are counted step by step."""

    def __init__(self, page: Page, pictures: str) -> None:
        self.page, self.pictures = page, pictures
        self.rows: list[tuple[str, int, int, int, float]] = []
        self._begin()

    def click(self, name: str, *, role: Any = "button", within: Locator | None = None) -> None:
        """Click the last link or button of that name."""
        (within or self.page).get_by_role(role, name=name, exact=True).last.click()
        self.clicks += 1

    def fill(self, label: str, text: str) -> None:
        """Click into a field and type."""
        self.page.get_by_label(label, exact=True).fill(text)
        self.clicks += 1
        self.characters += len(text)

    def select(self, label: str, option: str) -> None:
        """Choose from a list, by two clicks."""
        self.page.get_by_label(label).select_option(option)
        self.clicks += 2

    def log_in(self, url: str, name: str, password: str) -> None:
        """Log in at the site."""
        self.page.goto(f"{url}/login/")
        self.fill("User name", name)
        self.fill("Password", password)
        self.click("Log in")
        self.page.wait_for_url(f"{url}/")

    def upload(self, label: str, folder: Path) -> None:
        """Choose a folder: open the dialog, click the folder, confirm."""
        self.page.get_by_label(label).set_input_files(folder)
        self.clicks += 3

    def label(self, relevant: set[str], *, touch: bool = False) -> None:
        """Label the whole list, by a key or a tap an image."""
        shown = ""
        while True:
            shown = self.page.wait_for_function(SHOWN, arg=shown).json_value()
            if shown == "end":
                return
            found = re.search(r"/images/(\d+)/", shown)
            assert found is not None
            is_relevant = found[1] in relevant
            if touch:
                does = "relevant" if is_relevant else "not_relevant"
                self.page.locator(f"[data-bar=single] [data-do={does}]").tap()
                self.clicks += 1
            else:
                self.page.keyboard.press("r" if is_relevant else "n")
                self.keys += 1

    def done(self, step: str) -> None:
        """End a step."""
        took = time.monotonic() - self.began
        self.rows.append((step, self.clicks, self.characters, self.keys, took))
        if self.pictures:
            name = f"{len(self.rows):02} {step}.png"
            self.page.screenshot(path=Path(self.pictures) / name, full_page=True)
        self._begin()

    def table(self) -> str:
        """The steps, with their sum."""
        sums = [sum(column) for column in list(zip(*self.rows, strict=True))[1:]]
        return harness.table(HEAD, [*self.rows, ("All", *sums)])

    def _begin(self) -> None:
        self.clicks = self.characters = self.keys = 0
        self.began = time.monotonic()


def main(options: Any) -> tuple[bool, list[str]]:
    """Walk the way; it is right if the release has a relevant pair."""
    with harness.temporary_folder() as folder, sync_playwright() as playwright:
        photographs = Path(options.photographs)
        if not photographs.is_dir():
            photographs = _drawn(folder / "photographs")
        served = Served(folder / "var", EMBEDDING_MODEL="ViT-H-14-378-quickgelu/dfn5b")
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        try:
            link = _printed(served, r"http://\S+/first-admin/\S+\n")
            window = {"width": 1366, "height": 850}
            page = browser.new_page(viewport=window, bypass_csp=True)
            ada = Person(page, options.pictures)
            page.goto(link[0].strip())
            pairs = _first_release(ada, served.url, photographs)
            served.manage("shell", "-v0", "-c", SECOND_QUERY)
            served.manage("create_user", "ann", "--password", PASSWORD)
            phone = playwright.devices["Pixel 7"]
            context = browser.new_context(**phone, bypass_csp=True)
            ann = Person(context.new_page(), options.pictures)
            _on_a_phone(ann, served.url)
        finally:
            served.stop()
        first_label = _first_label_of_demo(browser, folder / "demo")
    parts = [
        *("By one person at a desk:", ada.table(), "By an annotator on a phone:", ann.table()),
        f"`make demo`, once installed: its first label after {first_label:.0f} s.",
    ]
    return pairs > 0, parts


def _printed(served: Served, pattern: str) -> re.Match[str]:
    """What the command has printed."""
    found: re.Match[str] = wait_for(
        lambda: re.search(pattern, served.output.read_text()), seconds=300, what=pattern
    )
    return found


def _first_label_of_demo(browser: Browser, var_dir: Path) -> float:
    """Start the demo, log in as soon as it can be, and label the first image of a query; returns
    the seconds that this took.
    """
    began, demo = time.monotonic(), Served(var_dir, "demo")
    try:
        printed = _printed(demo, r"annotator +password (\S+)\n")
        page = browser.new_page(bypass_csp=True)
        Person(page, "").log_in(demo.url, "annotator", printed[1])
        begin = page.get_by_role("link", name=re.compile("^Begin "))
        while not begin.count():
            page.wait_for_timeout(1000)
            page.reload()
        begin.first.click()
        page.locator("[data-single][data-painted]").wait_for(timeout=60_000)
        page.keyboard.press("n")
        page.get_by_text("All saved · 1").wait_for()
        return time.monotonic() - began
    finally:
        demo.stop()


def _first_release(person: Person, url: str, photographs: Path) -> int:
    """From the first page to the downloaded labels; returns the number of relevant pairs."""
    page = person.page
    page.set_default_timeout(120_000)
    person.fill("User name", "ada")
    person.fill("Password", PASSWORD)
    person.fill("Password again", PASSWORD)
    person.click("Begin")
    page.wait_for_url(f"{url}/")
    person.done("The first admin")
    person.click("Bring in images", role="link")
    person.upload("A folder", photographs)
    person.click("Upload")
    person.click("Import")
    page.locator(".badge.done").wait_for()
    person.done("Images")
    person.click("Have the model look at them (embed)", role="link")
    person.fill("Model", "demo")
    person.click("Show")
    person.click("Embed the corpus and use it")
    page.locator(".badge.done").wait_for()
    person.done("A model")
    person.click("Write a query", role="link")
    person.fill("Query text", "a duck or a goose")
    person.select("Category", "Species ID")
    person.select("Iconic group", "Birds")
    person.click("Create as a draft")
    person.click("Open it")
    page.locator(".badge.open").wait_for()
    person.done("A query")
    person.click("Label its images", role="link")
    page.locator("[data-single][data-painted]").wait_for()
    person.label(_relevant(page, url, query=1))
    person.done("Its labels")
    person.click("Hand in …")
    person.click("Hand in", within=page.get_by_role("dialog"))
    person.click("Review it", role="link")
    person.click("Complete", role="link")
    person.click("Complete")
    page.locator(".badge.complete").first.wait_for()
    person.done("Handing in and review")
    person.click("Split the queries", role="link")
    person.click("Apply this draw")
    person.click("Make a release", role="link")
    person.fill("Name", "first")
    person.click("Make release")
    with page.expect_download() as download:
        person.click("inquire_annotations.csv", role="link")
    rows = download.value.path().read_text().splitlines()
    person.done("Splits and a release")
    return len(rows) - 1


def _on_a_phone(person: Person, url: str) -> None:
    page = person.page
    page.set_default_timeout(60_000)
    person.log_in(url, "ann", PASSWORD)
    person.done("Logging in")
    person.click("Begin a duck", role="link")
    page.locator("[data-single][data-painted]").wait_for()
    person.label(_relevant(page, url, query=2), touch=True)
    person.done("Labels")
    person.click("Hand in …")
    person.click("Hand in", within=page.get_by_role("dialog"))
    page.wait_for_url(f"{url}/")
    person.done("Handing in")


def _relevant(page: Page, url: str, *, query: int) -> set[str]:
    """The ids of the images that a person finds relevant."""
    address = f"{url}/api/queries/{query}/candidates/?limit=200"
    rows = page.request.get(address).json()["results"]
    return {str(row["image"]) for row in rows if row["species"]["scientific_name"] in RELEVANT}


def _drawn(folder: Path) -> Path:
    for species, color in (
        (RELEVANT[0], "tan"),
        (RELEVANT[1], "gray"),
        ("Rana temporaria", "olive"),
    ):
        (folder / species).mkdir(parents=True)
        Image.new("RGB", (60, 40), color).save(folder / species / f"{color}.jpg")
    return folder


if __name__ == "__main__":
    title, packages = "From an empty folder to a release", ("Django", "playwright")
    harness.run(main, title, packages, photographs=str(PHOTOGRAPHS), pictures="")

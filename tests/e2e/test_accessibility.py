"""Every page and every dialog, as each role that sees it, in light and dark, wide and narrow:
axe-core finds nothing serious, and nothing scrolls sideways.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.axe import violations, wider_than_window
from tests.e2e.conftest import DESKTOP, Site
from tests.e2e.panels import open_studio
from tests.processes import wait_for

pytestmark = pytest.mark.e2e

NARROW = {"width": 360, "height": 740}
LOOKS = [
    pytest.param({"viewport": size, "color_scheme": scheme}, id=f"{name}-{scheme}")
    for name, size in (("desktop", DESKTOP), ("narrow", NARROW))
    for scheme in ("light", "dark")
]


@dataclass
class Places:
    """Queries and jobs of every kind there is a page for."""

    open: int
    submitted: int
    rejected: int
    draft: int
    job: int


@dataclass
class Look:
    """Collects what is wrong on the pages that were looked at, so that one run tells all."""

    page: Page
    site: Site
    wrong: list[str] = field(default_factory=list)

    def at(self, name: str) -> None:
        """Check what stands on screen now."""
        found = violations(self.page) + wider_than_window(self.page)
        self.wrong += [f"{name}: {one}" for one in found]

    def pages(self, *paths: str) -> None:
        for path in paths:
            self.page.goto(self.site.url + path)
            expect(self.page.locator("main")).to_be_visible()
            self.at(path)


@pytest.fixture(scope="module")
def places(site: Site) -> Places:
    species = [one["scientific_name"] for one in site.api("ada", "GET", "/api/species/")["results"]]
    guidelines = "The whole animal counts.\n\nIts traces don't."
    opened = site.open_query("a finch on a twig", species=species[:12], guidelines=guidelines)
    listed = [one["image"] for one in site.candidates("ada", opened, limit=20)["results"]]
    for image, relevant in ((listed[0], True), (listed[1], False)):
        example = {"image": image, "relevant": relevant, "note": "as the guidelines say"}
        site.api("ada", "POST", f"/api/queries/{opened}/examples/", example)
    for user, kind in (("otto", "person"), ("ann", "poor_quality")):
        flag = {"kind": kind, "note": "at the left"}
        site.api(user, "POST", f"/api/images/{listed[0]}/flags/", flag)
    for user, relevance in (("ann", "relevant"), ("otto", "not_relevant")):
        judge(site, user, opened, listed[:6], relevance)
    states = {}
    for state in ("submitted", "rejected"):
        states[state] = site.open_query(f"a finch, {state}")
        image = site.candidates("ann", states[state], limit=1)["results"][0]["image"]
        judge(site, "ann", states[state], [image], "unsure")
        change = {"state": "submitted", "note": "it is enough"}
        site.api("ann", "PATCH", f"/api/queries/{states[state]}/", change)
    rejection = {"state": "rejected", "reason": "too_easy", "note": "all of them are"}
    site.api("ada", "PATCH", f"/api/queries/{states['rejected']}/", rejection)
    draft = {"text": "a finch in draft", "category": "Species ID", "split": "test"}
    release = site.api("ada", "POST", "/api/releases/", {"name": f"axe {uuid.uuid4().hex[:6]}"})
    job = site.api("ada", "GET", "/api/jobs/?limit=1")["results"][0]["id"]
    wait_for(
        lambda: site.api("ada", "GET", f"/api/releases/{release['id']}/")["state"] == "done",
        seconds=60,
        what="the release",
    )
    return Places(
        open=opened,
        submitted=states["submitted"],
        rejected=states["rejected"],
        draft=site.api("ada", "POST", "/api/queries/", draft)["id"],
        job=job,
    )


def judge(site: Site, user: str, query: int, images: list[int], relevance: str) -> None:
    judgments = [
        {
            "image": image,
            "relevance": relevance,
            "client_id": str(uuid.uuid4()),
            "seconds": 2.0,
            "source": "list",
        }
        for image in images
    ]
    site.api(user, "POST", f"/api/queries/{query}/judgments/", judgments)


@pytest.mark.parametrize("options", LOOKS)
def test_pages_before_the_log_in(browser: Browser, site: Site, options: dict[str, Any]) -> None:
    context = browser.new_context(**options)
    look = Look(context.new_page(), site)
    look.pages("/login/")
    look.page.get_by_label("User name").fill("ann")
    look.page.get_by_label("Password").fill("wrong")
    look.page.get_by_role("button", name="Log in").click()
    look.at("/login/ refused")
    look.pages("/no/such/page/")
    context.close()
    assert look.wrong == []


@pytest.mark.parametrize("options", LOOKS)
def test_pages_of_an_annotator(
    site: Site, log_in: Callable[..., Page], places: Places, options: dict[str, Any]
) -> None:
    look = Look(log_in("ann", **options), site)
    look.pages(
        "/",
        "/?search=no+such+query",
        f"/queries/{places.open}/",
        f"/queries/{places.submitted}/",
        "/search/",
        "/search/?text=a+bird+at+night",
        "/corpus/",
        "/releases/",
        "/no/such/page/",
    )
    assert look.wrong == []


@pytest.mark.parametrize("options", LOOKS)
def test_pages_of_reviewer_and_admin(
    site: Site, log_in: Callable[..., Page], places: Places, options: dict[str, Any]
) -> None:
    reviewer = Look(log_in("rita", **options), site)
    reviewer.pages(
        "/",
        f"/queries/{places.open}/review/",
        f"/queries/{places.draft}/review/",
        f"/queries/{places.submitted}/",
        f"/queries/{places.rejected}/",
        "/flags/",
        "/releases/",
    )
    admin = Look(log_in("ada", **options), site)
    admin.pages(
        "/",
        "/queries/new/",
        "/queries/import/",
        f"/queries/{places.open}/",
        f"/queries/{places.open}/edit/",
        f"/queries/{places.draft}/",
        f"/queries/{places.draft}/delete/",
        "/search/?text=a+bird+at+night",
        "/corpus/",
        f"/jobs/{places.job}/",
        "/flags/",
        "/releases/",
    )
    assert reviewer.wrong + admin.wrong == []


@contextmanager
def dialog(look: Look, key: str, name: str) -> Iterator[None]:
    """What a key opens, checked once it has settled, then closed by Escape."""
    look.page.keyboard.press(key)
    expect(look.page.locator("dialog[open]")).to_be_visible()
    look.page.wait_for_load_state("networkidle")
    look.at(name)
    yield
    for _ in range(3):
        if look.page.locator("dialog[open]").count():
            look.page.keyboard.press("Escape")
    expect(look.page.locator("dialog[open]")).to_have_count(0)


@pytest.mark.parametrize("options", LOOKS)
@pytest.mark.parametrize("user", ["ann", "ada"])
def test_the_labelling_page_with_each_dialog(
    site: Site, log_in: Callable[..., Page], places: Places, options: dict[str, Any], user: str
) -> None:
    look = Look(log_in(user, **options), site)
    page = look.page
    open_studio(page, site, places.open)
    look.at("single")
    page.keyboard.press("n")
    page.keyboard.press("ArrowLeft")
    look.at("single, labelled")
    with dialog(look, "f", "flags"):
        page.keyboard.press("6")
        expect(page.locator("[data-kind=poor_quality][aria-pressed=true]")).to_be_visible()
        look.at("flags, one set")
        page.keyboard.press("6")
        expect(page.locator("[data-kind=poor_quality][aria-pressed=false]")).to_be_visible()
    with dialog(look, "h", "history"):
        pass
    with dialog(look, "m", "similar"):
        page.keyboard.press("r")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("n")
        look.at("similar, marked")
        page.keyboard.press("Enter")
        look.at("similar, larger")
        page.keyboard.press("r")
        page.keyboard.press("r")
    with dialog(look, "/", "filters"):
        pass
    with dialog(look, "?", "keys"):
        pass
    with dialog(look, "p", "stop panel"):
        pass
    page.keyboard.press("e")
    expect(page.locator("[data-reference]")).not_to_contain_text("Loading")
    look.at("reference")
    page.locator("[data-reference] summary").last.click()
    look.at("reference, a species unfolded")
    page.locator("[data-reference] .reference-pinned button").first.click()
    look.at("reference, an example")
    page.keyboard.press("Escape")
    if page.locator("[data-sheet-close]").is_visible():
        page.locator("[data-sheet-close]").click()
    page.locator("[data-tone-open]").click()
    look.at("brightness")
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    expect(page.locator("[data-tiles] [data-seen]").first).to_be_visible()
    look.at("grid")
    page.keyboard.press("Space")
    look.at("grid, one marked")
    page.context.set_offline(True)
    page.keyboard.press("Enter")
    look.at("grid, without a connection")
    page.context.set_offline(False)
    assert look.wrong == []

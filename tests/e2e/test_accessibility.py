"""Every page and every dialog, as each role that sees it, wide and light, narrow and dark:
axe-core finds nothing serious, and nothing scrolls sideways.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.axe import problems
from tests.e2e.labeling import open_label_page, press, saved
from tests.processes import wait_for
from tests.site import Site

pytestmark = pytest.mark.e2e

# Nothing is between two colours when it is looked at.
STILL = {"reduced_motion": "reduce"}


@dataclass
class Places:
    """Queries and jobs of every kind there is a page for."""

    open: int
    submitted: int
    rejected: int
    complete: int
    draft: int
    job: int
    annotator: int
    """Ann."""


@dataclass
class Look:
    """Collects what is wrong on the pages that were looked at, so that one run tells all."""

    page: Page
    site: Site
    contrast: tuple[str, ...] = ("dark", "light")
    """The schemes whose colors are checked: pages of several roles are looked at in one each."""
    wrong: list[str] = field(default_factory=list)

    def at(self, name: str) -> None:
        """Check what stands on screen now."""
        self.wrong += [f"{name}: {one}" for one in problems(self.page, self.contrast)]

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
        site.judge(user, opened, dict.fromkeys(listed[:6], relevance).items())
    states = {}
    for state in ("submitted", "rejected"):
        states[state] = site.open_query(f"a finch, {state}")
        image = site.candidates("ann", states[state], limit=1)["results"][0]["image"]
        site.judge("ann", states[state], [(image, "unsure")])
        change = {"state": "submitted", "note": "it is enough"}
        site.api("ann", "PATCH", f"/api/queries/{states[state]}/", change)
    rejection = {"state": "rejected", "reject_reason": "too_easy", "reject_note": "all of them are"}
    site.api("ada", "PATCH", f"/api/queries/{states['rejected']}/", rejection)
    complete = site.open_query("a finch, complete")
    candidates = site.candidates("ann", complete, limit=20)["results"]
    site.judge("ann", complete, [(one["image"], "relevant") for one in candidates])
    done = {"state": "complete", "note": "for the simulation"}
    site.api("ada", "PATCH", f"/api/queries/{complete}/", done)
    site.api("ada", "PATCH", f"/api/queries/{complete}/", {"boxes": "all"})
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
        complete=complete,
        draft=site.api("ada", "POST", "/api/queries/", draft)["id"],
        job=job,
        annotator=site.api("ann", "GET", f"/api/queries/{opened}/outline/")["annotator"],
    )


def test_pages_before_the_log_in(browser: Browser, site: Site) -> None:
    context = browser.new_context(**STILL)
    look = Look(context.new_page(), site)
    look.pages("/login/")
    look.page.get_by_label("User name").fill("ann")
    look.page.get_by_label("Password").fill("wrong")
    look.page.get_by_role("button", name="Log in").click()
    look.at("/login/ refused")
    look.pages("/no/such/page/", "/password/MQ/abcdef12/")
    context.close()
    assert not look.wrong, "\n".join(look.wrong)


def test_pages_of_an_annotator(site: Site, log_in: Callable[..., Page], places: Places) -> None:
    look = Look(log_in("ann", **STILL), site, contrast=("dark",))
    look.pages(
        "/",
        "/?search=no+such+query",
        f"/queries/{places.open}/",
        f"/queries/{places.open}/audit/",
        f"/queries/{places.open}/requested/",
        f"/queries/{places.submitted}/",
        f"/queries/{places.complete}/boxes/",
        f"/people/{places.annotator}/labeling/",
        "/help/",
        "/how-to-label/",
        "/look-alikes/",
        "/look-alikes/1/2/",
        "/practice/",
        "/account/",
        "/account/password/",
        "/search/?text=a+bird+at+night",
        "/corpus/",
        "/releases/",
        "/no/such/page/",
    )
    assert not look.wrong, "\n".join(look.wrong)


def test_pages_of_reviewer_and_admin(
    site: Site, log_in: Callable[..., Page], places: Places
) -> None:
    reviewer = Look(log_in("rita", **STILL), site, contrast=("dark",))
    reviewer.pages(
        "/",
        f"/queries/{places.open}/review/",
        f"/queries/{places.draft}/review/",
        f"/queries/{places.submitted}/review/?kind=unsure",
        f"/queries/{places.submitted}/",
        f"/queries/{places.rejected}/",
        "/agreement/",
    )
    reviewer.pages("/duplicates/", "/leaderboard/species/", f"/queries/{places.complete}/nature/")
    reviewer.pages(f"/simulations/?query={places.complete}")
    reviewer.page.get_by_label("Seeds").fill("5")
    reviewer.page.get_by_role("button", name="Simulate").click()
    reviewer.page.wait_for_selector(".chart-wide svg", timeout=60_000)
    reviewer.at("a simulation")
    admin = Look(log_in("ada", **STILL), site, contrast=("light",))
    admin.pages(
        "/",
        "/log/",
        "/import/",
        "/queries/new/",
        "/queries/import/",
        "/queries/open/",
        f"/queries/{places.open}/",
        f"/queries/{places.open}/edit/",
        f"/queries/{places.draft}/",
        f"/queries/{places.draft}/delete/",
        f"/queries/{places.complete}/",
        "/search/?text=a+bird+at+night",
        "/corpus/",
        f"/jobs/{places.job}/",
        "/flags/",
        "/releases/",
        "/benchmarks/",
        "/benchmarks/1/",
        "/how-to-label/edit/",
        "/practice/",
        "/people/",
        "/people/1/",
        "/people/1/leave/",
    )
    admin.page.goto(f"{site.url}/people/1/")
    admin.page.get_by_role("button", name="Make a link").click()
    admin.at("a link for a person")
    wrong = reviewer.wrong + admin.wrong
    assert not wrong, "\n".join(wrong)


def test_the_keyboard_skips_a_long_table(site: Site, log_in: Callable[..., Page]) -> None:
    for number in range(9):
        draft = {"text": f"draft {number} to skip", "category": "Species ID", "split": "test"}
        site.api("ada", "POST", "/api/queries/", draft)
    page = log_in("ada", "/")
    skip = page.get_by_role("link", name="Skip the table")
    page.get_by_role("button", name="Show", exact=True).focus()
    page.keyboard.press("Tab")
    expect(skip).to_be_focused()
    assert (skip.bounding_box() or {})["height"] > 20
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("() => !document.activeElement.closest('[aria-label=Queries]')")
    page.keyboard.press("Shift+Tab")  # from there back into the table's last row
    assert page.evaluate("() => Boolean(document.activeElement.closest('[aria-label=Queries] tr'))")


@contextmanager
def dialog(look: Look, key: str, name: str) -> Iterator[None]:
    """What a key opens: checked after what the test does in it, then closed by Escape."""
    page = look.page
    page.keyboard.press(key)
    expect(page.locator("dialog[open]")).to_be_visible()
    page.wait_for_load_state("networkidle")
    yield
    look.at(name)
    for _ in range(3):
        if page.locator("dialog[open]").count():
            page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)


def test_the_labeling_page_with_each_dialog(site: Site, log_in: Callable[..., Page]) -> None:
    look = Look(log_in("ann", **STILL), site)
    page = look.page
    open_label_page(page, site, site.open_query("a heron by a brook"))
    press(page, "n")
    saved(page)
    press(page, "ArrowLeft")
    with dialog(look, "h", "history"):
        expect(page.get_by_role("dialog").get_by_role("listitem")).not_to_have_count(0)
    with dialog(look, "f", "flags"):
        expect(page.locator("[data-kind=poor_quality]")).to_be_enabled()
        page.keyboard.press("6")
        expect(page.locator("[data-kind=poor_quality][aria-pressed=true]")).to_be_visible()
    with dialog(look, "m", "more like this, larger"):
        expect(page.locator(".similar-tile").first).to_be_focused()
        for key in ("r", "ArrowRight", "n"):
            page.keyboard.press(key)
        look.at("more like this")
        page.keyboard.press("Enter")
    with dialog(look, "?", "keys"):
        pass
    with dialog(look, "p", "stop panel"):
        pass
    with dialog(look, "c", "comments"):
        page.locator("[data-comments-text]").fill("Is this\nthe same bird?")
        page.locator("[data-comments-send]").click()
        expect(page.locator(".comment-text")).to_have_count(1)
    assert not look.wrong, "\n".join(look.wrong)


def test_the_labeling_page_in_both_views(
    site: Site, log_in: Callable[..., Page], places: Places
) -> None:
    look = Look(log_in("ann", **STILL), site)
    page = look.page
    open_label_page(page, site, places.open)
    page.locator("[data-tone-open]").click()
    look.at("single, with brightness")
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.locator("[data-filters]")).to_be_visible()
    look.at("filters")
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    expect(page.locator("[data-tiles] [data-seen]").first).to_be_visible()
    page.keyboard.press("Space")
    look.at("grid, one marked")
    page.context.set_offline(True)
    page.keyboard.press("Enter")
    expect(page.locator("[data-saved]")).to_contain_text("wait")
    look.at("grid, without a connection")
    page.context.set_offline(False)
    assert not look.wrong, "\n".join(look.wrong)


def test_the_reference_where_one_may_pin(
    site: Site, log_in: Callable[..., Page], places: Places
) -> None:
    look = Look(log_in("ada", **STILL), site)
    page = look.page
    open_label_page(page, site, places.open)
    page.keyboard.press("e")
    expect(page.locator("[data-reference]")).not_to_contain_text("Loading")
    page.get_by_text("Pin the image on screen").click()
    page.locator("[data-reference] details[data-species] summary").last.click()
    look.at("reference")
    page.locator("[data-reference] .reference-pinned button").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    look.at("reference, an example")
    assert not look.wrong, "\n".join(look.wrong)

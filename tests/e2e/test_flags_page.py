"""The reviewer's page of flags in the browser: by mouse, by keys, offline, on a phone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.axe import violations
from tests.e2e.conftest import DESKTOP, NARROW
from tests.site import Site

pytestmark = pytest.mark.e2e

LogIn = Callable[..., Page]


@pytest.fixture(autouse=True)
def no_flags(site: Site) -> Iterator[None]:
    """A corpus without flags and withdrawals, whichever test was before; afterwards too."""
    site.settle_flags()
    yield
    site.settle_flags()


@pytest.fixture
def corpus(site: Site, no_flags: None) -> list[int]:
    """Five images."""
    found = site.api("ann", "GET", "/api/search/?text=a+bird&limit=5")["results"]
    return [hit["image"] for hit in found]


def flag(site: Site, image: int, kind: str = "person", note: str = "", user: str = "ann") -> int:
    answer = site.api(user, "POST", f"/api/images/{image}/flags/", {"kind": kind, "note": note})
    return int(answer["id"])


def review(site: Site, log_in: LogIn, user: str = "rita", **options: Any) -> Page:
    page = log_in(user, **options)
    page.goto(f"{site.url}/flags/")
    return page


def card(page: Page, image: int) -> Locator:
    return page.locator(f'.flag-card[data-image="{image}"]')


def standing(site: Site) -> tuple[list[int], list[int]]:
    """The images that are open and those that are withdrawn, as the server has them."""
    found = [site.api("rita", "GET", f"/api/flags/?state={s}") for s in ("open", "withdrawn")]
    first, second = ([one["image"] for one in answer["results"]] for answer in found)
    return first, second


def counts(page: Page) -> tuple[str, str, str]:
    """The numbers on the two tabs and in the header; nothing where the header shows none."""
    header = page.locator("[data-flags-open]")
    return (
        page.locator('[data-count="open"]').inner_text(),
        page.locator('[data-count="withdrawn"]').inner_text(),
        header.inner_text() if header.is_visible() else "",
    )


def test_a_flagged_image_is_withdrawn_and_brought_back(
    site: Site, log_in: LogIn, corpus: list[int]
) -> None:
    one, other = corpus[:2]
    flag(site, other, "duplicate", str(one), user="otto")
    flag(site, one, "person", "<b>somebody</b> at the window")
    flag(site, one, "person", user="otto")
    page = review(site, log_in)
    assert counts(page) == ("2", "0", "2")
    expect(card(page, one)).to_contain_text("<b>somebody</b> at the window")
    expect(card(page, one).locator(".badge")).to_have_text(["Person or face", "Person or face"])
    expect(card(page, one)).to_contain_text("otto")
    expect(page.locator(".flag-card").first).to_have_attribute("data-image", str(one))
    card(page, one).locator("[data-note]").fill("a face")
    card(page, one).get_by_role("button", name="Withdraw").click()
    expect(card(page, one)).to_contain_text("Withdrawn from the corpus.")
    expect(card(page, one)).to_contain_text(": a face")
    assert standing(site) == ([other], [one])
    assert counts(page) == ("1", "1", "1")
    card(page, other).get_by_role("button", name="Clear").click()
    expect(card(page, other)).to_contain_text("Cleared: it stays in the corpus.")
    assert standing(site) == ([], [one])
    assert counts(page) == ("0", "1", "")

    found = site.api("ann", "GET", "/api/search/?text=a+bird&limit=500")["results"]
    assert one not in [hit["image"] for hit in found]
    page.get_by_role("link", name="Withdrawn").click()
    expect(card(page, one)).to_contain_text("Withdrawn by rita")
    expect(card(page, one)).to_contain_text("a face")
    expect(card(page, one).locator(".badge")).to_have_text(["Person or face", "Person or face"])
    card(page, one).get_by_role("button", name="Restore").click()
    expect(card(page, one)).to_contain_text("Back in the corpus.")
    assert standing(site) == ([], [])
    card(page, one).get_by_role("button", name="Undo").click()
    expect(card(page, one).get_by_role("button", name="Restore")).to_be_visible()
    assert standing(site) == ([], [one])


def test_a_decision_is_undone_with_its_flags(site: Site, log_in: LogIn, corpus: list[int]) -> None:
    one, other = corpus[:2]
    flag(site, one)
    flag(site, other)
    page = review(site, log_in)
    for image, name, says in [(one, "Withdraw", "Withdrawn from the"), (other, "Clear", "Cleared")]:
        card(page, image).get_by_role("button", name=name).click()
        expect(card(page, image)).to_contain_text(says)
        card(page, image).get_by_role("button", name="Undo").click()
        expect(card(page, image).get_by_role("button", name=name)).to_be_visible()
        assert standing(site) == ([other, one], [])
    assert counts(page) == ("2", "0", "2")


def test_everything_goes_by_keys_also_in_the_large_view(
    site: Site, log_in: LogIn, corpus: list[int]
) -> None:
    for image in corpus:
        flag(site, image)
    first, second, third, fourth, fifth = reversed(corpus)
    page = review(site, log_in)
    expect(card(page, first)).to_be_focused()
    page.keyboard.press("w")
    expect(card(page, first)).to_contain_text("Withdrawn from the corpus.")
    expect(card(page, second)).to_be_focused()
    page.keyboard.press("c")
    expect(card(page, second)).to_contain_text("Cleared")
    expect(card(page, third)).to_be_focused()
    page.keyboard.press("n")
    page.keyboard.type("cow")
    page.keyboard.press("Escape")
    expect(card(page, third)).to_be_focused()
    assert standing(site) == ([third, fourth, fifth], [first])

    page.keyboard.press("Enter")
    viewer = page.get_by_role("dialog")
    expect(viewer.get_by_role("heading")).to_contain_text(f"Image {third}")
    expect(viewer.locator("[data-note]")).to_have_value("cow")
    assert viewer.locator("img").evaluate("image => image.decode().then(() => image.naturalWidth)")
    page.keyboard.press("w")
    expect(viewer.get_by_role("heading")).to_contain_text(f"Image {fourth}")
    page.keyboard.press("ArrowLeft")
    expect(viewer.get_by_role("heading")).to_contain_text(f"Image {third}")
    expect(viewer).to_contain_text("Withdrawn from the corpus.")
    page.keyboard.press("u")
    expect(viewer.get_by_role("button", name="Withdraw")).to_be_enabled()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("c")
    expect(viewer.get_by_role("heading")).to_contain_text(f"Image {fifth}")
    page.keyboard.press("Escape")
    expect(viewer).to_be_hidden()
    expect(card(page, fifth)).to_be_focused()
    expect(card(page, fourth)).to_contain_text("Cleared")
    page.keyboard.press("ArrowUp")
    expect(card(page, first)).to_be_focused()
    page.keyboard.press("u")
    expect(card(page, first).get_by_role("button", name="Withdraw")).to_be_visible()
    assert standing(site) == ([first, third, fifth], [])


def test_a_decision_that_did_not_arrive_says_so_and_can_be_made_again(
    site: Site, log_in: LogIn, corpus: list[int]
) -> None:
    flag(site, corpus[0])
    page = review(site, log_in)
    page.context.set_offline(True)
    card(page, corpus[0]).get_by_role("button", name="Withdraw").click()
    expect(card(page, corpus[0]).get_by_role("alert")).to_have_text(
        "Not withdrawn: The server can't be reached."
    )
    assert counts(page) == ("1", "0", "1")
    page.context.set_offline(False)
    card(page, corpus[0]).get_by_role("button", name="Withdraw").click()
    expect(card(page, corpus[0])).to_contain_text("Withdrawn from the corpus.")
    expect(card(page, corpus[0]).locator("[data-problem]")).to_be_hidden()
    assert standing(site) == ([], [corpus[0]])


def test_what_others_did_meanwhile_is_told(site: Site, log_in: LogIn, corpus: list[int]) -> None:
    withdrawn, cleared, flagged = corpus[:3]
    for image in (withdrawn, cleared, flagged):
        flag(site, image)
    page = review(site, log_in)
    site.api("ada", "POST", f"/api/images/{withdrawn}/withdraw/", {"note": "a face"})
    site.api("ada", "POST", f"/api/images/{cleared}/clear-flags/", {})
    flag(site, flagged, "personal_data", "a number plate", user="otto")
    for image, says in [
        (withdrawn, "Somebody else has withdrawn it."),
        (cleared, "Somebody else has cleared it."),
        (flagged, "Somebody has flagged it again: please check."),
    ]:
        card(page, image).get_by_role("button", name="Clear").click()
        expect(card(page, image)).to_contain_text(says)
    expect(card(page, withdrawn)).to_contain_text("Withdrawn by ada")
    expect(card(page, flagged).locator(".badge")).to_have_text(["Personal data"])
    assert standing(site) == ([flagged], [withdrawn])
    assert counts(page) == ("1", "1", "1")


def test_more_than_a_page_is_shown_on_demand(site: Site, log_in: LogIn) -> None:
    found = site.api("ann", "GET", "/api/search/?text=a+bird&limit=30")["results"]
    images = [hit["image"] for hit in found]
    for image in images:
        flag(site, image)
    page = review(site, log_in)
    expect(page.locator(".flag-card")).to_have_count(24)
    page.keyboard.press("c")
    expect(card(page, images[29])).to_contain_text("Cleared")
    page.get_by_role("button", name="Show more").click()
    expect(page.locator(".flag-card")).to_have_count(30)
    expect(page.get_by_role("button", name="Show more")).to_be_hidden()
    shown = page.locator(".flag-card").evaluate_all("all => all.map(one => one.dataset.image)")
    assert [int(one) for one in shown] == images[::-1]


def test_the_page_without_flags_says_so_and_is_not_for_annotators(
    site: Site, log_in: LogIn
) -> None:
    page = review(site, log_in)
    expect(page.get_by_text("Nothing is flagged")).to_be_visible()
    page.get_by_role("link", name="Withdrawn").click()
    expect(page.get_by_text("Nothing is withdrawn")).to_be_visible()
    annotator = review(site, log_in, "ann")
    expect(annotator.get_by_text("Not for your role")).to_be_visible()
    expect(annotator.get_by_role("link", name="Flags")).to_have_count(0)


@pytest.mark.parametrize("viewport", [DESKTOP, NARROW], ids=["desktop", "360 px"])
def test_nothing_is_cut_off_and_touch_finds_its_targets(
    site: Site, log_in: LogIn, corpus: list[int], viewport: dict[str, int]
) -> None:
    flag(site, corpus[0], "person", "w" * 300)
    flag(site, corpus[1], "duplicate")
    phone = viewport is NARROW
    page = review(
        site,
        log_in,
        "ada",
        viewport=viewport,
        has_touch=phone,
        is_mobile=phone,
        color_scheme="dark" if phone else "light",
    )
    card(page, corpus[1]).get_by_role("button", name="Withdraw").click()
    expect(card(page, corpus[1])).to_contain_text("Withdrawn from the corpus.")
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") == viewport["width"]
    for name in ("Queries", "Search", "Corpus", "Flags", "Releases", "Admin"):
        box = page.locator(".site-nav").get_by_role("link", name=name).bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= viewport["width"]
        assert not phone or box["height"] >= 44
    card(page, corpus[0]).get_by_role("button", name=f"Enlarge image {corpus[0]}").click()
    viewer = page.get_by_role("dialog")
    for name in ("Withdraw", "Clear", "Previous image", "Next image", "Close"):
        button = viewer.get_by_role("button", name=name, exact=True)
        expect(button).to_be_in_viewport(ratio=1)
        box = button.bounding_box()
        assert box is not None
        assert not phone or min(box["width"], box["height"]) >= 44
    assert violations(page) == []
    page.goto(f"{site.url}/flags/?state=withdrawn")
    card(page, corpus[1]).get_by_role("button", name="Restore").click()
    expect(card(page, corpus[1])).to_contain_text("Back in the corpus.")
    assert violations(page) == []

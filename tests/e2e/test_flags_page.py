"""The reviewer's page of flags in the browser: by mouse, by keys, offline, on a phone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.axe import violations, wider_than_window
from tests.e2e.conftest import NARROW
from tests.e2e.labeling import press_elsewhere
from tests.site import Site

pytestmark = pytest.mark.e2e

LogIn = Callable[..., Page]


def images(site: Site, count: int) -> list[int]:
    """Images of the corpus that no other test has flagged."""
    flagged = set(standing(site)[0])
    found = site.api("ann", "GET", "/api/search/?text=a+bird&limit=200")["results"]
    return [hit["image"] for hit in found if hit["image"] not in flagged][:count]


def flag(site: Site, image: int, kind: str = "person", note: str = "", user: str = "ann") -> None:
    site.api(user, "POST", f"/api/images/{image}/flags/", {"kind": kind, "note": note})


def review(site: Site, log_in: LogIn, user: str = "rita", **options: Any) -> Page:
    page = log_in(user, **options)
    page.goto(f"{site.url}/flags/")
    return page


def card(page: Page, image: int) -> Locator:
    return page.locator(f'.flag-card[data-image="{image}"]')


def decide(page: Page, image: int, button: str, says: str) -> None:
    """Press a button of an image's card, and wait for what it says then."""
    card(page, image).get_by_role("button", name=button).click()
    expect(card(page, image)).to_contain_text(says)


def standing(site: Site) -> tuple[list[int], list[int]]:
    """The images that are open and those that are withdrawn, as the server has them."""
    paths = [f"/api/flags/?state={state}&limit=200" for state in ("open", "withdrawn")]
    found = [site.api("rita", "GET", path)["results"] for path in paths]
    first, second = ([one["image"] for one in results] for results in found)
    return first, second


def states(site: Site, wanted: list[int]) -> list[str]:
    """What the server has of each of these images."""
    flagged, withdrawn = standing(site)
    return ["withdrawn" if one in withdrawn else "open" if one in flagged else "" for one in wanted]


def assert_counted(page: Page, site: Site) -> None:
    """The tabs and the header count what the server has, and the header no zero."""
    flagged, withdrawn = map(len, standing(site))
    expect(page.locator('[data-count="open"]')).to_have_text(str(flagged))
    expect(page.locator('[data-count="withdrawn"]')).to_have_text(str(withdrawn))
    header = page.locator("[data-flags-open]")
    if flagged:
        expect(header).to_have_text(str(flagged))
    else:
        expect(header).to_be_hidden()


def test_images_are_withdrawn_cleared_and_brought_back_by_mouse(site: Site, log_in: LogIn) -> None:
    one, other = both = images(site, 2)
    flag(site, other, "duplicate", str(one), user="otto")
    flag(site, one, "person", "<b>somebody</b> at the window")
    flag(site, one, "person", user="otto")
    page = review(site, log_in)
    assert_counted(page, site)
    expect(page.locator(".flag-card").first).to_have_attribute("data-image", str(one))
    expect(card(page, one)).to_contain_text("<b>somebody</b> at the window")
    expect(card(page, one).locator(".badge")).to_have_text(["Person or face", "Person or face"])

    page.context.set_offline(True)
    decide(page, one, "Withdraw", "Not withdrawn: The server can't be reached.")
    page.context.set_offline(False)
    card(page, one).locator("[data-note]").fill("a face")
    decide(page, one, "Withdraw", "Withdrawn from the corpus.")
    expect(card(page, one).locator("[data-problem]")).to_be_hidden()
    expect(card(page, one)).to_contain_text(": a face")
    decide(page, other, "Clear", "Cleared: it stays in the corpus.")
    assert states(site, both) == ["withdrawn", ""]
    assert_counted(page, site)
    card(page, other).get_by_role("button", name="Undo").click()
    expect(card(page, other).get_by_role("button", name="Clear")).to_be_visible()
    assert states(site, both) == ["withdrawn", "open"]
    assert_counted(page, site)

    page.get_by_role("link", name="Withdrawn").click()
    expect(card(page, one)).to_contain_text("Withdrawn by rita")
    expect(card(page, one)).to_contain_text("a face")
    decide(page, one, "Restore", "Back in the corpus.")
    assert states(site, both) == ["", "open"]
    card(page, one).get_by_role("button", name="Undo").click()
    expect(card(page, one).get_by_role("button", name="Restore")).to_be_visible()
    assert states(site, both) == ["withdrawn", "open"]


def test_everything_goes_by_keys_also_in_the_large_view(site: Site, log_in: LogIn) -> None:
    first, second, third, fourth, fifth = mine = images(site, 5)
    for image in reversed(mine):
        flag(site, image)
    page = review(site, log_in)
    expect(card(page, first)).to_be_focused()
    page.keyboard.press("w")
    expect(card(page, first)).to_contain_text("Withdrawn from the corpus.")
    expect(card(page, second)).to_be_focused()
    press_elsewhere(page, "с", "KeyC")
    expect(card(page, second)).to_contain_text("Cleared")
    expect(card(page, third)).to_be_focused()
    page.keyboard.press("n")
    page.keyboard.type("cow")
    page.keyboard.press("Escape")
    expect(card(page, third)).to_be_focused()
    assert states(site, mine) == ["withdrawn", "", "open", "open", "open"]

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
    assert states(site, mine) == ["open", "", "open", "", "open"]


def test_what_others_did_meanwhile_is_told_and_more_is_shown_on_demand(
    site: Site, log_in: LogIn
) -> None:
    mine = images(site, 26)
    for image in reversed(mine):
        flag(site, image)
    withdrawn, cleared, flagged, still = mine[:4]
    page = review(site, log_in)
    expect(page.locator(".flag-card")).to_have_count(24)
    site.api("ada", "POST", f"/api/images/{withdrawn}/withdraw/", {"note": "a face"})
    site.api("ada", "POST", f"/api/images/{cleared}/clear-flags/", {})
    flag(site, flagged, "personal_data", "a number plate", user="otto")
    decide(page, withdrawn, "Clear", "Somebody else has withdrawn it.")
    decide(page, cleared, "Clear", "Somebody else has cleared it.")
    decide(page, flagged, "Clear", "Somebody has flagged it again: please check.")
    expect(card(page, withdrawn)).to_contain_text("Withdrawn by ada")
    expect(card(page, flagged).locator(".badge")).to_have_text(["Personal data"])
    decide(page, still, "Clear", "Cleared")
    assert states(site, mine[:4]) == ["withdrawn", "", "open", ""]
    assert_counted(page, site)

    page.get_by_role("button", name="Show more").click()
    expect(card(page, mine[25])).to_be_visible()
    shown = page.locator(".flag-card").evaluate_all("all => all.map(one => one.dataset.image)")
    assert [int(one) for one in shown[:26]] == mine


def test_on_a_phone_nothing_is_cut_off_and_touch_finds_its_targets(
    site: Site, log_in: LogIn
) -> None:
    one, other = images(site, 2)
    flag(site, one, "person", "w" * 300)
    flag(site, other, "duplicate")
    phone: dict[str, Any] = {"viewport": NARROW, "has_touch": True, "is_mobile": True}
    page = review(site, log_in, "ada", color_scheme="dark", **phone)
    decide(page, other, "Withdraw", "Withdrawn from the corpus.")
    assert violations(page) + wider_than_window(page) == []
    page.get_by_role("button", name="Menu").click()
    links = page.locator(".site-nav").get_by_role("link")
    outside = "all => all.filter(one => one.getBoundingClientRect().right > innerWidth).length"
    small = "all => all.filter(one => one.getBoundingClientRect().height < 44).length"
    assert links.evaluate_all(outside) == 0
    assert links.evaluate_all(small) == 0
    page.keyboard.press("Escape")
    card(page, one).get_by_role("button", name=f"Enlarge image {one}").click()
    viewer = page.get_by_role("dialog")
    for name in ("Withdraw", "Clear", "Previous image", "Next image", "Close"):
        button = viewer.get_by_role("button", name=name, exact=True)
        expect(button).to_be_in_viewport(ratio=1)
        assert button.evaluate_all(small) == 0
    assert violations(page) == []

"""More like this: the nearest images, marked with keys, apart from the place in the list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import NARROW
from tests.e2e.labeling import (
    fits,
    focused,
    open_label_page,
    own,
    wait_same,
    wait_stored,
)
from tests.site import Site

pytestmark = pytest.mark.e2e


def nearest(site: Site, user: str, query: int, image: int) -> list[dict[str, Any]]:
    path = f"/api/queries/{query}/similar/?image={image}&limit=60"
    found: list[dict[str, Any]] = site.api(user, "GET", path)["results"]
    return found


def ranked(site: Site, query: int) -> list[int]:
    return [one["image"] for one in site.candidates("ada", query, limit=150)["results"]]


def open_similar(page: Page) -> Locator:
    page.keyboard.press("m")
    dialog = page.get_by_role("dialog", name="More like this")
    expect(dialog.locator(".similar-tile").first).to_be_focused()
    return dialog


def test_the_nearest_images_are_labeled_by_keys_and_lead_on_while_the_place_stays(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a turtle by a pond")
    images = ranked(site, query)
    site.judge("ann", query, [(image, "not_relevant") for image in images[:4]])
    page = log_in("ann")
    open_label_page(page, site, query)
    near = nearest(site, "ann", query, images[4])
    before = dict.fromkeys(images[:4], ("not_relevant", "list"))

    dialog = open_similar(page)
    tiles = dialog.locator(".similar-tile")
    expect(tiles).to_have_count(60)
    shown = tiles.evaluate_all("all => all.map(tile => Number(tile.dataset.image))")
    assert shown == [one["image"] for one in near]
    texts = tiles.evaluate_all("all => all.map(tile => [tile.dataset.relevance, tile.innerText])")
    for (relevance, text), one in zip(texts, near, strict=True):
        where = f"in the list at rank {one['rank']}" if one["rank"] else "not in the list"
        assert f"{one['score']:.2f} · {where}" in text
        assert relevance == before.get(one["image"], ("none",))[0]
    expect(dialog.locator("[data-similar-streak]")).to_have_text("4 of 100")

    fresh = next(index for index, one in enumerate(near) if one["image"] not in before)
    for _ in range(fresh):
        page.keyboard.press("ArrowRight")
    expect(tiles.nth(fresh)).to_be_focused()
    page.keyboard.press("r")
    expect(tiles.nth(fresh)).to_have_attribute("data-relevance", "relevant")
    expect(dialog.locator("[data-similar-marked]")).to_have_text("1, 1 relevant")
    page.keyboard.press("u")
    page.keyboard.press("u")  # the same again takes it back
    expect(tiles.nth(fresh)).to_have_attribute("data-relevance", "none")
    outside = near.index(next(one for one in near if one["rank"] is None))
    image = near[outside]["image"]
    tiles.nth(outside).get_by_role("button", name="Not relevant").click()
    marked = before | {image: ("not_relevant", "similar")}
    wait_stored(site, "ann", query, marked)
    expect(dialog.locator("[data-similar-streak]")).to_have_text("4 of 100")

    # From one image on to the next, large, and back.
    expect(dialog.get_by_role("button", name="← Back")).to_be_hidden()
    tiles.nth(2).focus()
    page.keyboard.press("m")
    further = nearest(site, "ann", query, near[2]["image"])
    expect(tiles.first).to_have_attribute("data-image", str(further[0]["image"]))
    expect(tiles.first).to_be_focused()
    assert near[2]["image"] not in [one["image"] for one in further]
    dialog.get_by_role("button", name="← Back").click()
    expect(tiles.nth(2)).to_be_focused()
    expect(tiles.nth(2)).to_have_attribute("data-image", str(near[2]["image"]))
    page.keyboard.press("Enter")
    large = dialog.get_by_role("figure").get_by_role("img")
    expect(large).to_be_visible()
    expect(dialog).to_contain_text("3 of 60")
    page.keyboard.press("ArrowRight")
    expect(dialog).to_contain_text("4 of 60")
    page.keyboard.press("Escape")
    expect(large).to_be_hidden()
    expect(tiles.nth(3)).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.locator("[data-single]")).to_have_attribute("data-painted", "5")
    expect(page.locator("[data-show=streak]").first).to_have_text("4")
    assert site.progress("ann", query)["streak"] == 4

    # What was marked there is undone on the page, and done again.
    page.keyboard.press("z")
    wait_stored(site, "ann", query, before)
    open_similar(page)
    tile = dialog.locator(f".similar-tile[data-image='{image}']")
    expect(tile).to_have_attribute("data-relevance", "none")
    page.keyboard.press("Escape")
    page.keyboard.press("y")
    wait_stored(site, "ann", query, marked)


def test_on_a_phone_buttons_label_and_the_focus_returns(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a fox under a tree")
    page = log_in("ann", viewport=NARROW, has_touch=True)
    open_label_page(page, site, query)
    page.keyboard.press("g")
    tile = page.locator("[data-tiles] [data-rank='2']")
    page.keyboard.press("ArrowRight")
    expect(tile).to_be_focused()
    dialog = open_similar(page)
    assert fits(page, dialog)
    first = dialog.locator(".similar-tile").first
    size = first.get_by_role("button", name="Unsure").bounding_box()
    assert size is not None
    assert size["width"] >= 44
    assert size["height"] >= 44
    first.get_by_role("button", name="Unsure").tap()
    expect(first).to_have_attribute("data-relevance", "unsure")
    image = int(first.get_attribute("data-image") or 0)
    dialog.get_by_role("button", name="Done").tap()
    expect(tile).to_be_focused()
    wait_stored(site, "ann", query, {image: ("unsure", "similar")})
    assert own(site, "otto", query) == {}


def test_offline_it_says_so_and_marks_that_were_made_wait(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a fox at night")
    page = log_in("ann")
    open_label_page(page, site, query)
    dialog = open_similar(page)
    first = dialog.locator(".similar-tile").first
    image = int(first.get_attribute("data-image") or 0)
    page.context.set_offline(True)
    page.keyboard.press("r")
    expect(first).to_have_attribute("data-relevance", "relevant")
    page.keyboard.press("m")
    expect(dialog).to_contain_text("There is no connection to the server")
    page.context.set_offline(False)
    dialog.get_by_role("button", name="Try again").click()
    expect(dialog.locator(".similar-tile")).to_have_count(60)
    dialog.get_by_role("button", name="← Back").click()
    expect(first).to_have_attribute("data-relevance", "relevant")
    wait_stored(site, "ann", query, {image: ("relevant", "similar")})
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    wait_same(lambda: focused(page), "BODY")

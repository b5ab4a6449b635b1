"""More like this: the nearest images, marked with keys, apart from the place in the list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import NARROW
from tests.e2e.labeling import fits, focused, open_label_page, own, press, wait_stored
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


def test_the_nearest_images_stand_in_order_and_keys_label_those_in_focus(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a turtle by a pond")
    images = ranked(site, query)
    page = log_in("ann")
    open_label_page(page, site, query)
    press(page, "n", 4)
    near = nearest(site, "ann", query, images[4])
    before = dict.fromkeys(images[:4], ("not_relevant", "list"))

    dialog = open_similar(page)
    tiles = dialog.locator(".similar-tile")
    expect(tiles).to_have_count(60)
    shown = tiles.evaluate_all("all => all.map(tile => Number(tile.dataset.image))")
    assert shown == [one["image"] for one in near]
    for tile, one in zip(tiles.all()[:12], near, strict=False):
        where = f"in the list at rank {one['rank']}" if one["rank"] else "not in the list"
        expect(tile).to_contain_text(f"{one['score']:.2f} · {where}")
        stands = before.get(one["image"], ("none",))[0]
        expect(tile).to_have_attribute("data-relevance", stands)
    expect(dialog.locator("[data-similar-streak]")).to_have_text("4 of 100")

    fresh = [one for one in near if one["image"] not in before]
    index = near.index(fresh[0])
    for _ in range(index):
        page.keyboard.press("ArrowRight")
    expect(tiles.nth(index)).to_be_focused()
    page.keyboard.press("r")
    expect(tiles.nth(index)).to_have_attribute("data-relevance", "relevant")
    expect(dialog.locator("[data-similar-marked]")).to_have_text("1, 1 relevant")
    before[fresh[0]["image"]] = ("relevant", "similar")
    wait_stored(site, "ann", query, before)
    page.keyboard.press("u")
    before[fresh[0]["image"]] = ("unsure", "similar")
    wait_stored(site, "ann", query, before)
    page.keyboard.press("u")
    expect(tiles.nth(index)).to_have_attribute("data-relevance", "none")
    del before[fresh[0]["image"]]
    wait_stored(site, "ann", query, before)

    # What isn't touched is not judged, and the place stays.
    outside = near.index(next(one for one in near if one["rank"] is None))
    tiles.nth(outside).get_by_role("button", name="Not relevant").click()
    before[near[outside]["image"]] = ("not_relevant", "similar")
    wait_stored(site, "ann", query, before)
    expect(dialog.locator("[data-similar-streak]")).to_have_text("4 of 100")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.locator("[data-single]")).to_have_attribute("data-painted", "5")
    expect(page.locator("[data-show=streak]").first).to_have_text("4")
    assert site.progress("ann", query)["streak"] == 4


def test_it_leads_on_from_one_image_to_the_next_and_back(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a fox in the snow")
    images = ranked(site, query)
    page = log_in("ann")
    open_label_page(page, site, query)
    near = nearest(site, "ann", query, images[0])
    dialog = open_similar(page)
    tiles = dialog.locator(".similar-tile")
    expect(dialog.get_by_role("button", name="← Back")).to_be_hidden()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
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
    page.keyboard.press("r")
    page.keyboard.press("Escape")
    expect(large).to_be_hidden()
    expect(tiles.nth(3)).to_be_focused()
    expect(tiles.nth(3)).to_have_attribute("data-relevance", "relevant")
    page.keyboard.press("ArrowDown")
    expect(tiles.nth(3)).not_to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    wait_stored(site, "ann", query, {near[3]["image"]: ("relevant", "similar")})


def test_undo_takes_a_mark_back_that_was_made_there(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a fox on a path")
    page = log_in("ann")
    open_label_page(page, site, query)
    near = nearest(site, "ann", query, ranked(site, query)[0])
    outside = next(index for index, one in enumerate(near) if one["rank"] is None)
    image = near[outside]["image"]
    dialog = open_similar(page)
    tile = dialog.locator(f".similar-tile[data-image='{image}']")
    tile.get_by_role("button", name="Relevant", exact=True).click()
    page.keyboard.press("Escape")
    wait_stored(site, "ann", query, {image: ("relevant", "similar")})
    page.keyboard.press("z")
    wait_stored(site, "ann", query, {})
    open_similar(page)
    expect(tile).to_have_attribute("data-relevance", "none")
    page.keyboard.press("Escape")
    page.keyboard.press("y")
    wait_stored(site, "ann", query, {image: ("relevant", "similar")})
    open_similar(page)
    expect(tile).to_have_attribute("data-relevance", "relevant")


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
    assert focused(page) == "BODY"

"""A query's gallery in the browser: walking, zooming, and a reviewer's correction by a key."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.axe import violations, wider_than_window
from tests.e2e.conftest import NARROW
from tests.site import Site

pytestmark = pytest.mark.e2e


def test_a_reviewer_walks_through_the_images_and_corrects_one(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a bird whose labels are looked at")
    listed = [one["image"] for one in site.candidates("ada", query, limit=3)["results"]]
    site.judge("ann", query, [(image, "relevant") for image in listed])
    site.api("rita", "PATCH", f"/api/queries/{query}/", {"state": "complete", "note": "enough"})
    page = log_in("rita", f"/queries/{query}/")
    page.get_by_role("link", name="3", exact=True).first.click()
    tiles = page.locator("[data-gallery] > li")
    expect(tiles).to_have_count(3)
    assert violations(page) == []
    # Arrow keys change a closed select at each step; the form waits for its button.
    shown = page.url
    source = page.get_by_label("How it came up")
    source.focus()
    page.keyboard.press("ArrowDown")
    expect(source).to_have_value("list")
    expect(source).to_be_focused()
    assert page.url == shown
    page.get_by_role("button", name="Show", exact=True).focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**source=list**")
    expect(tiles).to_have_count(3)
    tiles.first.get_by_role("link").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    viewer = page.locator("[data-viewer]")
    expect(viewer.locator("[data-stage] img")).to_be_visible()
    expect(viewer.locator("[data-history] li")).to_contain_text("ann")
    [of_image] = [
        one
        for one in site.api("ada", "GET", "/api/images/?limit=500")["results"]
        if one["id"] == listed[1]
    ]
    expect(viewer.locator("[data-file]")).to_have_text(of_image["file_name"])
    expect(viewer.locator("[data-page]")).to_have_attribute("href", f"/images/{listed[1]}/")
    assert violations(page) == []
    page.keyboard.press("n")
    expect(viewer.locator("[data-state]")).to_have_text("Saved. The next release has it.")
    expect(viewer.locator("[data-history] li")).to_have_count(2)
    expect(viewer.locator("[data-badges]")).to_contain_text("Settled")
    page.keyboard.press("ArrowRight")
    expect(viewer.locator("[data-badges]")).to_have_text("Relevant")
    page.keyboard.press("u")
    expect(viewer.locator("[data-badges]")).to_have_text("Unsure")
    page.keyboard.press("z")
    expect(viewer.locator("[data-badges]")).to_have_text("Relevant")
    page.keyboard.press("+")
    expect(viewer.locator("[data-stage].zoomed")).to_be_visible()
    page.keyboard.press("Escape")
    expect(viewer).to_be_hidden()
    expect(tiles.last.get_by_role("link")).to_be_focused()
    labels = ["relevant", "not_relevant", "relevant"]
    for tile, label in zip(tiles.all(), labels, strict=True):
        expect(tile).to_have_attribute("data-relevance", label)
    found = site.api("rita", "GET", f"/api/queries/{query}/images/")["results"]
    assert [one["relevance"] for one in found] == labels
    assert site.api("rita", "GET", f"/api/queries/{query}/")["state"] == "complete"


def test_an_annotator_sees_their_own_labels_on_a_phone(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a bird whose labels are one's own")
    [first, second] = [one["image"] for one in site.candidates("ada", query, limit=2)["results"]]
    site.judge("ann", query, [(first, "relevant"), (second, "unsure")])
    site.judge("otto", query, [(first, "not_relevant")])
    page = log_in("ann", f"/queries/{query}/images/?label=relevant", viewport=NARROW)
    tiles = page.locator("[data-gallery] > li")
    expect(tiles).to_have_count(1)
    assert not wider_than_window(page)
    tiles.first.get_by_role("link").click()
    history = page.locator("[data-viewer] [data-history] li")
    expect(history).to_have_count(1)
    expect(history).to_contain_text("ann")
    expect(page.locator("[data-correct]")).to_have_count(0)
    assert not wider_than_window(page)

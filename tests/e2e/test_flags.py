"""Flags on an image: set and taken back at once, apart from relevance, never queued."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import NARROW
from tests.e2e.labeling import fits, focused, open_label_page, own, press
from tests.site import Site

pytestmark = pytest.mark.e2e


def flags_of(site: Site, user: str, image: int) -> list[tuple[str, str]]:
    found = site.api(user, "GET", f"/api/images/{image}/flags/")["results"]
    return [(flag["kind"], flag["note"]) for flag in found]


def image_at(site: Site, query: int, rank: int) -> int:
    """The image at a rank, without flags that other tests left on it."""
    found: list[dict[str, Any]] = site.candidates("ada", query, start=rank, limit=1)["results"]
    image = int(found[0]["image"])
    site.api("rita", "POST", f"/api/images/{image}/clear-flags/", {})
    return image


def test_keys_set_flags_with_a_note_which_are_stored_at_once_and_refused_without_the_connection(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a bird in a tree")
    image = image_at(site, query, 1)
    page = log_in("ann")
    open_label_page(page, site, query)
    mark = page.locator("[data-flag-mark]")
    expect(mark).to_be_hidden()

    page.keyboard.press("f")
    dialog = page.get_by_role("dialog", name="Flag this image")
    expect(dialog.locator("[data-kind]").first).to_be_enabled()
    dialog.get_by_label("Note for the reviewer").fill("1 face at the left")
    assert flags_of(site, "ann", image) == []  # digits in the note are text
    dialog.get_by_role("heading").click()
    page.keyboard.press("1")
    expect(dialog).to_contain_text("Saved: Person or face.")
    page.keyboard.press("6")
    expect(dialog).to_contain_text("Saved: Poor quality.")
    note = "1 face at the left"
    assert flags_of(site, "ann", image) == [("person", note), ("poor_quality", note)]
    page.keyboard.press("1")
    expect(dialog).to_contain_text("Removed: Person or face.")
    dialog.get_by_label("Note for the reviewer").fill("blurred")
    dialog.get_by_role("heading").click()
    expect(dialog).to_contain_text("Note saved.")
    assert flags_of(site, "ann", image) == [("poor_quality", "blurred")]
    page.keyboard.press("Escape")

    expect(mark).to_be_visible()
    assert own(site, "ann", query) == {}
    press(page, "n")
    expect(mark).to_be_hidden()
    press(page, "ArrowLeft")
    expect(mark).to_be_visible()

    page.keyboard.press("f")
    row = dialog.locator("[data-kind=wrong_species]")
    expect(row).to_be_enabled()
    page.context.set_offline(True)
    page.keyboard.press("5")
    expect(dialog).to_contain_text("Wrong species was not saved.")
    expect(dialog).to_contain_text("Flags, unlike labels, can't be saved without it")
    page.keyboard.press("Escape")
    page.keyboard.press("f")
    expect(dialog).to_contain_text("There is no connection to the server")
    expect(row).to_be_disabled()
    page.context.set_offline(False)
    dialog.get_by_role("button", name="Try again").click()
    expect(row).to_be_enabled()
    expect(row).to_have_attribute("aria-pressed", "false")
    assert flags_of(site, "ann", image) == [("poor_quality", "blurred")]


def test_somebody_elses_flag_is_seen_and_stays_and_reviewers_see_whose_it_is(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a bird on a stone")
    image = image_at(site, query, 1)
    flag = {"kind": "duplicate", "note": "the same as the next"}
    site.api("otto", "POST", f"/api/images/{image}/flags/", flag)
    page = log_in("ann")
    open_label_page(page, site, query)
    page.keyboard.press("f")
    row = page.locator("[data-kind=duplicate]")
    expect(row).to_contain_text("flagged by 1 person")
    expect(row).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("7")
    expect(row).to_contain_text("flagged by you, 1 other")
    page.keyboard.press("7")
    expect(row).to_contain_text("flagged by 1 person")
    page.keyboard.press("Escape")
    expect(page.locator("[data-flag-mark]")).to_be_visible()

    page = log_in("rita")
    open_label_page(page, site, query)
    page.locator("[data-do=flag]").press("Enter")
    expect(page.locator("[data-kind=duplicate]")).to_contain_text(
        "flagged by otto (the same as the next)"
    )
    page.get_by_role("dialog").get_by_role("button", name="Done").click()
    assert focused(page) == "flag"


def test_from_the_grid_the_tile_in_focus_is_flagged(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a bird near the sea")
    image = image_at(site, query, 3)
    page = log_in("ann", viewport=NARROW)
    open_label_page(page, site, query)
    page.keyboard.press("g")
    tile = page.locator("[data-tiles] [data-rank='3']")
    expect(tile).to_be_visible()
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    expect(tile).to_be_focused()
    page.keyboard.press("f")
    dialog = page.get_by_role("dialog", name="Flag this image")
    expect(dialog.locator("[data-kind]").first).to_be_enabled()
    assert fits(page, dialog)
    dialog.locator("[data-kind=not_a_photo]").click()
    expect(dialog).to_contain_text("Saved: Spectrogram or drawing.")
    page.keyboard.press("Escape")
    expect(tile).to_be_focused()
    expect(tile.locator(".tile-flag")).to_be_visible()
    assert flags_of(site, "ann", image) == [("not_a_photo", "")]

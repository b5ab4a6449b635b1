"""The reference: guidelines, pinned examples, the filter's species; pinning by admins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import PHONE
from tests.e2e.labeling import click_now, fits, open_label_page, press
from tests.site import Site

pytestmark = pytest.mark.e2e

HOPPERS = ["Paludisaltus communis", "Paludisaltus muscosus", "Arundisaltus lineatus"]


def open_reference(page: Page) -> Locator:
    page.keyboard.press("e")
    section = page.locator("[data-reference]")
    expect(section).to_be_focused()
    expect(section).not_to_contain_text("Loading")
    return section


def pin(site: Site, query: int, image: int, relevant: bool, note: str) -> None:
    body = {"image": image, "relevant": relevant, "note": note}
    site.api("ada", "POST", f"/api/queries/{query}/examples/", body)


def loaded(picture: Locator) -> bool:
    return bool(
        picture.evaluate("picture => picture.decode().then(() => picture.naturalWidth > 0)")
    )


def test_it_shows_guidelines_examples_and_species_and_is_read_once(
    site: Site, log_in: Callable[..., Page]
) -> None:
    found = site.api("ada", "GET", "/api/species/?limit=100")["results"]
    others = [one["scientific_name"] for one in found if one["scientific_name"] not in HOPPERS]
    query = site.open_query(
        "a hopper in the reeds",
        species=HOPPERS + others[:6],
        guidelines="The whole animal.\n\nNot its spawn.",
    )
    images = [one["image"] for one in site.candidates("ada", query, limit=3)["results"]]
    pin(site, query, images[0], True, "sits in the reeds")
    pin(site, query, images[1], False, "a meadow")
    page = log_in("ann")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    open_label_page(page, site, query)

    section = open_reference(page)
    expect(section).to_contain_text("The whole animal.")
    expect(section).to_contain_text("Not its spawn.")
    expect(section.get_by_role("button", name="Relevant example: sits in the reeds")).to_have_count(
        1
    )
    expect(section.get_by_role("button", name="Not relevant example: a meadow")).to_have_count(1)
    species = section.locator("details[data-species]")
    expect(species).to_have_count(9)
    expect(section.get_by_text("Pin the image on screen")).to_have_count(0)
    marsh = section.locator("details", has_text="Marsh Hopper").filter(has_text="Moorhüpfer")
    assert marsh.first.get_attribute("open") is None  # so many are folded
    marsh.first.locator("summary").click()
    expect(marsh.first).to_contain_text("German")
    expect(marsh.first).to_contain_text("Chordata › Amphibia › Anura › Paludisaltidae")
    expect(marsh.first.locator(".reference-lookalikes")).to_contain_text("Moss Hopper")
    assert loaded(marsh.first.get_by_role("button").first.locator("img"))
    assert loaded(marsh.first.locator(".reference-lookalikes img").first)
    compare = marsh.first.get_by_role("button", name="Moss Hopper side by side")
    if "lookalikes" in settings.EXTRAS:
        compare.click()
        beside = page.get_by_role("dialog")
        expect(beside.locator(".compare-one")).to_have_count(2)
        assert loaded(beside.locator("img").first)
        expect(beside.locator(".month-bars").first).to_be_visible()
        beside.get_by_role("button", name="Close").click()
    else:
        expect(compare).to_have_count(0)
    press(page, "n", 3)
    assert sum("/reference/" in url for url in asked) == 1

    # Found by any name, in any case.
    section.get_by_role("searchbox", name="Find a species").fill("MOORHÜPFER")
    expect(species.filter(visible=True)).to_have_count(1)
    expect(species.filter(visible=True)).to_contain_text(HOPPERS[0])
    section.get_by_role("searchbox").fill("no such name")
    expect(section).to_contain_text("No species has this name.")
    section.get_by_role("searchbox").fill("")

    button = section.get_by_role("button", name="Not relevant example: a meadow")
    button.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("a meadow")
    assert loaded(dialog.get_by_role("img"))
    page.keyboard.press("Escape")
    expect(button).to_be_focused()
    picture = marsh.first.get_by_role("button").first
    picture.click()
    expect(dialog.get_by_role("heading")).to_have_text("Marsh Hopper")
    page.keyboard.press("ArrowRight")
    expect(dialog).to_contain_text("2 of ")
    assert fits(page, dialog)


def test_a_lost_connection_leaves_a_way_to_try_again_and_hidden_names_stay_hidden(
    site: Site, log_in: Callable[..., Page]
) -> None:
    guidelines = "Only at night: see https://example.org/a?b=1 (page 2), or https://example.org/c."
    query = site.open_query("a hopper in the dark", species=HOPPERS, guidelines=guidelines)
    page = log_in("ann", viewport=PHONE, has_touch=True, is_mobile=True)
    answers: list[dict[str, Any]] = []
    page.route(
        "**/reference/",
        lambda route: route.fulfill(json=answers[0]) if answers else route.abort(),
    )
    open_label_page(page, site, query)
    section = open_reference(page)
    expect(section).to_contain_text("The reference could not be loaded.")
    expect(section.get_by_role("button", name="Try again")).to_be_visible()
    answer = site.api("ann", "GET", f"/api/queries/{query}/reference/")
    # As the API answers where HIDE_SPECIES_NAMES is set, which tests of the API hold.
    answers.append(answer | {"names_hidden": True, "species": [], "species_total": 0})
    # The key asks once more when the panel is there, which may take the button away.
    click_now(section.get_by_role("button", name="Try again"))
    expect(section).to_contain_text(guidelines)
    links = section.get_by_role("link", name="https://")
    addresses = links.evaluate_all("links => links.map((link) => link.getAttribute('href'))")
    assert addresses == ["https://example.org/a?b=1", "https://example.org/c"]
    expect(section).to_contain_text("Species names are hidden while you label.")
    expect(section).not_to_contain_text("Hopper")


def test_an_admin_pins_and_unpins_the_image_on_screen(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a hopper on a stone")
    page = log_in("ada")
    open_label_page(page, site, query)
    press(page, "ArrowRight", 2)
    image = site.candidates("ada", query, start=3, limit=1)["results"][0]["image"]
    section = open_reference(page)
    expect(section).to_contain_text("no guidelines, pinned examples or species filter")
    section.get_by_text("Pin the image on screen").click()
    section.get_by_label("Why").fill("clearly on a stone")
    section.get_by_role("button", name="Pin as relevant example").click()
    expect(section).to_contain_text("Pinned as a relevant example.")
    expect(
        section.get_by_role("button", name="Relevant example: clearly on a stone")
    ).to_be_visible()
    section.get_by_role("button", name="Pin as not relevant example").click()
    expect(section).to_contain_text("Pinned as a not relevant example.")
    assert pinned(site, query) == [(image, False, "clearly on a stone")]

    page.evaluate("document.activeElement.blur()")
    press(page, "ArrowRight")
    expect(section.get_by_role("button", name="Unpin")).to_be_hidden()
    press(page, "ArrowLeft")
    section.get_by_role("button", name="Unpin").click()
    expect(section).to_contain_text("Unpinned.")
    assert pinned(site, query) == []


def pinned(site: Site, query: int) -> list[tuple[int, bool, str]]:
    found = site.api("ann", "GET", f"/api/queries/{query}/reference/")["pinned"]
    return [(one["image"], one["relevant"], one["note"]) for one in found]

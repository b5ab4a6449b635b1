"""The grid beside the rest of the page: single view, paging, undo, other labels, filters."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e import tiles
from tests.e2e.axe import problems
from tests.e2e.tiles import NOT, all_not, marks, open_grid, tile, wait_seen, wait_stored
from tests.site import Site

pytestmark = pytest.mark.e2e


def test_switching_views_keeps_the_place_and_the_marks(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("an owl at night, by pages")
    known = tiles.candidates(site, "ann", query)
    tiles.label(site, "ann", query, all_not(1, 4))
    page = log_in("ann")
    assert open_grid(page, site, "ann", query) == list(range(5, 17))
    tile(page, 6).click()
    tile(page, 9).click()
    page.keyboard.press("g")
    expect(page.locator("[data-single][data-painted='9']")).to_be_visible()
    shown = page.locator("[data-canvas] img").get_attribute("src")
    assert shown == known[9]["url"]
    page.keyboard.press("g")
    assert wait_seen(page) == list(range(5, 17))
    expect(tile(page, 9)).to_be_focused()
    assert {rank for rank, mark in marks(page).items() if mark} == {6, 9}

    page.keyboard.press("g")
    expect(page.locator("[data-single][data-painted='9']")).to_be_visible()
    for rank in range(10, 21):  # beyond the page
        page.keyboard.press("ArrowRight")
        expect(page.locator(f"[data-single][data-painted='{rank}']")).to_be_visible()
    page.get_by_role("button", name="Grid").click()
    assert wait_seen(page, 20) == list(range(20, 32))
    page.get_by_role("button", name="2 marks on other pages not submitted, go to rank 6").click()
    assert wait_seen(page, 6)[0] == 6
    assert {rank for rank, mark in marks(page).items() if mark} == {6, 9}
    assert tiles.stored(site, "ann", query) == list(all_not(1, 4).items())


def test_a_double_click_opens_the_picture_and_the_way_back_is_there(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a heron in reeds, by pages")
    page = log_in("ann")
    open_grid(page, site, "ann", query)
    page.keyboard.press("u")
    tile(page, 1).dblclick()
    expect(page.locator("[data-single][data-painted='1']")).to_be_visible()
    page.get_by_role("button", name="Back to the grid").click()
    assert wait_seen(page, 1) == list(range(1, 13))
    assert marks(page)[1] == "unsure"  # the two clicks changed nothing
    page.keyboard.press("ArrowRight")
    page.keyboard.press("o")
    expect(page.locator("[data-single][data-painted='2']")).to_be_visible()


def test_paging_submits_nothing_and_keeps_marks(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a lizard on a wall, by pages")
    page = log_in("ann")
    open_grid(page, site, "ann", query)
    tile(page, 3).click()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("PageDown")
    assert wait_seen(page, 13) == list(range(13, 25))
    expect(tile(page, 13)).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.get_by_role("slider", name="Images on a page").fill("20")  # other columns
    assert wait_seen(page, 13) == list(range(13, 33))
    page.get_by_role("slider", name="Images on a page").fill("12")
    wait_seen(page, 13)
    page.locator("[data-tiles] [tabindex='0']").focus()
    page.keyboard.press("PageDown")
    expect(tile(page, 25)).to_be_focused()
    wait_seen(page, 25)
    page.keyboard.press("PageUp")
    wait_seen(page, 13)
    page.keyboard.press("PageUp")
    wait_seen(page, 1)
    assert marks(page)[3] == "relevant"
    page.reload()
    wait_seen(page, 1)
    assert marks(page)[3] == "relevant"
    assert tiles.stored(site, "ann", query) == []


def test_a_page_is_undone_in_one_step_and_its_marks_come_back(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a beetle on bark, by pages")
    page = log_in("ann")
    open_grid(page, site, "ann", query)
    tile(page, 4).click()
    page.keyboard.press("Enter")
    wait_seen(page, 13)
    expected = sorted((all_not(1, 12) | {4: "relevant"}).items())
    wait_stored(site, "ann", query, expected)
    page.keyboard.press("z")
    assert wait_seen(page, 1) == list(range(1, 13))
    wait_stored(site, "ann", query, [])
    assert {rank for rank, mark in marks(page).items() if mark} == {4}
    page.keyboard.press("y")
    wait_stored(site, "ann", query, expected)


def test_what_is_labeled_already_is_shown_and_left_alone(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a wasp on fruit, by pages")
    tiles.label(site, "ann", query, {2: "relevant", 3: NOT, 4: "unsure", 5: "relevant"})
    tiles.label(site, "ann", query, {6: "relevant"}, source="search")
    before = {
        one["rank"]: one
        for one in site.api("ann", "GET", f"/api/queries/{query}/judgments/")["results"]
    }
    page = log_in("ann")
    open_grid(page, site, "ann", query)
    found = {rank: mark for rank, mark in marks(page).items() if mark}
    assert found == {2: "relevant", 3: NOT, 4: "unsure", 5: "relevant", 6: "relevant"}
    expect(tile(page, 3)).to_have_attribute("aria-label", "Rank 3, labeled not relevant")
    tile(page, 5).click()
    # Another test on the same site may have flagged the image.
    expect(tile(page, 5)).to_have_attribute(
        "aria-label", re.compile("^Rank 5, labeled relevant, marked not relevant")
    )
    page.keyboard.press("Enter")
    wait_seen(page, 13)
    expected = all_not(1, 12) | {2: "relevant", 4: "unsure", 6: "relevant"}
    wait_stored(site, "ann", query, sorted(expected.items()))
    after = {
        one["rank"]: one
        for one in site.api("ann", "GET", f"/api/queries/{query}/judgments/")["results"]
    }
    for rank in (2, 3, 4, 6):
        assert after[rank] == before[rank]
    assert after[5]["relevance"] == NOT


def test_the_last_page_ends_the_list(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a deer in fog, by pages")
    tiles.label(site, "ann", query, dict.fromkeys(range(1, 146), "relevant"))
    page = log_in("ann")
    assert open_grid(page, site, "ann", query) == list(range(146, 151))
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    expect(page.locator("[data-message]")).to_contain_text("The end of the list so far")
    expected = dict.fromkeys(range(1, 147), "relevant") | all_not(147, 150)
    wait_stored(site, "ann", query, sorted(expected.items()))


def test_a_closed_query_takes_no_page(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a bat in a cave, by pages")
    tiles.label(site, "ann", query, {1: "relevant"})
    page = log_in("ann")
    open_grid(page, site, "ann", query)
    site.api("ada", "PATCH", f"/api/queries/{query}/", {"state": "complete", "note": "Enough."})
    expect(page.locator("[data-notice=closed]")).to_be_visible(timeout=40_000)
    tile(page, 3).click()
    page.keyboard.press("Enter")
    expect(page.locator("[data-hint]")).to_contain_text("Not labeled")
    assert marks(page)[3] == ""
    page.wait_for_load_state("networkidle")
    assert site.progress("ada", query)["judged"] == 1


def test_a_held_key_submits_one_page(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a kite in the wind, by pages")
    page = log_in("ann")
    open_grid(page, site, "ann", query)
    page.keyboard.down("Enter")
    wait_seen(page, 13)
    for _ in range(5):
        page.keyboard.down("Enter")  # as a held key repeats
    page.keyboard.up("Enter")
    wait_stored(site, "ann", query, sorted(all_not(1, 12).items()))
    assert tiles.ranks(page)[0] == 13


def test_with_a_filter_only_what_it_shows_is_submitted(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a stork on a roof, by pages")
    summer = [
        rank
        for rank, one in tiles.candidates(site, "ann", query).items()
        if one["observed_at"][5:7] in ("05", "06", "07")
    ]
    assert len(summer) > 14
    page = log_in("ann")
    open_grid(page, site, "ann", query)
    page.keyboard.press("/")
    for month in ("May", "June", "July"):
        page.locator("[data-filters]").get_by_role("button", name=month).click()
    expect(page.locator("[data-filters-bar]")).to_contain_text(f"{len(summer)} of 150")
    page.locator("[data-filters-close]").click()
    page.keyboard.press("End")  # each choice kept the place
    assert wait_seen(page, summer[0]) == summer[:12]
    tile(page, summer[3]).click()
    page.keyboard.press("Enter")
    assert wait_seen(page, summer[12]) == summer[12:24]
    expected = dict.fromkeys(summer[:12], NOT) | {summer[3]: "relevant"}
    wait_stored(site, "ann", query, sorted(expected.items()))


def test_axe_finds_nothing_serious(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a seal on a rock, by pages")
    tiles.label(site, "ann", query, {1: "relevant", 2: NOT, 3: "unsure"})
    broken = tiles.candidates(site, "ann", query)[7]["thumbnail_url"]
    page = log_in("ann")
    page.route(f"**{broken}", lambda route: route.abort())
    tiles.prefer(site, "ann", view="grid", grid_size=12)
    page.goto(f"{site.url}/queries/{query}/label/")
    expect(tile(page, 7)).to_have_attribute("data-failed", "")
    page.keyboard.press("PageUp")
    expect(page.locator("[data-tiles] [data-seen]")).to_have_count(11)
    page.locator("[data-tiles] [tabindex='0']").press("ArrowDown")
    page.keyboard.press("Space")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("u")
    page.keyboard.press("Enter")
    expect(page.locator("[data-notice=grid-left]")).to_be_visible()
    assert problems(page) == []
    page.keyboard.press("p")
    page.locator("[data-stop-give-up] summary").click()
    assert problems(page) == []

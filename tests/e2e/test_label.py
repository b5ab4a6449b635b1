"""Labeling in a real browser: keys, exhaustion, change of mind, addresses, a lost database."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import DEPTH, IMAGES, PHONE
from tests.e2e.labeling import open_label_page, press, saved, shown, wait_painted
from tests.e2e.outboxes import events, images_of
from tests.processes import wait_for
from tests.site import Site

pytestmark = pytest.mark.e2e


def test_a_species_filter_is_labeled_to_exhaustion_by_touch(
    site: Site, log_in: Callable[..., Page]
) -> None:
    species = site.api("ada", "GET", "/api/species/?search=marsh+hopper")["results"][0]
    query = site.open_query("a marsh hopper resting", species=[species["scientific_name"]])
    page = log_in("ann", viewport=PHONE, has_touch=True, is_mobile=True)
    open_label_page(page, site, query)
    size = len(site.candidates("ann", query)["results"])
    assert size >= 3
    for rank in range(1, size + 1):
        expect(shown(page, "rank")).to_have_text(str(rank))
        wait_painted(page, rank)
        page.locator(f"[data-do={'relevant' if rank == 1 else 'not_relevant'}]").tap()
    expect(page.locator(".stage")).to_contain_text("The list is exhausted")
    saved(page)
    progress = site.progress("ann", query)
    assert progress["judged"] == progress["candidates"] == size
    assert progress["stop"]["exhausted"] is True


def test_stepping_back_changes_a_judgment_and_a_reload_goes_on_at_the_first_unlabeled(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a beetle in a meadow")
    page = log_in("ann")
    open_label_page(page, site, query)
    press(page, "n", 3)
    page.keyboard.press("ArrowLeft")
    expect(page.locator("[data-given]")).to_have_text("Labeled: not relevant")
    expect(shown(page, "rank")).to_have_text("3")
    press(page, "r", 1)
    expect(shown(page, "rank")).to_have_text("4")
    expect(shown(page, "relevant")).to_have_text("1")
    expect(shown(page, "streak")).to_have_text("0")
    saved(page)
    third = site.candidates("ann", query, start=3, limit=1)["results"][0]
    assert third["relevance"] == "relevant"
    said = [relevance for _, image, relevance in events(site, query) if image == third["image"]]
    assert said == ["not_relevant", "relevant"]
    press(page, "u", 2)
    saved(page)
    page.reload()
    expect(shown(page, "rank")).to_have_text("6")
    expect(shown(page, "judged")).to_have_text("5")


def test_the_address_names_the_rank_and_leads_to_it(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a snail on a leaf")
    address = f"{site.url}/queries/{query}/label/"
    page = log_in("ann")
    open_label_page(page, site, query)
    expect(page).to_have_url(f"{address}?rank=1")
    press(page, "n")
    press(page, "ArrowRight")
    expect(page).to_have_url(f"{address}?rank=3")
    saved(page)
    notice = page.locator("[data-notice=rank]")
    page.goto(f"{address}?rank=17")
    wait_painted(page, 17)
    press(page, "ArrowLeft")
    expect(page).to_have_url(f"{address}?rank=16")
    page.reload()
    wait_painted(page, 16)
    expect(notice).to_be_hidden()
    # What no image stands at leads to the nearest, what is no rank where the page begins without.
    for named, rank in (("9999", DEPTH), ("-3", 1), ("odd", 2)):
        page.goto(f"{address}?rank={named}")
        wait_painted(page, rank)
        expect(notice).to_contain_text(f"“{named}”")
        expect(page).to_have_url(f"{address}?rank={rank}")
    notice.get_by_role("button", name="OK").click()
    expect(notice).to_be_hidden()
    with page.expect_response("**/api/preferences/labeling/"):
        page.keyboard.press("g")
    page.goto(f"{address}?rank=5")
    expect(page.locator("[data-tiles]")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(shown(page, "rank")).to_have_text("6")
    expect(page).to_have_url(f"{address}?rank=5")


def test_judgments_outlive_a_killed_database_and_count_once(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a fish near a coral")
    page = log_in("otto")
    open_label_page(page, site, query)
    press(page, "n", 5)
    killed = site.served.find("postgres", "-D")
    assert killed
    for process in killed:
        process.send_signal(signal.SIGKILL)
    press(page, "r", 4)
    wait_for(site.served.healthy, seconds=60, what="the return of what was killed", pause=0.2)
    saved(page, timeout=30_000)
    labels = [c["relevance"] for c in site.candidates("otto", query, limit=12)["results"]]
    assert labels == ["not_relevant"] * 5 + ["relevant"] * 4 + [None] * 3
    assert site.progress("otto", query)["judged"] == 9


def test_keys_faster_than_the_server_do_not_run_past_the_hundredth_negative(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("an ant on a stone")
    site.judge("ann", query, dict.fromkeys(images_of(site, query, 90), "not_relevant").items())
    page = log_in("ann")
    page.route("**/judgments/", lambda route: (page.wait_for_timeout(700), route.continue_())[-1])
    open_label_page(page, site, query)
    press(page, "n", 14)
    expect(page.get_by_role("dialog")).to_be_visible()
    saved(page)
    assert site.progress("ann", query)["judged"] == 100


def test_a_list_labeled_to_its_end_is_extended(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("an animal in the fog")
    images = [candidate["image"] for candidate in site.candidates("otto", query)["results"]]
    assert len(images) == DEPTH
    site.judge("otto", query, dict.fromkeys(images[:-1], "relevant").items())
    page = log_in("otto")
    open_label_page(page, site, query)
    expect(shown(page, "rank")).to_have_text(str(DEPTH))
    page.keyboard.press("r")
    expect(page.locator(".stage")).to_contain_text("The end of the list so far")
    page.get_by_role("button", name="Extend the list").click()
    expect(shown(page, "rank")).to_have_text(str(DEPTH + 1))
    expect(shown(page, "candidates")).to_have_text(str(IMAGES))

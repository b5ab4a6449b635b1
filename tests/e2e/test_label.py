"""The labeling page, one image at a time: what is on the screen is labeled, at once and once."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from PIL import Image, ImageChops, ImageStat
from playwright.sync_api import Page, Route, expect

from tests.e2e.labeling import (
    UNUSED,
    below,
    box,
    click_now,
    note_fetched,
    open_label_page,
    own,
    painted,
    poll,
    press,
    saved,
    shown,
    view_kept,
    wait_fetched,
    wait_held,
    wait_painted,
)
from tests.e2e.tiles import marked, tile, wait_seen
from tests.site import Site
from tests.worlds import DEPTH

pytestmark = pytest.mark.e2e

PICTURE = ".canvas img"
SOURCE = f"document.querySelector('{PICTURE}').getAttribute('src')"
GIVEN = {"r": "relevant", "n": "not_relevant", "u": "unsure"}
GIVEN |= {"1": "relevant", "2": "not_relevant", "3": "unsure"}


def labels(site: Site, user: str, query: int, limit: int = 10) -> list[str | None]:
    """One's labels in the database, by rank from 1."""
    found = site.candidates(user, query, limit=limit)["results"]
    return [candidate["relevance"] for candidate in found]


def history(site: Site, user: str, query: int, image: int) -> list[Any]:
    """What one said of an image, oldest first."""
    path = f"/api/queries/{query}/history/?image={image}"
    return [one["relevance"] for one in site.api(user, "GET", path)["results"]]


def test_a_session_by_keys(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a heron at a lake")
    known = site.candidates("ann", query, limit=12)["results"]
    page = log_in("ann")
    open_label_page(page, site, query)
    for candidate, key in zip(known, "rnu1232", strict=False):
        assert painted(page) == candidate["rank"]
        assert page.evaluate(SOURCE) == candidate["url"]
        expect(shown(page, "license")).to_have_text(candidate["license"])
        expect(shown(page, "rights")).to_have_text(candidate["rights_holder"])
        expect(shown(page, "scientific-name")).to_have_text(candidate["species"]["scientific_name"])
        press(page, key)

    # A gap holds the streak until it is labeled.
    press(page, "s")
    expect(page.locator("[data-hint]")).to_contain_text("Skipped rank 8: the streak waits there")
    press(page, "n", 2)
    expect(shown(page, "judged")).to_have_text("9")
    expect(shown(page, "streak")).to_have_text("3")
    gap = page.locator("[data-gap]")
    expect(gap).to_have_text("waits at rank 8")
    gap.click()
    wait_painted(page, 8)
    press(page, "n")
    assert painted(page) == 11
    expect(shown(page, "streak")).to_have_text("6")
    expect(gap).to_be_hidden()

    # A change of mind, undone and done again.
    press(page, "ArrowLeft")
    expect(page.locator("[data-given]")).to_have_text("Labeled: not relevant")
    press(page, "r")
    assert painted(page) == 11
    expect(shown(page, "relevant")).to_have_text("3")
    expect(shown(page, "streak")).to_have_text("0")
    page.keyboard.press("z")
    wait_painted(page, 10)
    expect(page.locator("[data-given]")).to_have_text("Labeled: not relevant")
    page.keyboard.press("Control+z")
    wait_painted(page, 8)
    expect(page.locator("[data-given]")).to_be_hidden()
    expect(gap).to_be_visible()
    page.keyboard.press("y")
    expect(page.locator("[data-given]")).to_have_text("Labeled: not relevant")
    page.get_by_role("button", name="Redo").click()
    wait_painted(page, 10)
    expect(page.locator("[data-given]")).to_have_text("Labeled: relevant")

    # A held key labels once.
    press(page, "ArrowRight")
    page.keyboard.down("n")
    wait_painted(page, 12)
    for _ in range(3):
        page.keyboard.down("n")
    page.keyboard.up("n")
    saved(page)
    given = [*(GIVEN[key] for key in "rnu1232"), "not_relevant", "not_relevant", "relevant"]
    assert labels(site, "ann", query, 12) == [*given, "not_relevant", None]
    said = ["not_relevant", "relevant", "not_relevant", "relevant"]
    assert history(site, "ann", query, known[9]["image"]) == said

    page.goto(f"{site.url}/queries/{query}/label/")
    wait_painted(page, 12)  # the first without a label
    expect(shown(page, "judged")).to_have_text("11")
    expect(shown(page, "streak")).to_have_text("1")


def test_the_address_names_the_place(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a snail on a leaf")
    address = f"{site.url}/queries/{query}/label/"
    page = log_in("ann")
    open_label_page(page, site, query)
    expect(page).to_have_url(f"{address}?rank=1")
    page.goto(f"{address}?rank=17")
    wait_painted(page, 17)
    press(page, "ArrowLeft")
    expect(page).to_have_url(f"{address}?rank=16")
    notice = page.locator("[data-notice=rank]")
    expect(notice).to_be_hidden()
    # What no image stands at leads to the nearest.
    page.goto(f"{address}?rank=9999")
    wait_painted(page, DEPTH)
    expect(notice).to_contain_text("“9999”")
    expect(page).to_have_url(f"{address}?rank={DEPTH}")
    notice.get_by_role("button", name="OK").click()
    expect(notice).to_be_hidden()


def unlike(one: Image.Image, other: Image.Image) -> float:
    """Mean difference of two pictures, 0 to 255, each made small first."""
    small = [
        picture.convert("RGB").resize((24, 24), Image.Resampling.BOX) for picture in (one, other)
    ]
    return sum(ImageStat.Stat(ImageChops.difference(*small)).mean) / 3


def test_the_pixels_are_those_of_the_rank_and_the_next_stand_ready(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a flower in a desert")
    known = site.candidates("ann", query, limit=5)["results"]
    page = log_in("ann", viewport=UNUSED)
    fetched = note_fetched(page)
    open_label_page(page, site, query)
    for candidate in known[:2]:
        wait_painted(page, candidate["rank"])
        answer = page.request.get(site.url + candidate["url"])
        source = Image.open(io.BytesIO(answer.body()))
        place = box(page.locator(PICTURE))
        screen = Image.open(io.BytesIO(page.screenshot(clip=place)))
        assert screen.width / screen.height == pytest.approx(source.width / source.height, rel=0.02)
        # The tools lie over the lower right corner.
        upper = (0, 0, screen.width, screen.height * 3 // 4)
        wanted = (0, 0, source.width, source.height * 3 // 4)
        assert unlike(screen.crop(upper), source.crop(wanted)) < 6
        page.keyboard.press("ArrowRight")

    wait_fetched(page, fetched, [one["url"] for one in known])
    # Loaded isn't decoded: a step there and back has all near ones decoded.
    wait_painted(page, 3)
    press(page, "ArrowRight", 2)
    press(page, "ArrowLeft", 4)
    found = page.evaluate(
        "() => { document.body.dispatchEvent(new KeyboardEvent('keydown',"
        " {key: 'n', code: 'KeyN', bubbles: true, cancelable: true}));"
        f" const picture = document.querySelector('{PICTURE}');"
        " return [picture.getAttribute('src'), picture.complete && picture.naturalWidth > 0]; }"
    )
    assert found == [known[1]["url"], True]


def test_nothing_is_labeled_that_is_not_on_the_screen(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a seal on ice")
    second, third = (one["url"] for one in site.candidates("ann", query, 2, 2)["results"])
    held: list[Route] = []
    page = log_in("ann")
    page.route("**/outline/", lambda route: route.fulfill(status=503, body="{}"))
    page.route(f"**{second}", lambda route: held.append(route))
    page.route(f"**{third}", lambda route: route.abort())
    page.goto(f"{site.url}/queries/{query}/label/")
    expect(page.locator("[data-stage]")).to_contain_text("The candidates could not be loaded")
    page.keyboard.press("n")
    page.unroute("**/outline/")
    page.get_by_role("button", name="Try again").click()
    wait_painted(page, 1)
    expect(shown(page, "judged")).to_have_text("0")

    page.keyboard.press("n")
    expect(shown(page, "rank")).to_have_text("2")
    expect(page.locator("[data-image-waiting]")).to_be_visible()
    for key in "rnu":
        page.keyboard.press(key)
        expect(page.locator("[data-hint]")).to_contain_text("wasn't on the screen")
    saved(page)
    assert labels(site, "ann", query, 3) == ["not_relevant", None, None]
    wait_held(page, held)
    held[0].continue_()
    wait_painted(page, 2)

    page.keyboard.press("r")
    failed = page.locator("[data-image-failed]")
    expect(failed).to_contain_text("could not be loaded")
    page.keyboard.press("u")
    expect(page.locator("[data-hint]")).to_contain_text("Not labeled")
    failed.get_by_role("button", name="Skip it").click()
    wait_painted(page, 4)
    page.keyboard.press("ArrowLeft")
    expect(failed.get_by_role("button", name="Try again")).to_be_visible()
    page.unroute(f"**{third}")
    click_now(failed.get_by_role("button", name="Try again", include_hidden=True))
    wait_painted(page, 3)
    expect(failed).to_be_hidden()
    saved(page)
    assert labels(site, "ann", query, 4) == ["not_relevant", "relevant", None, None]


def test_a_late_picture_is_shown_at_no_other_rank(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a crab under a stone")
    second, third = (one["url"] for one in site.candidates("ann", query, 2, 2)["results"])
    held: dict[str, Route] = {}
    page = log_in("ann")
    for url in (second, third):
        page.route(f"**{url}", lambda route: held.update({below(route.request.url): route}))
    open_label_page(page, site, query)
    page.keyboard.press("ArrowRight")
    expect(shown(page, "rank")).to_have_text("2")
    page.keyboard.press("ArrowRight")
    expect(shown(page, "rank")).to_have_text("3")
    wait_held(page, held, 2)
    fetched = note_fetched(page)
    held[second].continue_()
    wait_fetched(page, fetched, [second])
    expect(page.locator(PICTURE)).to_have_count(0)
    page.keyboard.press("r")
    expect(page.locator("[data-hint]")).to_contain_text("wasn't on the screen")
    held[third].continue_()
    wait_painted(page, 3)
    assert page.evaluate(SOURCE) == third
    press(page, "n")
    saved(page)
    assert labels(site, "ann", query, 4) == [None, None, "not_relevant", None]


def test_a_closed_query_refuses_in_both_views_and_what_was_refused_stays_in_sight(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a wasp on fruit")
    page = log_in("ann")
    open_label_page(page, site, query)
    press(page, "n")
    saved(page)
    site.api("ada", "PATCH", f"/api/queries/{query}/", {"state": "complete", "note": "Enough."})
    page.keyboard.press("r")
    notice = page.locator("[data-notice=refused]")
    expect(notice).to_contain_text("“Relevant” at rank 2 was not stored")
    poll(page)
    expect(page.locator("[data-notice=closed]")).to_contain_text("completed")
    page.keyboard.press("r")  # nothing more is judged
    expect(page.locator("[data-hint]")).to_contain_text("Not labeled")
    page.keyboard.press("g")
    wait_seen(page, 3)
    tile(page, 3).click()
    page.keyboard.press("Enter")
    expect(page.locator("[data-hint]")).to_contain_text("Not labeled")
    assert marked(page) == {}
    saved(page)
    assert labels(site, "ada", query, 4) == [None] * 4
    assert site.progress("ada", query)["judged"] == 1
    with view_kept(page, "single"):
        page.keyboard.press("g")
    wait_painted(page, 3)

    site.api("ada", "PATCH", f"/api/queries/{query}/", {"state": "open", "note": "more to find"})
    page.reload()
    wait_painted(page, 3)
    expect(notice).to_contain_text("“Relevant” at rank 2 was not stored")
    notice.get_by_role("button", name="Show it").click()
    dialog = page.get_by_role("dialog", name="Not stored")
    expect(dialog.get_by_role("img", name="Candidate 2")).to_be_visible()
    dialog.get_by_role("button", name="Dismiss", exact=True).click()
    expect(dialog).to_be_hidden()
    expect(notice).to_be_hidden()
    page.reload()
    wait_painted(page, 3)
    expect(notice).to_be_hidden()
    assert len(own(site, "ann", query)) == 1


def test_labels_of_another_tab_appear_and_to_reviewers_those_of_others(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a swan with its young")
    one = log_in("ann")
    open_label_page(one, site, query)
    other = one.context.new_page()
    open_label_page(other, site, query)
    press(other, "r", 2)
    expect(shown(one, "judged")).to_have_text("2")
    expect(one.locator("[data-given]")).to_have_text("Labeled: relevant")
    images = [one["image"] for one in site.candidates("otto", query, limit=3)["results"]]
    site.judge("otto", query, [(image, "not_relevant") for image in images])
    one.bring_to_front()
    poll(one)
    expect(one.locator("[data-others]")).to_have_text("")
    assert shown(one, "judged").inner_text() == "2"
    reviewer = log_in("rita")
    open_label_page(reviewer, site, query)
    poll(reviewer)
    labeled = "ann labeled 2, otto labeled 3 here today"
    expect(reviewer.locator("[data-others]")).to_have_text(labeled)


def test_time_spent_on_a_skipped_image_is_its_own(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a goose grazing, looked at for long")
    page = log_in("ann")
    page.clock.install()
    open_label_page(page, site, query)
    page.clock.fast_forward(5000)
    press(page, "ArrowRight")
    press(page, "n")
    press(page, "ArrowLeft", 2)
    press(page, "r")
    saved(page)
    first, second = (
        site.api("ann", "GET", f"/api/queries/{query}/history/?image={candidate['image']}")
        for candidate in site.candidates("ann", query, limit=2)["results"]
    )
    assert first["results"][0]["seconds"] >= 5
    assert second["results"][0]["seconds"] < first["results"][0]["seconds"]

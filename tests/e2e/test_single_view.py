"""The single view: what is on the screen is what is labeled, at once, and nothing else."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from PIL import Image, ImageChops, ImageStat
from playwright.sync_api import Page, Route, expect

from tests.e2e.labeling import (
    box,
    open_label_page,
    painted,
    press,
    saved,
    shown,
    wait_painted,
)
from tests.processes import wait_for
from tests.site import Site

pytestmark = pytest.mark.e2e

PICTURE = ".canvas img"
SOURCE = f"new URL(document.querySelector('{PICTURE}').src).pathname"


def labels(site: Site, user: str, query: int, limit: int = 10) -> list[str | None]:
    """One's labels in the database, by rank from 1."""
    found = site.candidates(user, query, limit=limit)["results"]
    return [candidate["relevance"] for candidate in found]


def unlike(one: Image.Image, other: Image.Image) -> float:
    """Mean difference of two pictures, 0 to 255, each made small first."""
    small = [
        picture.convert("RGB").resize((24, 24), Image.Resampling.BOX) for picture in (one, other)
    ]
    return sum(ImageStat.Stat(ImageChops.difference(*small)).mean) / 3


def test_one_key_labels_what_is_on_screen_and_the_next_one_stands_there(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a heron at a lake")
    urls = [one["url"] for one in site.candidates("ann", query, limit=8)["results"]]
    page = log_in("ann")
    open_label_page(page, site, query)
    for rank, key in enumerate("rnu1232", start=1):
        assert painted(page) == rank
        assert page.evaluate(SOURCE) == urls[rank - 1]
        press(page, key)
    saved(page)
    given = {"r": "relevant", "n": "not_relevant", "u": "unsure"}
    given |= {"1": "relevant", "2": "not_relevant", "3": "unsure"}
    assert labels(site, "ann", query, 8) == [*(given[key] for key in "rnu1232"), None]


def test_the_pixels_on_the_screen_are_those_of_the_rank(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a flower in a desert")
    page = log_in("ann")
    open_label_page(page, site, query)
    page.keyboard.press("\\")  # as it is, whatever was set before
    for rank, candidate in enumerate(site.candidates("ann", query, limit=3)["results"], start=1):
        wait_painted(page, rank)
        answer = page.request.get(site.url + candidate["url"])
        source = Image.open(io.BytesIO(answer.body()))
        place = box(page.locator(PICTURE))
        screen = Image.open(io.BytesIO(page.screenshot(clip=place)))  # type: ignore[arg-type]
        assert screen.width / screen.height == pytest.approx(source.width / source.height, rel=0.02)
        # The tools lie over the lower right corner.
        upper = (0, 0, screen.width, screen.height * 3 // 4)
        wanted = (0, 0, source.width, source.height * 3 // 4)
        assert unlike(screen.crop(upper), source.crop(wanted)) < 6
        stage = box(page.locator("[data-stage]"))
        assert place["height"] == pytest.approx(stage["height"], abs=1) or place[
            "width"
        ] == pytest.approx(stage["width"], abs=1)
        page.keyboard.press("ArrowRight")


def test_the_next_picture_is_in_the_document_before_the_key_is_done(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a moth at a lamp")
    urls = [one["url"] for one in site.candidates("ann", query, limit=5)["results"]]
    page = log_in("ann")
    open_label_page(page, site, query)
    page.wait_for_function(
        "urls => urls.every(url => performance.getEntriesByName(new URL(url, location).href)"
        ".some(entry => entry.responseEnd))",
        arg=urls,
    )
    # Loaded isn't decoded: a step there and back has all near ones decoded.
    press(page, "ArrowRight", 4)
    press(page, "ArrowLeft", 4)
    found = page.evaluate(
        "() => { document.body.dispatchEvent(new KeyboardEvent('keydown',"
        " {key: 'n', code: 'KeyN', bubbles: true, cancelable: true}));"
        f" const picture = document.querySelector('{PICTURE}');"
        " return [new URL(picture.src).pathname, picture.complete && picture.naturalWidth > 0]; }"
    )
    assert found == [urls[1], True]


def test_nothing_is_labeled_that_is_not_on_the_screen(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a seal on ice")
    second = site.candidates("ann", query, start=2, limit=1)["results"][0]["url"]
    held: list[Route] = []
    page = log_in("ann")
    page.route(f"**{second}", lambda route: held.append(route))
    open_label_page(page, site, query)
    press_once(page, "n")
    expect(shown(page, "rank")).to_have_text("2")
    expect(page.locator("[data-image-waiting]")).to_be_visible()
    for key in "rnu":
        page.keyboard.press(key)
        expect(page.locator("[data-hint]")).to_contain_text("wasn't on the screen")
    saved(page)
    assert labels(site, "ann", query, 3) == ["not_relevant", None, None]
    held[0].continue_()
    wait_painted(page, 2)
    press(page, "r")
    saved(page)
    assert labels(site, "ann", query, 3) == ["not_relevant", "relevant", None]


def press_once(page: Page, key: str) -> None:
    """Press without waiting for what comes next."""
    page.keyboard.press(key)


def test_a_picture_that_fails_says_so_and_can_be_loaded_again_or_skipped(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a crab under a stone")
    second = site.candidates("ann", query, start=2, limit=1)["results"][0]["url"]
    page = log_in("ann")
    page.route(f"**{second}", lambda route: route.abort())
    open_label_page(page, site, query)
    press_once(page, "n")
    failed = page.locator("[data-image-failed]")
    expect(failed).to_contain_text("could not be loaded")
    page.keyboard.press("r")
    expect(page.locator("[data-hint]")).to_contain_text("Not labeled")
    failed.get_by_role("button", name="Skip it").click()
    wait_painted(page, 3)
    page.keyboard.press("ArrowLeft")
    expect(failed).to_be_visible()
    page.unroute(f"**{second}")
    failed.get_by_role("button", name="Try again").click()
    wait_painted(page, 2)
    expect(failed).to_be_hidden()
    saved(page)
    assert labels(site, "ann", query, 3) == ["not_relevant", None, None]


def test_a_skipped_image_holds_the_streak_until_it_is_labeled(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a hedgehog in leaves")
    page = log_in("ann")
    open_label_page(page, site, query)
    press(page, "n", 2)
    press(page, "s")
    expect(page.locator("[data-hint]")).to_contain_text("Skipped rank 3")
    expect(page.locator("[data-hint]")).to_contain_text("the streak waits there")
    press(page, "n", 3)
    expect(shown(page, "judged")).to_have_text("5")
    expect(shown(page, "streak")).to_have_text("2")
    gap = page.locator("[data-gap]")
    expect(gap).to_have_text("waits at rank 3")
    gap.click()
    wait_painted(page, 3)
    press(page, "n")
    assert painted(page) == 7
    expect(shown(page, "streak")).to_have_text("6")
    expect(gap).to_be_hidden()


def test_a_held_key_labels_once(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a bat in a cave")
    page = log_in("ann")
    open_label_page(page, site, query)
    page.keyboard.down("n")
    wait_painted(page, 2)
    for _ in range(3):
        page.keyboard.down("n")
    page.keyboard.up("n")
    press(page, "r")
    saved(page)
    assert labels(site, "ann", query, 4) == ["not_relevant", "relevant", None, None]


def test_undo_takes_the_label_back_and_redo_gives_it_again(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a goat on a cliff")
    page = log_in("ann")
    open_label_page(page, site, query)
    press(page, "n")
    press(page, "r")
    page.keyboard.press("z")
    wait_painted(page, 2)
    expect(page.locator("[data-given]")).to_be_hidden()
    page.keyboard.press("Control+z")
    wait_painted(page, 1)
    saved(page)
    assert labels(site, "ann", query, 2) == [None, None]
    page.keyboard.press("y")
    expect(page.locator("[data-given]")).to_have_text("Labeled: not relevant")
    page.get_by_role("button", name="Redo").click()
    wait_painted(page, 2)
    saved(page)
    assert labels(site, "ann", query, 2) == ["not_relevant", "relevant"]


def test_a_refused_judgment_stays_in_sight_over_a_reload_until_it_is_dismissed(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a wasp on fruit")
    page = log_in("ann")
    open_label_page(page, site, query)
    press(page, "n")
    saved(page)
    site.api("ada", "PATCH", f"/api/queries/{query}/", {"state": "complete", "note": "Enough."})
    press_once(page, "r")
    notice = page.locator("[data-notice=refused]")
    expect(notice).to_contain_text("“Relevant” at rank 2 was not stored")
    expect(page.locator("[data-notice=closed]")).to_contain_text("completed")
    assert labels(site, "ada", query, 2) == [None, None]

    press_once(page, "r")  # nothing more is judged
    expect(page.locator("[data-hint]")).to_contain_text("Not labeled")
    saved(page)
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


def test_of_two_labels_at_once_one_is_refused_and_may_be_insisted_on(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a lizard on a wall")
    first = site.candidates("ann", query, limit=1)["results"][0]["image"]
    page = log_in("ann")
    page.route("**/changes/**", lambda route: route.abort())
    open_label_page(page, site, query)
    site.judge("ann", query, [(first, "relevant")])
    press(page, "n")
    notice = page.locator("[data-notice=refused]")
    expect(notice).to_be_visible()
    assert labels(site, "ann", query, 1) == ["relevant"]
    expect(shown(page, "relevant")).to_have_text("1")
    notice.get_by_role("button", name="Show it").click()
    dialog = page.get_by_role("dialog", name="Not stored")
    expect(dialog).to_contain_text("Stored label: relevant")
    dialog.get_by_role("button", name="Use mine").click()
    expect(notice).to_be_hidden()
    wait_for(
        lambda: labels(site, "ann", query, 1) == ["not_relevant"],
        seconds=20,
        what="the label that was insisted on",
    )
    expect(shown(page, "relevant")).to_have_text("0")


def test_labels_of_another_tab_and_of_others_appear(
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
    second = log_in("otto")
    open_label_page(second, site, query)
    press(second, "n", 3)
    saved(second)
    one.bring_to_front()
    expect(one.locator("[data-others]")).to_contain_text("otto labeled 3 here today")
    assert shown(one, "judged").inner_text() == "2"


def test_time_spent_on_a_skipped_image_is_its_own(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a goose grazing, looked at for long")
    page = log_in("ann")
    open_label_page(page, site, query)
    page.wait_for_timeout(5000)
    press(page, "ArrowRight")
    press(page, "n")
    page.keyboard.press("ArrowLeft")
    wait_painted(page, 2)
    page.keyboard.press("ArrowLeft")
    wait_painted(page, 1)
    page.keyboard.press("r")
    saved(page)
    first, second = (
        site.api("ann", "GET", f"/api/queries/{query}/history/?image={candidate['image']}")
        for candidate in site.candidates("ann", query, limit=2)["results"]
    )
    assert first["results"][0]["seconds"] >= 5
    assert second["results"][0]["seconds"] < first["results"][0]["seconds"]

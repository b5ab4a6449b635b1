"""The grid in a real browser: what was on screen is submitted, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.e2e import tiles
from tests.e2e.conftest import DESKTOP, NARROW, PHONE
from tests.e2e.tiles import NOT, all_not, marks, open_grid, tile, wait_seen, wait_stored
from tests.site import Site

pytestmark = pytest.mark.e2e


def drag(page: Page, start: int, *others: int) -> None:
    """Press on one tile and move over others with the button held."""
    for number, rank in enumerate((start, *others)):
        box = tile(page, rank).bounding_box()
        assert box
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        if not number:
            page.mouse.down()
    page.mouse.up()


class Finger:
    """A finger on the screen, as the browser's own touch events."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.devtools = page.context.new_cdp_session(page)

    def _send(self, kind: str, points: list[dict[str, float]]) -> None:
        self.devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def _at(self, rank: int) -> dict[str, float]:
        box = tile(self.page, rank).bounding_box()
        assert box
        return {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}

    def down(self, rank: int) -> None:
        self._send("touchStart", [self._at(rank)])

    def over(self, *ranks: int) -> None:
        for rank in ranks:
            self._send("touchMove", [self._at(rank)])

    def up(self) -> None:
        self._send("touchEnd", [])

    def swipe(self, *ranks: int) -> None:
        """Quickly from tile to tile, in one task, so that on no machine it is a hold."""
        self.page.evaluate(
            """(points) => {
              const send = (kind, { x, y }) => document.elementFromPoint(x, y).dispatchEvent(
                new PointerEvent(kind, {
                  bubbles: true, pointerId: 7, pointerType: "touch", clientX: x, clientY: y,
                }),
              );
              send("pointerdown", points[0]);
              for (const point of points) send("pointermove", point);
              send("pointerup", points.at(-1));
            }""",
            [self._at(rank) for rank in ranks],
        )


def test_a_page_stores_exactly_what_was_on_screen_in_rank_order(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a bird in a tree, by pages")
    known = tiles.candidates(site, "ann", query)
    page = log_in("ann")
    assert open_grid(page, site, "ann", query) == list(range(1, 13))
    shown = tiles.pictures(page)
    assert shown == {rank: known[rank]["thumbnail_url"] for rank in range(1, 13)}

    tile(page, 2).click()
    tile(page, 7).click()
    tile(page, 7).click()  # a second click takes the mark away
    page.get_by_role("group", name="A click marks as").get_by_role("button", name="Unsure").click()
    tile(page, 5).click()
    assert {rank: mark for rank, mark in marks(page).items() if mark} == {
        2: "relevant",
        5: "unsure",
    }
    for relevance, number in (("relevant", 1), ("unsure", 1), (NOT, 10)):
        expect(page.locator(f"[data-bar=grid] [data-sum={relevance}]")).to_have_text(str(number))
    page.get_by_role("button", name="Submit page").click()

    assert wait_seen(page, 13) == list(range(13, 25))
    assert tiles.pictures(page) == {rank: known[rank]["thumbnail_url"] for rank in range(13, 25)}
    expected = all_not(1, 12) | {2: "relevant", 5: "unsure"}
    wait_stored(site, "ann", query, sorted(expected.items()))
    by_image = {
        one["image"]: (one["relevance"], one["source"], one["rank"])
        for one in site.api("ann", "GET", f"/api/queries/{query}/judgments/")["results"]
    }
    seconds = {
        one["seconds"]
        for one in site.api("ann", "GET", f"/api/queries/{query}/judgments/")["results"]
    }
    assert len(seconds) == 1  # the page's active time in equal shares
    on_screen = {path: rank for rank, path in shown.items()}
    for one in known.values():
        rank = on_screen.get(one["thumbnail_url"])
        assert by_image.get(one["image"]) == (rank and (expected[rank], "list", rank))


def test_the_next_page_is_decoded_before_it_is_shown(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a moth at a lamp, by pages")
    next_page = [
        tiles.candidates(site, "ann", query)[rank]["thumbnail_url"] for rank in range(13, 25)
    ]
    page = log_in("ann")
    open_grid(page, site, "ann", query)
    page.wait_for_function(
        """wanted => {
          const got = performance.getEntriesByType("resource").map((one) => one.name);
          return wanted.every((path) => got.some((name) => name.endsWith(path)));
        }""",
        arg=next_page,
    )
    page.wait_for_load_state("networkidle")
    # Whatever is shown in the very task of the key was there before it.
    at_once = page.evaluate(
        """shown => {
          document.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
          return [...document.querySelectorAll(shown)].map((tile) => {
            const picture = tile.querySelector("img");
            return picture?.complete && picture.naturalWidth > 0 && new URL(picture.src).pathname;
          });
        }""",
        tiles.SHOWN,
    )
    assert at_once == next_page


def test_dragging_paints_the_state_of_the_first_tile(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a frog in a pond, by pages")
    page = log_in("ann")
    open_grid(page, site, "ann", query)
    columns = int(
        page.locator("[data-tiles]").evaluate("one => one.style.getPropertyValue('--columns')")
    )
    drag(page, 1, 3)  # too fast to be reported on 2
    drag(page, columns + 1, columns + 2)
    assert [rank for rank, mark in marks(page).items() if mark == "relevant"] == [
        *(1, 2, 3),
        *(columns + 1, columns + 2),
    ]
    drag(page, 2, 3, 4)  # begins on a marked one, so it takes marks away
    expected = {1, columns + 1, columns + 2}
    assert {rank for rank, mark in marks(page).items() if mark} == expected
    page.keyboard.press("Enter")
    wait_stored(
        site,
        "ann",
        query,
        sorted((all_not(1, 12) | dict.fromkeys(expected, "relevant")).items()),
    )


def test_everything_from_the_keyboard(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a fox at dawn, by pages")
    page = log_in("ann")
    open_grid(page, site, "ann", query)
    columns = int(
        page.locator("[data-tiles]").evaluate("one => one.style.getPropertyValue('--columns')")
    )
    expect(tile(page, 1)).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(tile(page, 2)).to_be_focused()
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    expect(tile(page, columns + 2)).to_be_focused()
    page.keyboard.press("u")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("1")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("1")
    page.keyboard.press("2")
    assert {rank: mark for rank, mark in marks(page).items() if mark} == {
        1: NOT,
        2: "relevant",
        columns + 1: "relevant",
        columns + 2: "unsure",
    }
    assert page.locator("[data-tiles] [tabindex='0']").count() == 1
    page.keyboard.press("Enter")
    assert wait_seen(page, 13)[0] == 13
    expect(tile(page, 13)).to_be_focused()
    marked = {2: "relevant", columns + 1: "relevant", columns + 2: "unsure"}
    wait_stored(site, "ann", query, sorted((all_not(1, 12) | marked).items()))


def test_a_finger_taps_swipes_and_paints(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a crab on sand, by pages")
    page = log_in("ann", viewport=PHONE, has_touch=True, is_mobile=True)
    open_grid(page, site, "ann", query)
    finger = Finger(page)
    tile(page, 1).tap()
    assert marks(page)[1] == "relevant"

    finger.swipe(4, 5, 6)  # marks nothing
    assert [rank for rank, mark in marks(page).items() if mark] == [1]

    page.get_by_role("button", name="Paint by dragging").click()
    expect(page.locator("[data-grid-paint]")).to_have_attribute("aria-pressed", "true")
    finger.down(7)
    finger.over(8)
    finger.up()
    assert [rank for rank, mark in marks(page).items() if mark] == [1, 7, 8]

    # Chromium takes a tap right after so fast a stroke for the end of a fling.
    page.get_by_role("button", name="Paint by dragging").click()
    expect(page.locator("[data-grid-paint]")).to_have_attribute("aria-pressed", "false")
    finger.down(4)
    expect(tile(page, 4)).to_have_attribute("data-mark", "relevant")  # after the hold
    finger.over(5, 6)
    finger.up()
    assert [rank for rank, mark in marks(page).items() if mark] == [1, 4, 5, 6, 7, 8]
    finger.swipe(10)  # the same without a move is a tap
    assert [rank for rank, mark in marks(page).items() if mark] == [1, 4, 5, 6, 7, 8, 10]


def test_the_whole_picture_is_shown_unless_a_crop_is_wanted(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a whale at sea, by pages")
    page = log_in("ann")
    open_grid(page, site, "ann", query)
    picture = tile(page, 1).locator("img")
    expect(picture).to_have_css("object-fit", "contain")
    with page.expect_response("**/api/preferences/labeling/"):
        page.get_by_label("Whole image").uncheck()
        expect(picture).to_have_css("object-fit", "cover")
    page.reload()
    wait_seen(page, 1)
    expect(picture).to_have_css("object-fit", "cover")
    assert not page.get_by_label("Whole image").is_checked()


def test_what_did_not_load_is_not_submitted_and_comes_again(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a toad under a log, by pages")
    known = tiles.candidates(site, "ann", query)
    kept_back = {known[rank]["thumbnail_url"] for rank in (3, 8)}
    page = log_in("ann")
    blocked = {"now": True}

    def answer(route: Route) -> None:
        path = "/" + route.request.url.split("/", 3)[3]
        if blocked["now"] and path in kept_back:
            route.abort()
        else:
            route.continue_()

    page.route("**/images/**", answer)
    tiles.prefer(site, "ann", view="grid", grid_size=12)
    page.goto(f"{site.url}/queries/{query}/label/")
    page.wait_for_function(
        "() => document.querySelectorAll('[data-tiles] [data-seen]').length === 10"
        " && document.querySelectorAll('[data-tiles] [data-failed]').length === 2"
    )
    tile(page, 3).click()
    assert marks(page)[3] == ""  # what can't be seen can't be marked
    page.keyboard.press("Enter")
    expect(page.locator("[data-notice=grid-left]")).to_contain_text(
        "2 images were not on screen, so they were not submitted"
    )
    assert tiles.ranks(page) == [3, 8, *range(13, 23)]
    expected = [(rank, NOT) for rank in range(1, 13) if rank not in (3, 8)]
    wait_stored(site, "ann", query, expected)

    blocked["now"] = False
    page.get_by_role("button", name="Load again").click()
    assert wait_seen(page, 3) == [3, 8, *range(13, 23)]
    tile(page, 8).click()
    assert marks(page)[8] == "relevant"
    page.keyboard.press("Enter")
    assert wait_seen(page, 23) == list(range(23, 35))
    expect(page.locator("[data-notice=grid-left]")).to_have_count(0)
    wait_stored(site, "ann", query, sorted((all_not(1, 22) | {8: "relevant"}).items()))


@pytest.mark.parametrize("viewport", [DESKTOP, NARROW])
def test_any_number_of_tiles_fills_the_window_without_scrolling(
    site: Site, log_in: Callable[..., Page], viewport: Any
) -> None:
    query = site.open_query(f"a snail, by pages of any size at {viewport['width']}")
    page = log_in("ann", viewport=viewport)
    open_grid(page, site, "ann", query, size=12)
    measure = """shown => {
      const box = document.querySelector("[data-tiles]").getBoundingClientRect();
      const tiles = [...document.querySelectorAll(shown)].map((one) => one.getBoundingClientRect());
      return {
        count: tiles.length,
        inside: tiles.every((one) => one.left >= box.left - 1 && one.right <= box.right + 1
          && one.top >= box.top - 1 && one.bottom <= Math.min(box.bottom, innerHeight) + 1),
        side: Math.min(...tiles.map((one) => Math.min(one.width, one.height))),
        filled: tiles.reduce((sum, { width, height }) => sum + width * height, 0)
          / (box.width * box.height),
        scrolls: document.documentElement.scrollHeight > innerHeight
          || document.documentElement.scrollWidth > innerWidth,
      };
    }"""
    least = 44 if viewport == DESKTOP else 36
    sizes = []
    for _ in range(13):
        found = page.evaluate(measure, tiles.SHOWN)
        sizes.append(found["count"])
        assert found["inside"], found
        assert not found["scrolls"], found
        assert found["side"] >= least, found
        assert found["filled"] > 0.75, found
        page.keyboard.press("-")
        wait_seen(page, 1)
    assert sizes[0] == 12
    assert sizes[-1] == 60
    assert sizes == sorted(set(sizes))
    # Changes of a moment are sent together, so an answer may be to the ones before.
    with page.expect_response(lambda answer: "37" in (answer.request.post_data or "")):
        page.get_by_role("slider", name="Images on a page").fill("37")
        assert wait_seen(page, 1) == list(range(1, 38))
    page.reload()
    assert wait_seen(page, 1) == list(range(1, 38))

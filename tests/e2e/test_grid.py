"""The grid in a real browser: what was on screen is submitted, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.e2e import tiles
from tests.e2e.conftest import DESKTOP, NARROW, PHONE
from tests.e2e.labeling import (
    UNUSED,
    click_now,
    note_fetched,
    view_kept,
    wait_fetched,
    wait_held,
    wait_same,
)
from tests.e2e.tiles import NOT, all_not, marked, open_grid, tile, wait_seen, wait_stored
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


def rows(site: Site, query: int) -> dict[int, dict[str, Any]]:
    """Ann's judgments by rank."""
    found = site.api("ann", "GET", f"/api/queries/{query}/judgments/")["results"]
    return {one["rank"]: one for one in found}


def test_a_page_marked_with_the_mouse_stores_exactly_what_was_on_screen(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a bird in a tree, by pages")
    known = tiles.candidates(site, "ann", query)
    labeled = {5: "relevant", 6: NOT, 7: "unsure", 8: "relevant"}
    tiles.label(site, "ann", query, labeled)
    tiles.label(site, "ann", query, {9: "relevant"}, source="search")
    labeled[9] = "relevant"
    before = rows(site, query)
    page = log_in("ann")
    assert open_grid(page, site, "ann", query) == list(range(1, 13))
    shown = tiles.pictures(page)
    assert shown == {rank: known[rank]["thumbnail_url"] for rank in range(1, 13)}
    assert marked(page) == labeled
    expect(tile(page, 6)).to_have_attribute("aria-label", "Rank 6, labeled not relevant")

    # A stroke paints what its first tile became, tiles between two reported points too.
    drag(page, 1, 3)
    assert marked(page) == labeled | dict.fromkeys((1, 2, 3), "relevant")
    drag(page, 2, 3, 4)
    assert marked(page) == labeled | {1: "relevant"}
    tile(page, 8).click()
    expect(tile(page, 8)).to_have_attribute(
        "aria-label", "Rank 8, labeled relevant, marked not relevant"
    )
    page.get_by_role("group", name="A click marks as").get_by_role("button", name="Unsure").click()
    tile(page, 10).click()
    tile(page, 11).click()
    tile(page, 11).click()  # a second click takes the mark away
    wanted = labeled | {1: "relevant", 8: NOT, 10: "unsure"}
    assert marked(page) == wanted
    for relevance, number in (("relevant", 3), ("unsure", 2), (NOT, 7)):
        expect(page.locator(f"[data-bar=grid] [data-sum={relevance}]")).to_have_text(str(number))
    page.get_by_role("button", name="Submit page").click()

    assert wait_seen(page, 13) == list(range(13, 25))
    assert tiles.pictures(page) == {rank: known[rank]["thumbnail_url"] for rank in range(13, 25)}
    expected = sorted((all_not(1, 12) | wanted).items())
    wait_stored(site, "ann", query, expected)
    after = rows(site, query)
    on_screen = {path: rank for rank, path in shown.items()}
    for rank, relevance in expected:
        assert after[rank]["image"] == known[rank]["image"]
        assert on_screen[known[rank]["thumbnail_url"]] == rank
        if rank in labeled and rank != 8:
            assert after[rank] == before[rank]  # what stands already is left alone
        else:
            assert (after[rank]["relevance"], after[rank]["source"]) == (relevance, "list")
    new = [one["seconds"] for rank, one in after.items() if rank not in labeled]
    assert len(set(new)) == 1  # the page's active time in equal shares

    # A page is one step, and its marks come back with it.
    page.keyboard.press("z")
    assert wait_seen(page, 1) == list(range(1, 13))
    wait_stored(site, "ann", query, sorted(labeled.items()))
    assert marked(page) == labeled | {1: "relevant", 10: "unsure"}
    page.keyboard.press("y")
    wait_stored(site, "ann", query, expected)


def test_pages_by_keyboard_and_marks_that_outlive_paging_views_and_a_reload(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a fox at dawn, by pages")
    known = tiles.candidates(site, "ann", query)
    page = log_in("ann", viewport=UNUSED)
    fetched = note_fetched(page)
    open_grid(page, site, "ann", query)
    expect(page).to_have_url(f"{site.url}/queries/{query}/label/?rank=1")
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
    wanted = {1: NOT, 2: "relevant", columns + 1: "relevant", columns + 2: "unsure"}
    assert marked(page) == wanted
    assert page.locator("[data-tiles] [tabindex='0']").count() == 1

    # Whatever is shown in the very task of the key was decoded before it.
    next_page = [known[rank]["thumbnail_url"] for rank in range(13, 25)]
    wait_fetched(page, fetched, next_page)
    at_once = page.evaluate(
        """shown => {
          document.dispatchEvent(new KeyboardEvent("keydown", { key: "PageDown", bubbles: true }));
          return [...document.querySelectorAll(shown)].map((tile) => {
            const picture = tile.querySelector("img");
            return picture?.complete && picture.naturalWidth > 0 && picture.getAttribute("src");
          });
        }""",
        tiles.SHOWN,
    )
    assert at_once == next_page
    assert wait_seen(page, 13) == list(range(13, 25))
    expect(tile(page, 13)).to_be_focused()
    page.get_by_role("button", name="4 marks on other pages not submitted, go to rank 1").click()
    assert wait_seen(page, 1) == list(range(1, 13))
    assert marked(page) == wanted

    # The same place in the single view, by keys and by a double click that marks nothing.
    page.locator("[data-tiles] [tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("g")
    expect(page.locator("[data-single][data-painted='2']")).to_be_visible()
    assert page.locator("[data-canvas] img").get_attribute("src") == known[2]["url"]
    page.keyboard.press("g")
    assert wait_seen(page, 1) == list(range(1, 13))
    expect(tile(page, 2)).to_be_focused()
    page.keyboard.press("o")
    expect(page.locator("[data-single][data-painted='2']")).to_be_visible()
    page.get_by_role("button", name="Back to the grid").click()
    wait_seen(page, 1)
    tile(page, 3).dblclick()
    expect(page.locator("[data-single][data-painted='3']")).to_be_visible()
    with view_kept(page, "grid"):
        page.get_by_role("button", name="Grid", exact=True).click()
    wait_seen(page, 1)
    assert marked(page) == wanted
    page.reload()
    wait_seen(page, 1)
    assert marked(page) == wanted
    assert tiles.stored(site, "ann", query) == []

    # A held key submits one page.
    page.keyboard.down("Enter")
    wait_seen(page, 13)
    expect(tile(page, 13)).to_be_focused()
    for _ in range(5):
        page.keyboard.down("Enter")  # as a held key repeats
    page.keyboard.up("Enter")
    expected = all_not(1, 12) | wanted
    wait_stored(site, "ann", query, sorted(expected.items()))
    assert tiles.ranks(page) == list(range(13, 25))


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


def test_a_finger_taps_swipes_and_paints(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a crab on sand, by pages")
    page = log_in("ann", viewport=PHONE, has_touch=True, is_mobile=True)
    open_grid(page, site, "ann", query)
    finger = Finger(page)
    tile(page, 1).tap()
    assert list(marked(page)) == [1]
    finger.swipe(4, 5, 6)  # marks nothing
    assert list(marked(page)) == [1]

    paint = page.get_by_role("button", name="Paint by dragging")
    paint.click()
    expect(paint).to_have_attribute("aria-pressed", "true")
    finger.down(7)
    finger.over(8)
    finger.up()
    assert list(marked(page)) == [1, 7, 8]

    paint.click()
    expect(paint).to_have_attribute("aria-pressed", "false")
    finger.down(4)
    expect(tile(page, 4)).to_have_attribute("data-mark", "relevant")  # after the hold
    finger.over(5, 6)
    finger.up()
    finger.swipe(10)  # the same without a move is a tap
    assert list(marked(page)) == [1, 4, 5, 6, 7, 8, 10]

    # Chromium takes a tap right after so fast a stroke for the end of a fling.
    page.get_by_role("button", name="Submit page").click()
    wait_seen(page, 13)
    expected = all_not(1, 12) | dict.fromkeys((1, 4, 5, 6, 7, 8, 10), "relevant")
    wait_stored(site, "ann", query, sorted(expected.items()))
    # The strip counts a page one by one, and leads back to its images.
    page.locator("[data-last-judged]").get_by_role("button", name="Rank 10, relevant").click()
    wait_seen(page, 10)
    expect(tile(page, 10)).to_have_attribute("tabindex", "0")


def test_what_did_not_load_is_not_submitted_and_comes_again_at_its_own_rank(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a toad under a log, by pages")
    thumbnails = {
        rank: one["thumbnail_url"] for rank, one in tiles.candidates(site, "ann", query).items()
    }
    page = log_in("ann")
    held: list[Route] = []
    page.route(f"**{thumbnails[3]}", lambda route: route.abort())
    page.route(f"**{thumbnails[8]}", lambda route: held.append(route))
    tiles.prefer(site, "ann", view="grid", grid_size=12)
    page.goto(f"{site.url}/queries/{query}/label/")
    expect(page.locator("[data-tiles] [data-seen]")).to_have_count(10)
    expect(tile(page, 3)).to_have_attribute("data-failed", "")
    tile(page, 3).click()
    tile(page, 8).click()
    assert marked(page) == {}  # what can't be seen can't be marked
    page.keyboard.press("Enter")
    notice = page.locator("[data-notice=grid-left]")
    expect(notice).to_contain_text("2 images were not on screen, so they were not submitted")
    ranks = [3, 8, *range(13, 23)]
    assert tiles.ranks(page) == ranks
    expected = [(rank, NOT) for rank in range(1, 13) if rank not in (3, 8)]
    wait_stored(site, "ann", query, expected)

    # A picture that comes late comes to its own rank, wherever that stands by now.
    wait_held(page, held)
    held[0].continue_()
    expect(tile(page, 8)).to_have_attribute("data-seen", "")
    expect(notice.get_by_role("button", name="Load again")).to_be_visible()
    page.unroute(f"**{thumbnails[3]}")
    click_now(notice.get_by_role("button", name="Load again"))
    assert wait_seen(page, 3) == ranks
    assert tiles.pictures(page) == {rank: thumbnails[rank] for rank in ranks}
    tile(page, 8).click()
    assert marked(page) == {8: "relevant"}
    page.keyboard.press("Enter")
    assert wait_seen(page, 23) == list(range(23, 35))
    expect(notice).to_have_count(0)
    wait_stored(site, "ann", query, sorted((all_not(1, 22) | {8: "relevant"}).items()))


LAYOUT = """shown => {
  const box = document.querySelector("[data-tiles]").getBoundingClientRect();
  const tiles = [...document.querySelectorAll(shown)].map((one) => one.getBoundingClientRect());
  const least = innerWidth > 600 ? 44 : 36;
  return {
    count: tiles.length,
    inside: tiles.every((one) => one.left >= box.left - 1 && one.right <= box.right + 1
      && one.top >= box.top - 1 && one.bottom <= Math.min(box.bottom, innerHeight) + 1),
    large: tiles.every((one) => Math.min(one.width, one.height) >= least),
    filled: tiles.reduce((sum, { width, height }) => sum + width * height, 0)
      / (box.width * box.height) > 0.75,
    scrolls: document.documentElement.scrollHeight > innerHeight
      || document.documentElement.scrollWidth > innerWidth,
  };
}"""


def test_any_number_of_tiles_fills_the_window_and_the_choice_is_kept(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a snail, by pages of any size")
    page = log_in("ann")
    open_grid(page, site, "ann", query, size=12)
    slider = page.get_by_role("slider", name="Images on a page")
    for size in (12, 35, 60):
        slider.fill(str(size))
        for viewport in (DESKTOP, NARROW):
            page.set_viewport_size(viewport)
            wait_same(
                lambda: page.evaluate(LAYOUT, tiles.SHOWN),
                {"count": size, "inside": True, "large": True, "filled": True, "scrolls": False},
            )
    page.set_viewport_size(DESKTOP)
    page.locator("[data-tiles] [tabindex='0']").focus()
    page.keyboard.press("+")  # fewer, larger ones
    assert wait_seen(page, 1) == list(range(1, 55))

    # The whole image is shown unless a crop is wanted.
    picture = tile(page, 1).locator("img")
    expect(picture).to_have_css("object-fit", "contain")
    page.get_by_label("Whole image").uncheck()
    expect(picture).to_have_css("object-fit", "cover")
    # Changes of a moment are sent together, so an answer may be to the ones before.
    with page.expect_response(lambda answer: "37" in (answer.request.post_data or "")):
        slider.fill("37")
    page.reload()
    assert wait_seen(page, 1) == list(range(1, 38))
    expect(picture).to_have_css("object-fit", "cover")
    assert not page.get_by_label("Whole image").is_checked()

"""The grid in a real browser: what was on screen is submitted, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.e2e import tiles
from tests.e2e.axe import violations, wider_than_window
from tests.e2e.conftest import DESKTOP, PHONE, Site
from tests.e2e.tiles import marks, open_grid, tile, wait_seen, wait_stored

pytestmark = pytest.mark.e2e

NOT = "not_relevant"


@pytest.fixture(autouse=True)
def usual_view(site: Site) -> Iterator[None]:
    """Other tests find the page as nobody has changed it."""
    yield
    for user in ("ann", "otto"):
        tiles.prefer(site, user)


def all_not(first: int, last: int) -> dict[int, str]:
    return dict.fromkeys(range(first, last + 1), NOT)


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
    page.get_by_label("Whole picture").uncheck()
    expect(picture).to_have_css("object-fit", "cover")
    page.wait_for_timeout(1000)  # preferences are sent when nobody has changed them for a moment
    page.reload()
    wait_seen(page, 1)
    expect(picture).to_have_css("object-fit", "cover")
    assert not page.get_by_label("Whole picture").is_checked()


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
        "2 pictures were not on screen, so they were not submitted"
    )
    assert tiles.ranks(page) == [3, 8, *range(13, 23)]
    expected = [(rank, NOT) for rank in range(1, 13) if rank not in (3, 8)]
    wait_stored(site, "ann", query, expected)

    blocked["now"] = False
    page.get_by_role("button", name="Load again").click()
    assert wait_seen(page, 3) == [3, 8, *range(13, 23)]
    tile(page, 8).click()
    page.keyboard.press("Enter")
    assert wait_seen(page, 23) == list(range(23, 35))
    expect(page.locator("[data-notice=grid-left]")).to_have_count(0)
    wait_stored(site, "ann", query, sorted((all_not(1, 22) | {8: "relevant"}).items()))


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE, {"width": 360, "height": 740}])
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
    page.get_by_role("slider", name="Images on a page").fill("37")
    assert wait_seen(page, 1) == list(range(1, 38))
    page.wait_for_timeout(1000)  # preferences are sent when nobody has changed them for a moment
    page.reload()
    assert wait_seen(page, 1) == list(range(1, 38))


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


def test_what_is_labelled_already_is_shown_and_left_alone(
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
    expect(tile(page, 3)).to_have_attribute("aria-label", "Rank 3, labelled not relevant")
    tile(page, 5).click()
    expect(tile(page, 5)).to_have_attribute(
        "aria-label", "Rank 5, labelled relevant, marked not relevant"
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
    site.api("ada", "PATCH", f"/api/queries/{query}/", {"state": "complete"})
    expect(page.locator("[data-notice=closed]")).to_be_visible(timeout=40_000)
    tile(page, 3).click()
    page.keyboard.press("Enter")
    expect(page.locator("[data-hint]")).to_contain_text("Not labelled")
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, {"width": 360, "height": 740}])
def test_axe_finds_nothing_serious(
    site: Site, log_in: Callable[..., Page], viewport: Any, scheme: str
) -> None:
    query = site.open_query(f"a seal on a rock, by pages, {scheme} {viewport['width']}")
    tiles.label(site, "ann", query, {1: "relevant", 2: NOT, 3: "unsure"})
    broken = tiles.candidates(site, "ann", query)[7]["thumbnail_url"]
    page = log_in("ann", viewport=viewport, color_scheme=scheme)
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
    assert violations(page) == []
    assert wider_than_window(page) == []
    page.keyboard.press("p")
    page.locator("[data-stop-give-up] summary").click()
    assert violations(page) == []

"""The studio's filters: each narrows what is shown to what the API tells, none moves a counter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.axe import violations, wider_than_window
from tests.e2e.conftest import DEPTH, NARROW
from tests.e2e.labeling import open_label_page, press
from tests.e2e.tiles import open_grid, ranks, tile
from tests.processes import wait_for
from tests.site import Site

pytestmark = pytest.mark.e2e

SIZE = 24
Candidate = dict[str, Any]


@pytest.fixture(scope="module")
def query(site: Site) -> int:
    """A query of which ann labeled ranks 1 to 3 and flagged ranks 2 and 5."""
    site.settle_flags()
    query = site.open_query("an animal near the water, to filter")
    found = site.candidates("ann", query, limit=5)["results"]
    site.judge("ann", query, [(one["image"], "not_relevant") for one in found[:3]])
    for rank in (2, 5):
        image = found[rank - 1]["image"]
        site.api("ann", "POST", f"/api/images/{image}/flags/", {"kind": "poor_quality"})
    return query


@pytest.fixture
def grid(site: Site, log_in: Callable[..., Page], query: int) -> Page:
    """The grid with the filters open."""
    page = log_in("ann")
    open_grid(page, site, "ann", query, size=SIZE)
    page.keyboard.press("/")
    expect(page.locator("[data-filters]")).to_be_visible()
    expect(page.locator(".filters-license").first).to_be_attached()
    return page


def panel(page: Page) -> Locator:
    return page.locator("[data-filters]")


def expected(site: Site, query: int, passes: Callable[[Candidate], Any]) -> list[int]:
    """The ranks of the list whose candidate passes, by what the API tells of each."""
    return [one["rank"] for one in site.candidates("ann", query)["results"] if passes(one)]


def expect_shown(page: Page, wanted: list[int]) -> None:
    """Exactly these candidates are shown, and the page says how many they are."""
    assert 0 < len(wanted) < DEPTH
    words = f"{len(wanted)} of {DEPTH} candidates shown"
    expect(page.locator("[data-filters-count]")).to_have_text(words)
    expect(page.locator("[data-filters-bar]")).to_contain_text(f"{words}: ")
    wait_for(lambda: is_a_page_of(wanted, ranks(page)), seconds=15, what=f"a page of {wanted}")


def is_a_page_of(wanted: list[int], shown: list[int]) -> bool:
    """Whether these tiles are candidates of `wanted` one after the other, as many as fit."""
    if not shown or shown[0] not in wanted:
        return False
    first = wanted.index(shown[0])
    return shown == wanted[first : first + SIZE]


def counters(page: Page) -> list[str]:
    return [
        page.locator(f"[data-show={name}]").first.inner_text()
        for name in ("judged", "candidates", "relevant", "streak", "remaining")
    ]


def months(site: Site, query: int, grid: Page) -> None:
    panel(grid).get_by_role("button", name="May").click()
    expect_shown(grid, expected(site, query, lambda one: one["observed_at"][5:7] == "05"))
    panel(grid).get_by_role("button", name="November").click()
    either = expected(site, query, lambda one: one["observed_at"][5:7] in ("05", "11"))
    expect_shown(grid, either)
    expect(grid.locator("[data-filters-bar]")).to_contain_text("May, November")
    panel(grid).get_by_role("button", name="May").click()
    expect_shown(grid, expected(site, query, lambda one: one["observed_at"][5:7] == "11"))


def dates(site: Site, query: int, grid: Page) -> None:
    days = sorted(one["observed_at"][:10] for one in site.candidates("ann", query)["results"])
    expect(panel(grid)).to_contain_text(f"from {days[0]} to {days[-1]}")
    first, last = days[40], days[90]
    panel(grid).get_by_label("From").fill(first)
    expect_shown(grid, expected(site, query, lambda one: one["observed_at"][:10] >= first))
    panel(grid).get_by_label("To", exact=True).fill(last)
    both = expected(site, query, lambda one: first <= one["observed_at"][:10] <= last)
    expect_shown(grid, both)
    panel(grid).get_by_label("To", exact=True).fill(days[0])
    expect(grid.locator("[data-filters-count]")).to_have_class("filters-count problem")
    assert is_a_page_of(both, ranks(grid))  # what can't be asked changes nothing


def licences(site: Site, query: int, grid: Page) -> None:
    found = site.candidates("ann", query)["results"]
    names = {one["license"] for one in found}
    boxes = grid.locator(".filters-license")
    assert boxes.count() == len(names) > 2
    for name in names:
        count = sum(one["license"] == name for one in found)
        expect(boxes.filter(has_text=name)).to_contain_text(str(count))
    first, second = sorted(names)[:2]
    panel(grid).get_by_label(first).check()
    expect_shown(grid, expected(site, query, lambda one: one["license"] == first))
    panel(grid).get_by_label(second).check()
    expect_shown(grid, expected(site, query, lambda one: one["license"] in (first, second)))


def species(site: Site, query: int, grid: Page) -> None:
    found = site.candidates("ann", query)["results"]
    names = [one["species"]["common_name"] for one in found]
    field = panel(grid).get_by_role("combobox")
    field.click()
    most = grid.get_by_role("option").first
    assert names.count(most.locator(".picker-title").inner_text().rsplit(" ", 2)[0]) == max(
        map(names.count, names)
    )
    field.press_sequentially("hopper marsh")
    option = grid.get_by_role("option", name="Marsh Hopper")
    expect(option).to_contain_text(f"{names.count('Marsh Hopper')} candidates")
    option.click()
    expect_shown(
        grid, expected(site, query, lambda one: one["species"]["common_name"] == "Marsh Hopper")
    )
    panel(grid).locator(".chip-name").click()
    panel(grid).get_by_role("button", name="Family Paludisaltidae").click()
    hoppers = ("Marsh Hopper", "Moss Hopper", "Reed Hopper")
    expect_shown(grid, expected(site, query, lambda one: one["species"]["common_name"] in hoppers))


def judged_and_flagged(site: Site, query: int, grid: Page) -> None:
    def choose(group: str, name: str) -> None:
        panel(grid).get_by_role("group", name=group).get_by_label(name, exact=True).check()

    choose("Your label", "Labeled")
    expect_shown(grid, [1, 2, 3])
    choose("Your label", "Not labeled")
    expect_shown(grid, list(range(4, DEPTH + 1)))
    choose("Flags", "Flagged")
    expect_shown(grid, [5])
    choose("Your label", "All")
    expect_shown(grid, [2, 5])
    choose("Flags", "Not flagged")
    expect_shown(grid, [1, 3, 4, *range(6, DEPTH + 1)])


def inside(one: Candidate, west: float, south: float, east: float, north: float) -> bool:
    across = one["longitude"] >= west or one["longitude"] <= east
    between = west <= one["longitude"] <= east
    return south <= one["latitude"] <= north and (across if west > east else between)


def edges(page: Page) -> list[float]:
    names = ("West", "South", "East", "North")
    return [float(panel(page).get_by_label(name).input_value()) for name in names]


def drag(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Drag over the map, by fractions of its width and height."""
    view = page.locator("[data-map-view]")
    view.scroll_into_view_if_needed()
    box = view.bounding_box()
    assert box
    points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in (start, end)]
    page.mouse.move(*points[0])
    page.mouse.down()
    page.mouse.move(*points[1], steps=5)
    page.mouse.up()


def a_box_drawn(site: Site, query: int, grid: Page) -> None:
    drag(grid, (0.45, 0.1), (0.6, 0.4))
    expect(panel(grid).get_by_label("West")).not_to_have_value("")
    west, south, east, north = edges(grid)
    assert (-22 < west < -14, 32 < east < 40) == (True, True)
    assert (14 < south < 22, 68 < north < 76) == (True, True)
    expect_shown(grid, expected(site, query, lambda one: inside(one, west, south, east, north)))

    drag(grid, (0.6, 0.4), (0.45, 0.1))  # the other way round is the same box
    assert edges(grid) == pytest.approx([west, south, east, north], abs=0.11)

    panel(grid).get_by_label("North").fill(str(south - 1))
    expect(panel(grid)).to_contain_text("South must not be greater than north.")
    expect(grid.locator("[data-filters-bar]")).to_be_hidden()
    panel(grid).get_by_label("North").fill("90")
    expect_shown(grid, expected(site, query, lambda one: inside(one, west, south, east, 90)))
    panel(grid).get_by_role("button", name="Clear the box").click()
    expect(grid.locator("[data-filters-bar]")).to_be_hidden()
    assert grid.locator("[data-map-boxes] rect").count() == 0


def a_box_across_the_180th_meridian(site: Site, query: int, grid: Page) -> None:
    for name, value in (("West", 165), ("South", -50), ("East", -175), ("North", -30)):
        panel(grid).get_by_label(name).fill(str(value))
    crossing = expected(site, query, lambda one: inside(one, 165, -50, -175, -30))
    expect_shown(grid, crossing)

    panel(grid).get_by_role("button", name="Clear the box").click()
    grid.get_by_role("button", name="Closer").click()
    grid.get_by_role("button", name="Move").click()
    drag(grid, (0.9, 0.3), (0.1, 0.3))  # a view of 180 degrees moves by 144 to the east
    drag(grid, (0.5, 0.8), (0.3, 0.2))
    grid.get_by_role("button", name="Move").click()
    drag(grid, (0.1, 0.05), (0.95, 0.95))
    west, south, east, north = edges(grid)
    assert west > 0 > east
    assert south < -40 < north
    expect_shown(grid, expected(site, query, lambda one: inside(one, west, south, east, north)))


def nothing_that_passes(site: Site, query: int, grid: Page) -> None:
    for name, value in (("West", 0), ("South", -90), ("East", 1), ("North", -89)):
        panel(grid).get_by_label(name).fill(str(value))
    expect(grid.locator("[data-filters-count]")).to_have_text("No candidate matches the filters")
    expect(grid.locator("[data-stage]")).to_contain_text("No candidate matches the filters.")


def test_each_filter_shows_what_passes_and_is_cleared(site: Site, query: int, grid: Page) -> None:
    for use in (
        months,
        dates,
        licences,
        species,
        judged_and_flagged,
        nothing_that_passes,
        a_box_drawn,
        a_box_across_the_180th_meridian,
    ):
        use(site, query, grid)
        if use != a_box_drawn:  # which was cleared
            panel(grid).get_by_role("button", name="Clear all").click()
        expect(grid.locator("[data-filters-bar]")).to_be_hidden()
        expect(tile(grid, 4)).to_be_visible()


def test_several_filters_together_and_none_moves_a_counter(
    site: Site, query: int, grid: Page
) -> None:
    before = counters(grid), site.progress("ann", query)
    panel(grid).get_by_role("button", name="March").click()
    panel(grid).get_by_role("button", name="April").click()
    panel(grid).get_by_label("North").fill("0")
    panel(grid).get_by_label("South").fill("-90")
    panel(grid).get_by_label("West").fill("-180")
    panel(grid).get_by_label("East").fill("180")
    south = expected(
        site, query, lambda one: one["observed_at"][5:7] in ("03", "04") and one["latitude"] <= 0
    )
    expect_shown(grid, south)
    assert (counters(grid), site.progress("ann", query)) == before
    expect(panel(grid)).to_contain_text("never what the stop rule counts")

    panel(grid).get_by_role("button", name="Close the filters").click()
    expect(panel(grid)).to_be_hidden()
    grid.locator("[data-filters-bar]").get_by_role("button", name="Clear").click()
    expect(grid.locator("[data-filters-bar]")).to_be_hidden()
    expect(tile(grid, 4)).to_be_visible()  # where one was before
    assert (counters(grid), site.progress("ann", query)) == before
    grid.keyboard.press("/")
    expect(grid.locator("[data-filters-count]")).to_have_text(f"All {DEPTH} candidates shown")
    expect(panel(grid).get_by_role("button", name="March")).to_have_attribute(
        "aria-pressed", "false"
    )
    expect(panel(grid).get_by_label("North")).to_have_value("")


def test_what_is_labeled_while_filtered_counts_in_the_list(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("an animal to label under a filter")
    page = log_in("ann")
    open_label_page(page, site, query)
    press(page, "n", 2)
    page.keyboard.press("/")
    panel(page).get_by_role("button", name="July").click()
    july = expected(site, query, lambda one: one["observed_at"][5:7] == "07")
    expect(page.locator("[data-filters-count]")).to_have_text(
        f"{len(july)} of {DEPTH} candidates shown"
    )
    page.keyboard.press("Escape")
    first = next(rank for rank in july if rank > 2)
    expect(page.locator("[data-single]")).to_have_attribute("data-painted", str(first))
    page.keyboard.press("n")
    second = next(rank for rank in july if rank > first)
    expect(page.locator("[data-single]")).to_have_attribute("data-painted", str(second))
    expect(page.locator("[data-show=judged]").first).to_have_text("3")
    streak = 3 if first == 3 else 2  # beyond the gap it doesn't count yet
    expect(page.locator("[data-show=streak]").first).to_have_text(str(streak))
    page.locator("[data-filters-bar]").get_by_role("button", name="Clear").click()
    page.keyboard.press("/")
    panel(page).get_by_role("group", name="Your label").get_by_label("Labeled", exact=True).check()
    expect(page.locator("[data-filters-count]")).to_have_text(f"3 of {DEPTH} candidates shown")


def test_without_a_connection_what_is_shown_stays(site: Site, query: int, grid: Page) -> None:
    panel(grid).get_by_role("button", name="May").click()
    may = expected(site, query, lambda one: one["observed_at"][5:7] == "05")
    expect_shown(grid, may)
    grid.context.set_offline(True)
    panel(grid).get_by_role("button", name="June").click()
    expect(grid.locator("[data-filters-count]")).to_contain_text("There is no connection")
    assert is_a_page_of(may, ranks(grid))
    grid.context.set_offline(False)
    panel(grid).get_by_role("button", name="June").click()
    expect_shown(grid, may)


def test_on_a_narrow_phone_by_touch(site: Site, log_in: Callable[..., Page], query: int) -> None:
    page = log_in("ann", viewport=NARROW, has_touch=True, is_mobile=True, color_scheme="dark")
    open_grid(page, site, "ann", query, size=12)
    page.get_by_role("button", name="Filters").first.tap()
    expect(page.locator(".filters-license").first).to_be_attached()
    wrong = violations(page) + wider_than_window(page)
    panel(page).get_by_role("button", name="May").tap()
    words = f"of {DEPTH} candidates shown"
    expect(page.locator("[data-filters-count]")).to_contain_text(words)
    wrong += violations(page) + wider_than_window(page)
    small = (
        panel(page)
        .locator("button:not([disabled])")
        .locator("visible=true")
        .evaluate_all(
            "all => all.filter(one => one.getBoundingClientRect().height < 44)"
            ".map(one => one.textContent)"
        )
    )
    panel(page).get_by_role("button", name="Close the filters").tap()
    wrong += violations(page) + wider_than_window(page)
    page.locator("[data-filters-bar]").get_by_role("button", name="Clear").tap()
    expect(page.locator("[data-filters-bar]")).to_be_hidden()
    assert (wrong, small) == ([], [])


def test_pictures_under_the_filters_are_not_submitted(grid: Page, site: Site, query: int) -> None:
    before = site.progress("ann", query)["judged"]
    grid.set_viewport_size({"width": 700, "height": 760})
    unlabeled = grid.locator("[name=filter-judged][value=no]")
    unlabeled.check()
    expect(grid.locator("[data-filters-count]")).to_contain_text(f" of {DEPTH} candidates shown")
    expect(unlabeled).to_be_focused()
    grid.get_by_role("heading", name="Filters").click()
    grid.keyboard.press("Enter")
    expect(grid.locator("[data-hint]")).to_contain_text("Nothing was submitted")
    assert site.progress("ann", query)["judged"] == before

"""The studio's filters: each narrows what is shown to what the API tells, none moves a counter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.e2e import tiles
from tests.e2e.conftest import NARROW
from tests.e2e.labeling import open_label_page, press, shown, wait_painted
from tests.e2e.tiles import NOT, open_grid, ranks, tile, wait_seen
from tests.processes import wait_for
from tests.site import Site
from tests.worlds import DEPTH

pytestmark = pytest.mark.e2e

SIZE = 24
Candidate = dict[str, Any]


def panel(page: Page) -> Locator:
    return page.locator("[data-filters]")


def clear(page: Page) -> None:
    panel(page).get_by_role("button", name="Clear all").click()
    expect(page.locator("[data-filters-bar]")).to_be_hidden()


class Filtered:
    """A list under filters: what the API tells of its candidates, and what the page shows."""

    def __init__(self, page: Page, found: list[Candidate]) -> None:
        self.page = page
        self.found = found

    def passing(self, passes: Callable[[Candidate], Any]) -> list[int]:
        """The ranks whose candidate passes."""
        return [one["rank"] for one in self.found if passes(one)]

    def shows(self, passes: Callable[[Candidate], Any]) -> None:
        """Exactly the candidates that pass are shown, and the page says how many they are."""
        wanted = self.passing(passes)
        assert 0 < len(wanted) < DEPTH
        words = f"{len(wanted)} of {DEPTH} candidates shown"
        expect(self.page.locator("[data-filters-count]")).to_have_text(words)
        expect(self.page.locator("[data-filters-bar]")).to_contain_text(f"{words}: ")
        wait_for(lambda: self.is_page_of(wanted), seconds=15, what=f"a page of {wanted}")

    def is_page_of(self, wanted: list[int]) -> bool:
        """Whether the tiles are candidates of `wanted` one after the other, as many as fit."""
        on = ranks(self.page)
        if not on or on[0] not in wanted:
            return False
        first = wanted.index(on[0])
        return on == wanted[first : first + SIZE]


def month(*numbers: str) -> Callable[[Candidate], bool]:
    return lambda one: one["observed_at"][5:7] in numbers


def at(ranks: list[int]) -> Callable[[Candidate], bool]:
    return lambda one: one["rank"] in ranks


def inside(west: float, south: float, east: float, north: float) -> Callable[[Candidate], bool]:
    def passes(one: Candidate) -> bool:
        across = one["longitude"] >= west or one["longitude"] <= east
        between = west <= one["longitude"] <= east
        wanted = across if west > east else between
        return bool(wanted and south <= one["latitude"] <= north)

    return passes


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


def test_each_filter_shows_what_passes_and_none_moves_a_counter(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("an animal near the water, to filter")
    tiles.label(site, "ann", query, dict.fromkeys((1, 2, 3), NOT))
    found = site.candidates("ann", query)["results"]
    for rank in (2, 5):
        image = found[rank - 1]["image"]
        site.api("ann", "POST", f"/api/images/{image}/flags/", {"kind": "poor_quality"})
    page = log_in("ann")
    open_grid(page, site, "ann", query, size=SIZE)
    page.keyboard.press("/")
    expect(panel(page)).to_be_visible()
    list_ = Filtered(page, found)

    def counters() -> list[str]:
        names = ("judged", "candidates", "relevant", "streak", "remaining")
        return [shown(page, name).text_content() or "" for name in names]

    before = counters(), site.progress("ann", query)

    # Months; without a connection what is shown stays.
    panel(page).get_by_role("button", name="May").click()
    list_.shows(month("05"))
    panel(page).get_by_role("button", name="November").click()
    list_.shows(month("05", "11"))
    expect(page.locator("[data-filters-bar]")).to_contain_text("May, November")
    page.context.set_offline(True)
    panel(page).get_by_role("button", name="June").click()
    expect(page.locator("[data-filters-count]")).to_contain_text("There is no connection")
    assert list_.is_page_of(list_.passing(month("05", "11")))
    page.context.set_offline(False)
    panel(page).get_by_role("button", name="June").click()
    list_.shows(month("05", "11"))
    clear(page)

    # Dates; what can't be asked changes nothing.
    days = sorted(one["observed_at"][:10] for one in found)
    expect(panel(page)).to_contain_text(f"From {days[0]} to {days[-1]}")
    first, last = days[40], days[90]
    panel(page).get_by_label("From").fill(first)
    list_.shows(lambda one: one["observed_at"][:10] >= first)
    panel(page).get_by_label("To", exact=True).fill(last)
    list_.shows(lambda one: first <= one["observed_at"][:10] <= last)
    panel(page).get_by_label("To", exact=True).fill(days[0])
    expect(page.locator("[data-filters-count]")).to_have_class("filters-count problem")
    assert list_.is_page_of(list_.passing(lambda one: first <= one["observed_at"][:10] <= last))
    clear(page)

    names = sorted({one["license"] for one in found})
    boxes = page.locator(".filters-license")
    expect(boxes).to_have_count(len(names))
    for name in names[:2]:
        count = sum(one["license"] == name for one in found)
        expect(boxes.filter(has_text=name)).to_contain_text(str(count))
        panel(page).get_by_label(name).check()
    list_.shows(lambda one: one["license"] in names[:2])
    clear(page)

    species = [one["species"]["common_name"] for one in found]
    panel(page).get_by_role("combobox").click()
    panel(page).get_by_role("combobox").press_sequentially("hopper marsh")
    option = page.get_by_role("option", name="Marsh Hopper")
    expect(option).to_contain_text(f"{species.count('Marsh Hopper')} candidates")
    option.click()
    list_.shows(lambda one: one["species"]["common_name"] == "Marsh Hopper")
    panel(page).locator(".chip-name").click()
    panel(page).get_by_role("button", name="Family Paludisaltidae").click()
    hoppers = ("Marsh Hopper", "Moss Hopper", "Reed Hopper")
    list_.shows(lambda one: one["species"]["common_name"] in hoppers)
    clear(page)

    for group, name, passing in (
        ("Your label", "Labeled", [1, 2, 3]),
        ("Flags", "Flagged", [2]),
        ("Your label", "All", [2, 5]),
        ("Flags", "Not flagged", [1, 3, 4, *range(6, DEPTH + 1)]),
    ):
        panel(page).get_by_role("group", name=group).get_by_label(name, exact=True).check()
        list_.shows(at(passing))
    clear(page)

    drag(page, (0.45, 0.1), (0.6, 0.4))
    expect(panel(page).get_by_label("West")).not_to_have_value("")
    west, south, east, north = edges(page)
    assert edges(page) == pytest.approx([-18, 18, 36, 72], abs=4)
    list_.shows(inside(west, south, east, north))
    drag(page, (0.6, 0.4), (0.45, 0.1))  # the other way round is the same box
    assert edges(page) == pytest.approx([west, south, east, north], abs=0.11)
    panel(page).get_by_label("North").fill(str(south - 1))
    expect(panel(page)).to_contain_text("South must not be greater than north.")
    expect(page.locator("[data-filters-bar]")).to_be_hidden()
    panel(page).get_by_role("button", name="Clear the box").click()
    expect(page.locator("[data-map-boxes] rect")).to_have_count(0)

    # A box across the 180th meridian, typed and drawn.
    crossing = (165, -50, -175, -30)
    for name, value in zip(("West", "South", "East", "North"), crossing, strict=True):
        panel(page).get_by_label(name).fill(str(value))
    list_.shows(inside(*crossing))
    panel(page).get_by_role("button", name="Clear the box").click()
    page.get_by_role("button", name="Closer").click()
    page.get_by_role("button", name="Move").click()
    drag(page, (0.9, 0.3), (0.1, 0.3))  # a view of 180 degrees moves by 144 to the east
    drag(page, (0.5, 0.8), (0.3, 0.2))
    page.get_by_role("button", name="Move").click()
    drag(page, (0.1, 0.05), (0.95, 0.95))
    west, south, east, north = edges(page)
    assert west > 0 > east
    list_.shows(inside(west, south, east, north))
    # Together with others.
    panel(page).get_by_role("button", name="March").click()
    list_.shows(lambda one: inside(west, south, east, north)(one) and month("03")(one))
    assert (counters(), site.progress("ann", query)) == before
    expect(panel(page)).to_contain_text("never what the stop rule counts")
    clear(page)

    for name, value in (("West", 0), ("South", -90), ("East", 1), ("North", -89)):
        panel(page).get_by_label(name).fill(str(value))
    expect(page.locator("[data-filters-count]")).to_have_text("No candidate matches the filters")
    expect(page.locator("[data-stage]")).to_contain_text("No candidate matches the filters.")
    panel(page).get_by_role("button", name="Close the filters").click()
    expect(panel(page)).to_be_hidden()
    page.locator("[data-filters-bar]").get_by_role("button", name="Clear").click()
    expect(page.locator("[data-filters-bar]")).to_be_hidden()
    expect(tile(page, 4)).to_be_visible()  # where one was before
    assert (counters(), site.progress("ann", query)) == before


def test_under_a_filter_only_what_it_shows_is_labeled_and_it_counts_in_the_list(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a stork on a roof, under a filter")
    found = site.candidates("ann", query)["results"]
    all_summer = [one["rank"] for one in found if month("05", "06", "07")(one)]
    summer = [rank for rank in all_summer if rank > 2]
    page = log_in("ann")
    open_label_page(page, site, query)
    press(page, "n", 2)
    page.keyboard.press("/")
    for name in ("May", "June", "July"):
        panel(page).get_by_role("button", name=name).click()
    count = f"{len(all_summer)} of {DEPTH} candidates shown"
    expect(page.locator("[data-filters-count]")).to_have_text(count)
    page.keyboard.press("Escape")
    page.keyboard.press("End")  # each choice kept the place
    wait_painted(page, summer[0])
    page.keyboard.press("n")
    wait_painted(page, summer[1])
    expect(shown(page, "judged")).to_have_text("3")
    streak = 3 if summer[0] == 3 else 2  # beyond the gap it doesn't count yet
    expect(shown(page, "streak")).to_have_text(str(streak))

    page.keyboard.press("g")
    wait_seen(page, summer[1])
    page.get_by_role("slider", name="Images on a page").fill("12")
    assert wait_seen(page, summer[1]) == summer[1:13]
    tile(page, summer[4]).click()
    page.keyboard.press("Enter")
    assert wait_seen(page, summer[13])[0] == summer[13]
    expected = dict.fromkeys((1, 2, *summer[:13]), NOT) | {summer[4]: "relevant"}
    tiles.wait_stored(site, "ann", query, sorted(expected.items()))

    # Images under the panel aren't seen, so they aren't submitted.
    page.set_viewport_size({"width": 700, "height": 760})
    page.keyboard.press("/")
    unlabeled = page.locator("[name=filter-judged][value=no]")
    unlabeled.check()
    expect(unlabeled).to_be_focused()
    page.get_by_role("heading", name="Filters").click()
    page.keyboard.press("Enter")
    expect(page.locator("[data-hint]")).to_contain_text("Nothing was submitted")
    tiles.wait_saved(page)
    assert site.progress("ann", query)["judged"] == len(expected)
    page.locator("[name=filter-judged][value=relevant]").check()
    expect(page.locator("[data-filters-count]")).to_have_text(f"1 of {DEPTH} candidates shown")


def test_on_a_narrow_phone_by_touch(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("an animal to filter by touch")
    page = log_in("ann", viewport=NARROW, has_touch=True, is_mobile=True)
    held: list[Route] = []
    page.route("**/facets/", lambda route: held.append(route))
    open_grid(page, site, "ann", query, size=12)
    page.get_by_role("button", name="Filters").first.tap()
    # What is told about the list comes late, and moves nothing under a finger.
    may, west = panel(page).get_by_role("button", name="May"), panel(page).get_by_label("West")
    before = (may.bounding_box(), west.bounding_box())
    # Events come while something is asked of the page.
    wait_for(lambda: (page.title(), held)[1], what="the question for what the list holds")
    held[0].continue_()
    expect(panel(page)).to_contain_text("images without a date match no date")
    assert (may.bounding_box(), west.bounding_box()) == before
    may.tap()
    expect(page.locator("[data-filters-count]")).to_contain_text(f"of {DEPTH} candidates shown")
    controls = panel(page).locator("button:not([disabled])").locator("visible=true")
    small = controls.evaluate_all(
        "all => all.filter(one => one.getBoundingClientRect().height < 44)"
        ".map(one => one.textContent)"
    )
    assert small == []
    panel(page).get_by_role("button", name="Close the filters").tap()
    page.locator("[data-filters-bar]").get_by_role("button", name="Clear").tap()
    expect(page.locator("[data-filters-bar]")).to_be_hidden()

"""Steps that tests of the grid share."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.e2e.labeling import wait_same
from tests.site import Site

NOT = "not_relevant"
SHOWN = '[data-tiles] [data-rank]:not([data-rank=""])'


def open_grid(
    page: Page, site: Site, user: str, query: int, size: int = 12, **view: Any
) -> list[int]:
    """The grid of a query as the user finds it, everything on screen; its ranks."""
    prefer(site, user, view="grid", grid_size=size, **view)
    page.goto(f"{site.url}/queries/{query}/label/")
    return wait_seen(page)


def prefer(site: Site, user: str, **view: Any) -> None:
    """Set how the labeling page is found."""
    site.api(user, "PUT", "/api/preferences/labeling/", {"view": view})


def tile(page: Page, rank: int) -> Locator:
    return page.locator(f'[data-tiles] [data-rank="{rank}"]')


def marks(page: Page) -> dict[int, str]:
    """What the tiles show, by rank; empty for what is not marked."""
    found = page.locator(SHOWN).evaluate_all(
        "all => all.map(one => [one.dataset.rank, one.dataset.mark])"
    )
    return {int(rank): mark for rank, mark in found}


def marked(page: Page) -> dict[int, str]:
    """Of these the ones that show a mark or a label."""
    return {rank: mark for rank, mark in marks(page).items() if mark}


def ranks(page: Page) -> list[int]:
    return list(marks(page))


def wait_seen(page: Page, first: int | None = None) -> list[int]:
    """Wait until a whole page of tiles (one that begins at `first`) is on screen; its ranks."""
    page.wait_for_function(
        """([shown, first]) => {
          const tiles = [...document.querySelectorAll(shown)];
          return tiles.length > 0 && (first === null || Number(tiles[0].dataset.rank) === first)
            && tiles.every((tile) => "seen" in tile.dataset);
        }""",
        arg=[SHOWN, first],
    )
    return ranks(page)


def pictures(page: Page) -> dict[int, str]:
    """The path of the thumbnail that each tile shows, by rank."""
    found = page.locator(SHOWN).evaluate_all(
        "all => all.map(one => [one.dataset.rank, one.querySelector('img').getAttribute('src')])"
    )
    return {int(rank): path for rank, path in found}


def candidates(site: Site, user: str, query: int) -> dict[int, dict[str, Any]]:
    """The list as the API has it, by rank."""
    return {one["rank"]: one for one in site.candidates(user, query)["results"]}


def stored(site: Site, user: str, query: int) -> list[tuple[int, str]]:
    """One's labels in the database by rank, in the list's order."""
    found = candidates(site, user, query).values()
    return [(one["rank"], one["relevance"]) for one in found if one["relevance"]]


def wait_stored(site: Site, user: str, query: int, expected: list[tuple[int, str]]) -> None:
    """Wait until one's labels in the database are exactly these, as `stored` gives them."""
    wait_same(lambda: stored(site, user, query), expected)


def wait_saved(page: Page) -> None:
    """Wait until nothing waits to be sent."""
    expect(page.locator("[data-saved]")).to_contain_text("saved")
    expect(page.locator("[data-saved].waiting")).to_have_count(0)


def label(
    site: Site, user: str, query: int, relevances: dict[int, str], source: str = "list"
) -> None:
    """Label ranks over the API."""
    images = candidates(site, user, query)
    marks = [(images[rank]["image"], relevance) for rank, relevance in relevances.items()]
    site.judge(user, query, marks, source)


def all_not(first: int, last: int) -> dict[int, str]:
    """A page on which nothing is marked: relevance by rank."""
    return dict.fromkeys(range(first, last + 1), NOT)

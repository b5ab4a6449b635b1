"""The single view of the labelling page, as tests work on it."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import Site


def open_label_page(page: Page, site: Site, query: int) -> None:
    """Open the page and wait for a picture."""
    page.goto(f"{site.url}/queries/{query}/label/")
    expect(page.locator("[data-painted]")).to_be_visible()


def shown(page: Page, name: str) -> Locator:
    """A number or text of the page by its name, e.g. "judged"."""
    return page.locator(f"[data-show='{name}']").first


def at_rank(page: Page, rank: int) -> None:
    """Wait until the picture of this rank is on the screen; before, keys judge nothing."""
    expect(page.locator(f"[data-painted='{rank}']")).to_be_visible()


def judge(page: Page, keys: str) -> None:
    """Press one key for each candidate, once its picture is on the screen."""
    for key in keys:
        rank = int(shown(page, "rank").inner_text())
        at_rank(page, rank)
        page.keyboard.press(key)
        expect(shown(page, "rank")).not_to_have_text(str(rank))

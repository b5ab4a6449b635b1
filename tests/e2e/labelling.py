"""Steps that tests of the labelling page share."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import Site

PAINTED = "document.querySelector('[data-single]').dataset.painted"


def open_label_page(page: Page, site: Site, query: int) -> None:
    """The labelling page of a query, with the first picture painted."""
    page.goto(f"{site.url}/queries/{query}/label/")
    expect(page.locator("[data-single][data-painted]")).to_be_visible()


def shown(page: Page, name: str) -> Locator:
    """Where the page shows a number or a word by this name."""
    return page.locator(f"[data-show='{name}']").first


def painted(page: Page) -> int:
    """The rank whose picture is on the screen."""
    return int(page.evaluate(PAINTED))


def wait_painted(page: Page, rank: int) -> None:
    """Wait until the picture of this rank is on the screen."""
    expect(page.locator("[data-single]")).to_have_attribute("data-painted", str(rank))


def press(page: Page, key: str, times: int = 1) -> None:
    """Press a key once for each candidate, after the next one is on the screen; stops at a question
    or at the list's end.
    """
    for _ in range(times):
        before = page.evaluate(PAINTED)
        page.keyboard.press(key)
        page.wait_for_function(
            "before => { const root = document.querySelector('#studio');"
            f" const now = {PAINTED};"
            " return (now && now !== before) || root.dataset.state === 'end'"
            " || document.querySelector('dialog[open]'); }",
            arg=before,
        )
        if page.locator("dialog[open]").count():
            return


def saved(page: Page, timeout: float = 15_000) -> None:
    """Wait until nothing waits to be sent."""
    expect(page.locator("[data-saved]")).to_contain_text("All saved", timeout=timeout)


def box(locator: Locator) -> dict[str, Any]:
    """Where an element is on the screen; it must be there."""
    found = locator.bounding_box()
    assert found is not None
    return dict(found)

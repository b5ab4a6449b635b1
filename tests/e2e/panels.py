"""Steps that tests of the studio's panels share."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import Site
from tests.processes import wait_for


def open_studio(page: Page, site: Site, query: int) -> None:
    """The labelling page of a query in single view, with the first picture painted."""
    page.goto(f"{site.url}/queries/{query}/label/")
    expect(page.locator("#studio[data-state=ready]")).to_be_visible()
    # The view is remembered, also from another test.
    page.locator("[data-view-choice=single]").click()
    expect(page.locator("[data-single][data-painted]")).to_be_visible()


def press(page: Page, key: str, times: int = 1) -> None:
    """Label one image after the other, each once its picture stands there."""
    for _ in range(times):
        before = page.locator("[data-single]").get_attribute("data-painted")
        page.keyboard.press(key)
        page.wait_for_function(
            "before => { const now = document.querySelector('[data-single]').dataset.painted;"
            " return now && now !== before; }",
            arg=before,
        )


def own(site: Site, user: str, query: int) -> dict[int, tuple[str, str]]:
    """Relevance and source of one's judgments by image, as the database has them."""
    found = site.api(user, "GET", f"/api/queries/{query}/judgments/?limit=500")["results"]
    return {one["image"]: (one["relevance"], one["source"]) for one in found}


def wait_stored(site: Site, user: str, query: int, expected: dict[int, tuple[str, str]]) -> None:
    """Wait until one's judgments in the database are exactly these."""
    wait_for(
        lambda: own(site, user, query) == expected,
        seconds=20,
        what=f"{expected} in place of {own(site, user, query)}",
    )


def focused(page: Page) -> Any:
    """Which element has the focus, by what tells it apart."""
    return page.evaluate(
        "() => { const at = document.activeElement;"
        " return at.dataset.image || at.dataset.do || at.id || at.tagName; }"
    )


def fits(page: Page, dialog: Locator) -> bool:
    """Whether a dialog lies inside the window and nothing of it makes one scroll sideways."""
    return bool(
        dialog.evaluate(
            "dialog => { const box = dialog.getBoundingClientRect();"
            " return box.left >= 0 && box.right <= innerWidth && box.top >= 0"
            " && box.bottom <= innerHeight + 1 && dialog.scrollWidth <= dialog.clientWidth"
            " && document.documentElement.scrollWidth <= innerWidth; }"
        )
    )

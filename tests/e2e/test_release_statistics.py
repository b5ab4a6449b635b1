"""The statistics of a release and the draw of the splits, in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.axe import violations
from tests.e2e.conftest import DESKTOP, NARROW
from tests.processes import wait_for
from tests.site import Site

pytestmark = pytest.mark.e2e


def complete_query(site: Site, text: str, **fields: Any) -> int:
    """A complete query whose first six candidates two people judged; its query id."""
    query = site.open_query(text, **fields)
    images = [one["image"] for one in site.candidates("ada", query, limit=6)["results"]]
    for user, step in (("ann", 2), ("otto", 3)):
        relevances = ["not_relevant" if place % step else "relevant" for place in range(6)]
        site.judge(user, query, zip(images, relevances, strict=True))
    site.api("ada", "PATCH", f"/api/queries/{query}/", {"state": "complete", "note": "Enough."})
    return int(site.api("ada", "GET", f"/api/queries/{query}/")["query_id"])


@pytest.fixture(scope="module")
def release(site: Site) -> int:
    """A made release of complete queries of two categories."""
    for number in range(3):
        category = "Species ID" if number else "Human Impact"
        complete_query(site, f"a bird number {number}", category=category)
    made = site.api("ada", "POST", "/api/releases/", {"name": "statistics"})

    def done() -> bool:
        state = site.api("rita", "GET", f"/api/releases/{made['id']}/")["state"]
        assert state in ("queued", "running", "done")
        return bool(state == "done")

    wait_for(done, what="the release")
    return int(made["id"])


def test_the_charts_fit_a_phone_and_a_desktop(
    site: Site, log_in: Callable[..., Page], release: int
) -> None:
    page = log_in("rita", viewport=NARROW, color_scheme="dark")
    page.goto(f"{site.url}/releases/{release}/statistics/")
    charts = page.locator(".statistic-chart svg")
    expect(charts.nth(7)).to_be_visible()
    for size in (NARROW, DESKTOP):
        page.set_viewport_size(size)  # type: ignore[arg-type]
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        widths = page.evaluate(
            "[...document.querySelectorAll('.statistic-chart svg')].map((svg) => {"
            "  const card = svg.closest('.card').getBoundingClientRect();"
            "  const box = svg.getBoundingClientRect();"
            "  return box.left >= card.left && box.right <= card.right && box.width > 150;"
            "})"
        )
        assert widths == [True] * charts.count()
    # The smallest letters on a phone, in pixels of the screen.
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    smallest = page.evaluate(
        "Math.min(...[...document.querySelectorAll('.statistic-chart text')].map((text) => "
        "parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a || 99))"
    )
    assert smallest >= 9
    land = page.locator(".world-map .land").bounding_box()
    assert land is not None
    assert land["width"] > 200  # the land is there, which a picture of its own holds
    assert violations(page) == []
    for summary in page.locator(".statistic summary").all():
        summary.click()
    expect(page.locator(".statistic tbody tr").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    assert violations(page) == []


def test_a_draw_is_looked_at_and_done_by_keyboard(
    site: Site, log_in: Callable[..., Page], release: int
) -> None:
    page = log_in("ada", "/", viewport=NARROW)
    page.get_by_role("link", name="Draw splits").click()
    expect(page.get_by_role("heading", name="Draw the splits", level=1)).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    assert violations(page) == []
    page.get_by_label("Share for validation").fill("0.5")
    page.get_by_label("Seed").fill("7")
    page.get_by_label("Draw all again").check()
    page.get_by_role("button", name="Preview the draw").press("Enter")
    expect(page.get_by_text("Nothing has changed yet.")).to_be_visible()
    shown = page.locator("tfoot td.numeric").all_inner_texts()
    assert abs(int(shown[0]) - int(shown[1])) <= 1
    assert violations(page) == []
    page.get_by_role("button", name="Apply this draw").press("Enter")
    expect(page.get_by_role("status").first).to_contain_text(f"{shown[0]} for validation")
    found = site.api("ada", "GET", "/api/queries/?state=complete&split=val&limit=1")
    assert str(found["count"]) == shown[0]

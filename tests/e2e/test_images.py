"""The page of the images in the browser: search, filters, thousands of rows, a selection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.e2e.axe import violations, wider_than_window
from tests.e2e.conftest import NARROW
from tests.processes import wait_for
from tests.site import Site

pytestmark = pytest.mark.e2e

RESULTS = "**/api/images/matches/?*"
MANY = 3000
#: Copies of the images' rows, in a data set of their own.
COPY_ROWS = """
INSERT INTO retrieval_image (id, dataset, source_id, file_name, sha256, format, width, height,
    size_bytes, species_id, license, license_url, rights_holder, created_at, root_id)
SELECT 1000000 + n, 'many', n, file_name, sha256, format, width, height, size_bytes, species_id,
    license, license_url, rights_holder, now(), root_id
  FROM generate_series(1, %s) n
  JOIN (SELECT *, row_number() OVER (ORDER BY id) AS place FROM retrieval_image LIMIT 200) i
    ON place = 1 + n %% 200
"""
#: In one go: keys that a busy machine holds up are several texts to search for.
TYPE = """(field, text) => {
  for (const letter of text) {
    field.value += letter;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
}"""


def shown(page: Page) -> list[int]:
    """The ids of the tiles in the document."""
    found: list[int] = page.locator(".tile[data-id]").evaluate_all(
        "all => all.map((one) => Number(one.dataset.id))"
    )
    return found


def status(page: Page) -> Any:
    return page.locator("[data-status]")


def expected(site: Site, address: str) -> list[int]:
    return list(site.api("ada", "GET", f"/api/images/matches/?limit=500&{address}")["ids"])


def test_results_come_while_one_types_and_filters(site: Site, log_in: Callable[..., Page]) -> None:
    """The last answer wins, the address holds all, and what goes wrong can be tried again."""
    page = log_in("ada", "/corpus/")
    expect(status(page)).to_have_text("260 images")
    field = page.get_by_label("Search by a text")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route) if "a+frog" in route.request.url else route.continue_()

    page.route(RESULTS, hold)
    field.evaluate(TYPE, "a frog")
    expect(status(page)).to_contain_text("Searching …")
    expect(page.locator("[data-grid]")).to_have_attribute("aria-busy", "true")
    field.fill("a bird at night")
    expect(status(page)).to_contain_text("260 images · exact")
    for route in held:
        route.continue_()
    best = expected(site, "text=a+bird+at+night")
    wait_for(lambda: best[: len(shown(page))] == shown(page), what="the images of the last text")
    expect(page).to_have_url(f"{site.url}/corpus/?text=a+bird+at+night")
    expect(page).to_have_title("a bird at night · Images · Inquire Annotator")
    expect(page.locator(".tile-score").first).to_contain_text("0.")
    assert violations(page) == []

    page.get_by_label("Only these species").press_sequentially("marsh hopper")
    page.get_by_role("option").first.click()
    species = site.api("ada", "GET", "/api/species/?search=marsh+hopper")["results"][0]["id"]
    expect(page).to_have_url(f"{site.url}/corpus/?text=a+bird+at+night&species={species}")
    few = expected(site, f"text=a+bird+at+night&species={species}")
    wait_for(lambda: shown(page) == few, what="the species' images")
    page.go_back()
    wait_for(lambda: best[: len(shown(page))] == shown(page), what="the images before")
    page.go_forward()
    wait_for(lambda: shown(page) == few, what="the species' images again")
    page.get_by_role("button", name="Remove the filter").click()
    wait_for(lambda: best[: len(shown(page))] == shown(page), what="all images")

    page.route(RESULTS, lambda route: route.abort())
    field.fill("a turtle")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("The server can’t be reached.")
    page.unroute(RESULTS)
    alert.get_by_role("button", name="Try again").click()
    expect(status(page)).to_contain_text("260 images · exact")
    # What is made is what the field says, also before its results are there.
    field.fill("a hopper at dusk")
    page.get_by_role("button", name="Make this a query").click()
    expect(page.get_by_label("Query text")).to_have_value("a hopper at dusk")


def test_thousands_scroll_and_are_selected(site: Site, log_in: Callable[..., Page]) -> None:
    with site.served.database() as cursor:
        cursor.execute(COPY_ROWS, [MANY])
    page = log_in("rita", "/corpus/?dataset=many")
    expect(status(page)).to_have_text("3,000 images")
    assert len(shown(page)) < 150
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    wait_for(lambda: (shown(page) or [0])[-1] == 1_000_000 + MANY, what="the last image")
    expect(page.locator(".tile img[src]").last).to_be_visible()
    assert len(shown(page)) < 150
    page.evaluate("window.scrollTo(0, 0)")
    wait_for(lambda: (shown(page) or [0])[0] == 1_000_001, what="the first image")

    bar = page.locator("[data-selected]")
    page.get_by_label("Search by a text").press("ArrowDown")
    page.keyboard.press("Space")
    expect(bar).to_have_text("1 image selected")
    page.keyboard.press("Shift+ArrowRight")
    expect(bar).to_have_text("2 images selected")
    page.locator(".tile").nth(7).locator("a").click(modifiers=["Shift"])
    expect(bar).to_have_text("8 images selected")
    page.locator(".tile").nth(3).locator("a").click()
    expect(bar).to_have_text("7 images selected")
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(bar).to_be_hidden()
    page.keyboard.press("Control+a")
    expect(bar).to_have_text("3,000 images selected")
    sent: list[Any] = []

    def answer(route: Route) -> None:
        sent.append(route.request.post_data_json)
        skipped = [{"id": 1_000_002, "why": "flagged already"}]
        route.fulfill(json={"done": MANY - 1, "skipped": skipped})

    page.route("**/api/images/flag-many/", answer)
    page.get_by_role("button", name="Flag …").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Duplicate").check()
    dialog.get_by_label("Note").fill("a copy")
    assert violations(page) == []
    dialog.get_by_role("button", name="Flag", exact=True).click()
    expect(dialog.locator("[data-skipped]")).to_have_text("1 image: flagged already")
    assert [(len(one.pop("ids")), one) for one in sent] == [
        (MANY, {"reason": "duplicate", "note": "a copy"})
    ]
    dialog.get_by_role("button", name="Cancel").click()
    expect(bar).to_have_text("1 image selected")
    with page.expect_download() as download:
        page.locator("[data-selection]").get_by_role("button", name="CSV").click()
    assert download.value.path().read_text().splitlines()[1].startswith("1000002,")
    with site.served.database() as cursor:
        cursor.execute("DELETE FROM retrieval_image WHERE dataset = 'many'")


def test_on_a_phone_the_filters_are_a_drawer(site: Site, log_in: Callable[..., Page]) -> None:
    page = log_in("ann", "/corpus/", viewport=NARROW, color_scheme="dark")
    expect(page.locator(".tile img[src]").first).to_be_visible()
    assert not wider_than_window(page)
    assert violations(page) == []
    page.get_by_role("button", name="Filters").click()
    page.get_by_text("License", exact=True).click()
    page.locator("[data-filter=license] .filter-value").first.click()
    assert not wider_than_window(page)
    assert violations(page) == []
    page.get_by_role("button", name="Show the images").click()
    expect(page.locator("[data-chips] li")).to_have_count(1)
    page.goto(f"{site.url}/corpus/?view=species")
    assert violations(page) == []

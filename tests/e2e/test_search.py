"""Free-text search while one types: no reload, the last answer wins, by keyboard and on a phone."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.e2e.axe import violations, wider_than_window
from tests.e2e.conftest import NARROW
from tests.processes import wait_for
from tests.site import Site

pytestmark = pytest.mark.e2e

PHONE = NARROW
RESULTS = "**/search/?*part=results*"


@pytest.fixture
def problems() -> list[str]:
    """What the page's console says is wrong."""
    return []


def on_search(page: Page, site: Site, problems: list[str] | None = None) -> Locator:
    if problems is not None:
        wrong = problems.append
        page.on("console", lambda said: wrong(said.text) if said.type == "error" else None)
    page.goto(f"{site.url}/search/")
    return page.get_by_label("Text")


def status(page: Page) -> Locator:
    return page.locator("[data-search-status]")


def shown(page: Page) -> list[str]:
    """The addresses of the images, in the order of the page."""
    tiles = page.locator(".search-found .image-grid a")
    return [str(href) for href in tiles.evaluate_all("all => all.map(a => a.getAttribute('href'))")]


def expected(site: Site, text: str, query: str = "") -> list[str]:
    found = site.api("ada", "GET", f"/api/search/?text={text.replace(' ', '+')}&limit=60{query}")
    return [hit["url"] for hit in found["results"]]


def test_results_come_while_one_types_without_a_reload(
    site: Site, log_in: Callable[..., Page], problems: list[str]
) -> None:
    page = log_in("ada")
    field = on_search(page, site, problems)
    page.evaluate("window.still = 'here'")
    expect(page.get_by_text("Describe what the image should show")).to_be_visible()
    expect(page.get_by_role("button", name="Make this a query")).to_be_hidden()
    field.press_sequentially("a bird at night", delay=30)
    expect(status(page)).to_contain_text("60 best of 260 images, exact")
    expect(status(page)).to_have_attribute("role", "status")
    expect(page).to_have_url(f"{site.url}/search/?text=a+bird+at+night")
    expect(page).to_have_title("a bird at night · Search · Inquire Annotator")
    best = expected(site, "a bird at night")
    wait_for(lambda: shown(page) == best, what="the images of the whole text")
    assert page.evaluate("window.still") == "here"
    first = page.locator(".search-found img").first
    assert first.evaluate("img => img.decode().then(() => img.naturalWidth > 0)")
    expect(first).to_have_attribute("loading", "lazy")

    page.reload()
    assert shown(page) == expected(site, "a bird at night")
    field.fill("")
    expect(page.get_by_text("Describe what the image should show")).to_be_visible()
    expect(page).to_have_url(f"{site.url}/search/")
    expect(status(page)).to_have_text("")
    assert problems == []


TYPE = """(field, text) => {
  for (const letter of text) {
    field.value += letter;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
}"""


def test_one_request_for_a_word_and_none_for_the_same_again(
    site: Site, log_in: Callable[..., Page]
) -> None:
    page = log_in("ada")
    field = on_search(page, site)
    asked: list[str] = []
    page.on("request", lambda sent: asked.append(sent.url) if "part=results" in sent.url else None)
    # In one go: keys that a busy machine holds up are several texts to search for.
    field.evaluate(TYPE, "spider")
    expect(status(page)).to_contain_text("best of")
    page.get_by_role("button", name="Search").click()
    field.press("Enter")
    field.press_sequentially(" ")
    page.wait_for_timeout(400)
    texts = [parse_qs(urlsplit(url).query)["text"] for url in asked]
    assert texts == [["spider"]]


def test_the_last_answer_wins(site: Site, log_in: Callable[..., Page]) -> None:
    page = log_in("ada")
    held: list[Route] = []

    def hold(route: Route) -> None:
        text = parse_qs(urlsplit(route.request.url).query)["text"][0]
        if text == "a frog":
            held.append(route)
        else:
            route.continue_()

    page.route(RESULTS, hold)
    field = on_search(page, site)
    field.fill("a frog")
    expect(page.locator(".search-waiting li").first).to_be_visible()
    expect(status(page)).to_have_text("Searching …")
    expect(page.locator("[data-search-found]")).to_have_attribute("aria-busy", "true")
    field.fill("a fish under water")
    expect(status(page)).to_contain_text("60 best")
    for route in held:
        route.continue_()
    page.wait_for_timeout(500)
    assert len(held) == 1
    assert shown(page) == expected(site, "a fish under water")
    expect(page).to_have_url(f"{site.url}/search/?text=a+fish+under+water")
    assert page.locator("[data-search-found]").get_attribute("aria-busy") is None


def test_species_narrow_what_is_shown_and_the_query_that_is_made(
    site: Site, log_in: Callable[..., Page]
) -> None:
    page = log_in("ada")
    field = on_search(page, site)
    field.fill("a hopper on a leaf")
    expect(status(page)).to_contain_text("of 260 images, exact")
    page.get_by_label("Only these species").press_sequentially("marsh hopper")
    page.get_by_role("option").first.click()
    expect(status(page)).to_contain_text("images of the chosen species, exact")
    found = site.api("ada", "GET", "/api/species/?search=marsh+hopper")["results"][0]
    assert shown(page) == expected(site, "a hopper on a leaf", f"&species={found['id']}")
    assert parse_qs(urlsplit(page.url).query)["species"] == [str(found["id"])]
    page.locator(".chip-remove").click()
    expect(status(page)).to_contain_text("of 260 images, exact")
    # What is made is what the fields say, also before its results are there.
    page.route(RESULTS, lambda route: None)
    field.fill("a hopper at dusk")
    page.get_by_role("button", name="Make this a query").click()
    expect(page.get_by_label("Query text")).to_have_value("a hopper at dusk")


def test_by_keyboard(site: Site, log_in: Callable[..., Page]) -> None:
    page = log_in("ann")
    field = on_search(page, site)
    field.fill("a bird")
    expect(status(page)).to_contain_text("60 best")

    def place() -> int:
        return int(
            page.evaluate(
                "[...document.querySelectorAll('.image-grid a')].indexOf(document.activeElement)"
            )
        )

    columns = page.locator(".search-found .image-grid").evaluate(
        "grid => getComputedStyle(grid).gridTemplateColumns.split(' ').length"
    )
    went = []
    for key in ("Down", "Right", "Down", "Left", "Up", "End", "Right", "Home"):
        page.keyboard.press(key if key in ("End", "Home") else f"Arrow{key}")
        went.append(place())
    assert went == [0, 1, columns + 1, columns, 0, 59, 59, 0]
    page.keyboard.press("Escape")
    expect(field).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    expect(field).to_be_focused()
    page.keyboard.press("ArrowDown")
    opened = shown(page)[0]
    page.route(f"**{opened}", lambda route: route.fulfill(body="the picture"))
    page.keyboard.press("Enter")
    expect(page).to_have_url(site.url + opened)
    page.go_back()
    expect(field).to_have_value("a bird")
    assert shown(page)[0] == opened


def test_what_goes_wrong_is_said_and_can_be_tried_again(
    site: Site, log_in: Callable[..., Page]
) -> None:
    page = log_in("ann")
    field = on_search(page, site)
    page.route(RESULTS, lambda route: route.abort())
    field.fill("a turtle")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("The server can’t be reached.")
    page.unroute(RESULTS)
    page.route(RESULTS, lambda route: route.fulfill(status=500, body="<h1>Sorry</h1>"))
    alert.get_by_role("button", name="Try again").click()
    expect(alert).to_contain_text("The server answered 500.")
    page.unroute(RESULTS)
    alert.get_by_role("button", name="Try again").click()
    expect(status(page)).to_contain_text("60 best")
    expect(alert).to_have_count(0)
    page.context.clear_cookies()
    field.fill("a turtle on a beach")
    expect(alert).to_contain_text("You are logged out.")


def test_without_scripts_the_form_is_sent(site: Site, log_in: Callable[..., Page]) -> None:
    page = log_in("ann", java_script_enabled=False)
    page.goto(f"{site.url}/search/")
    page.get_by_label("Text").fill("a bird at night")
    page.get_by_role("button", name="Search").click()
    expect(page).to_have_url(f"{site.url}/search/?text=a+bird+at+night")
    expect(status(page)).to_contain_text("60 best of 260 images, exact")
    assert shown(page) == expected(site, "a bird at night")


def test_on_a_phone(site: Site, log_in: Callable[..., Page]) -> None:
    page = log_in("ann", viewport=PHONE, color_scheme="dark")
    field = on_search(page, site)
    field.fill("a snail that goes on and on " * 4)
    expect(status(page)).to_contain_text("60 best")
    assert not wider_than_window(page)
    assert violations(page) == []
    box = page.locator(".image-grid img").first.bounding_box()
    assert box is not None
    assert abs(box["width"] - box["height"]) <= 1
    assert box["y"] + 0.5 * box["height"] < PHONE["height"]

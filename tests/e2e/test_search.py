"""Free-text search while one types: no reload, the last answer wins, by keyboard and on a phone."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, Request, Route, expect

from tests.e2e.axe import violations, wider_than_window
from tests.e2e.conftest import NARROW
from tests.processes import wait_for
from tests.site import Site

pytestmark = pytest.mark.e2e

RESULTS = "**/search/?*part=results*"
#: In one go: keys that a busy machine holds up are several texts to search for.
TYPE = """(field, text) => {
  for (const letter of text) {
    field.value += letter;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
}"""


def on_search(page: Page, site: Site) -> Locator:
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
    return [f"/images/{hit['image']}/" for hit in found["results"]]


def text_of(url: str) -> str:
    return parse_qs(urlsplit(url).query)["text"][0]


def test_results_come_while_one_types_and_become_a_query(
    site: Site, log_in: Callable[..., Page]
) -> None:
    page = log_in("ada")
    wrong: list[str] = []
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    field = on_search(page, site)
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
    page.reload()
    assert shown(page) == best

    page.get_by_label("Only these species").press_sequentially("marsh hopper")
    page.get_by_role("option").first.click()
    expect(status(page)).to_contain_text("images of the chosen species, exact")
    found = site.api("ada", "GET", "/api/species/?search=marsh+hopper")["results"][0]
    assert shown(page) == expected(site, "a bird at night", f"&species={found['id']}")
    assert parse_qs(urlsplit(page.url).query)["species"] == [str(found["id"])]
    page.locator(".chip-remove").click()
    expect(status(page)).to_contain_text("of 260 images, exact")
    field.fill("")
    expect(page.get_by_text("Describe what the image should show")).to_be_visible()
    expect(page).to_have_url(f"{site.url}/search/")
    expect(status(page)).to_have_text("")
    # What is made is what the fields say, also before its results are there.
    field.fill("a hopper")
    expect(status(page)).to_contain_text("of 260 images, exact")
    page.route(RESULTS, lambda route: None)
    field.fill("a hopper at dusk")
    page.get_by_role("button", name="Make this a query").click()
    expect(page.get_by_label("Query text")).to_have_value("a hopper at dusk")
    assert wrong == []


def test_without_a_text_images_of_species_and_images_like_one_are_shown(
    site: Site, log_in: Callable[..., Page]
) -> None:
    page = log_in("ann")
    field = on_search(page, site)
    page.get_by_label("Only these species").press_sequentially("marsh hopper")
    page.get_by_role("option").first.click()
    expect(status(page)).to_contain_text("of the chosen species, by number")
    species = site.api("ada", "GET", "/api/species/?search=marsh+hopper")["results"][0]["id"]
    listed = site.api("ada", "GET", f"/api/images/?species={species}")["results"]
    assert shown(page) == [f"/images/{image['id']}/" for image in listed]
    page.locator(".search-found .image-grid a").first.click()
    page.get_by_role("link", name="More like this").click()
    like = listed[0]["id"]
    expect(page).to_have_url(f"{site.url}/search/?like={like}")
    expect(status(page)).to_contain_text("60 best of 260 images, exact")
    alike = shown(page)
    assert f"/images/{like}/" not in alike
    field.fill("a bird at night")
    expect(page).to_have_url(f"{site.url}/search/?text=a+bird+at+night")
    wait_for(lambda: shown(page) == expected(site, "a bird at night"), what="the text's images")
    field.fill("")
    expect(page).to_have_url(f"{site.url}/search/?like={like}")
    wait_for(lambda: shown(page) == alike, what="the images like one")


def test_each_text_is_asked_for_once_and_the_last_answer_wins(
    site: Site, log_in: Callable[..., Page]
) -> None:
    page = log_in("ada")
    asked: list[str] = []
    ended: list[str] = []
    held: list[Route] = []

    def hold(route: Route) -> None:
        asked.append(text_of(route.request.url))
        if asked[-1] == "a frog":
            held.append(route)
        else:
            route.continue_()

    def note(request: Request) -> None:
        if "part=results" in request.url:
            ended.append(text_of(request.url))

    page.route(RESULTS, hold)
    page.on("requestfinished", note)
    page.on("requestfailed", note)
    field = on_search(page, site)
    field.evaluate(TYPE, "a frog")
    expect(page.locator(".search-waiting li").first).to_be_visible()
    expect(status(page)).to_contain_text("Searching …")
    expect(page.locator("[data-search-found]")).to_have_attribute("aria-busy", "true")
    field.fill("a fish under water")
    expect(status(page)).to_contain_text("60 best")
    for route in held:
        route.continue_()
    # Events come while something is asked of the page.
    wait_for(lambda: (page.title(), "a frog" in ended)[1], what="the end of the held request")
    assert shown(page) == expected(site, "a fish under water")
    expect(page).to_have_url(f"{site.url}/search/?text=a+fish+under+water")
    assert page.locator("[data-search-found]").get_attribute("aria-busy") is None

    page.get_by_role("button", name="Search").click()
    field.press("Enter")
    field.press_sequentially(" ")
    field.press("Enter")
    field.fill("spider")
    expect(page).to_have_url(f"{site.url}/search/?text=spider")
    wait_for(lambda: (page.title(), "spider" in asked)[1], what="the request for the last text")
    assert asked == ["a frog", "a fish under water", "spider"]


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


def test_on_a_phone(site: Site, log_in: Callable[..., Page]) -> None:
    page = log_in("ann", viewport=NARROW, color_scheme="dark")
    field = on_search(page, site)
    field.fill("a snail that goes on and on " * 4)
    expect(status(page)).to_contain_text("60 best")
    assert not wider_than_window(page)
    assert violations(page) == []
    box = page.locator(".image-grid img").first.bounding_box()
    assert box is not None
    assert abs(box["width"] - box["height"]) <= 1
    assert box["y"] + 0.5 * box["height"] < NARROW["height"]

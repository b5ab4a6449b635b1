"""Where things are: nothing moves with the text's length, and all fits a phone and a thumb."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import DESKTOP, NARROW, PHONE
from tests.e2e.labeling import box, open_label_page, painted, press, saved, shown, wait_painted
from tests.site import Site

pytestmark = pytest.mark.e2e

LONG = "a bird " + "that sits on a branch over the water and looks for something to eat " * 6
BUTTONS = (
    "[data-do], [data-view-choice], [data-tab], [data-tone-open], [data-sheet-open], [data-saved]"
)


def places(page: Page) -> dict[str, Any]:
    """Where each button that is shown lies."""
    found = page.locator(BUTTONS).evaluate_all(
        "all => all.filter(one => one.checkVisibility() && !one.closest('dialog, [data-gap]'))"
        ".map(one => { const {x, y, width, height} = one.getBoundingClientRect();"
        " return [one.dataset.do ?? one.dataset.viewChoice ?? one.dataset.tab"
        " ?? one.classList[0],"
        " [x, y, width, height].map(Math.round)]; })"
    )
    return dict(found)


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE])
def test_buttons_stay_where_they_are_whatever_the_texts(
    site: Site, log_in: Callable[..., Page], viewport: dict[str, int]
) -> None:
    short = site.open_query("a cow")
    long = site.open_query(LONG[:480])
    page = log_in("otto", viewport=viewport)
    open_label_page(page, site, short)
    wanted = places(page)
    assert {"relevant", "not_relevant", "unsure", "back", "skip", "undo"} <= set(wanted)
    for key in "rnnunnrnnnnn":
        press(page, key)
        assert places(page) == wanted
    press(page, "s")
    press(page, "n")
    expect(page.locator("[data-gap]")).to_be_visible()
    assert places(page) == wanted
    page.evaluate(
        "() => { for (const node of document.querySelectorAll('[data-info] [data-show]'))"
        " node.textContent = 'Attribution and a name without an end '.repeat(8); }"
    )
    assert places(page) == wanted
    page.context.set_offline(True)
    page.keyboard.press("n")
    expect(page.locator("[data-notice=outbox]")).to_be_visible()
    assert places(page) == wanted
    page.context.set_offline(False)
    saved(page)

    open_label_page(page, site, long)
    assert places(page) == wanted
    heading = page.locator(".query-text")
    text = heading.locator("span")
    clamped = box(text)["height"]
    heading.focus()
    assert box(text)["height"] > clamped
    assert box(text)["y"] >= 0
    assert places(page) == wanted


def test_labeling_with_a_thumb_at_360_pixels(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a sheep on a hill", guidelines="Only whole animals count.")
    page = log_in("otto", viewport=NARROW, has_touch=True, is_mobile=True)
    open_label_page(page, site, query)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate("document.documentElement.scrollHeight") <= 740
    assert box(page.locator("[data-stage]"))["height"] >= 300
    for name in ("not_relevant", "unsure", "relevant"):
        area = box(page.locator(f".bar [data-do={name}]"))
        assert area["height"] >= 48
        assert area["width"] >= 48
        # Within a thumb's reach: the lowest fifth of the window.
        assert area["y"] >= 740 * 0.8
    for one in page.locator(".tools button, .image-tools button, [data-bar=single] .step").all():
        area = box(one)
        assert min(area["width"], area["height"]) >= 43.9

    page.locator(".bar [data-do=relevant]").tap()
    wait_painted(page, 2)
    page.locator(".bar [data-do=unsure]").tap()
    wait_painted(page, 3)
    page.locator(".bar [data-do=back]").tap()
    wait_painted(page, 2)
    page.locator(".bar [data-do=not_relevant]").tap()
    wait_painted(page, 3)
    page.locator(".bar [data-do=skip]").tap()
    wait_painted(page, 4)
    page.locator("[data-do=undo]").tap()
    wait_painted(page, 2)
    saved(page)
    given = [one["relevance"] for one in site.candidates("otto", query, limit=3)["results"]]
    assert given == ["relevant", "unsure", None]

    side = page.locator("[data-side]")
    expect(side).not_to_be_in_viewport()
    page.get_by_role("button", name="Info").tap()
    expect(side).to_be_in_viewport()
    expect(side.locator("[data-show=license]")).not_to_be_empty()
    page.get_by_role("tab", name="Reference").tap()
    expect(side).to_contain_text("Only whole animals count.")
    page.get_by_role("button", name="Close the information").tap()
    expect(side).not_to_be_in_viewport()
    assert painted(page) == 2


def test_licence_and_rights_holder_stand_beside_the_picture(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a toad in the rain")
    page = log_in("otto")
    open_label_page(page, site, query)
    for candidate in site.candidates("otto", query, limit=3)["results"]:
        wait_painted(page, candidate["rank"])
        expect(shown(page, "license")).to_have_text(candidate["license"])
        expect(shown(page, "rights")).to_have_text(candidate["rights_holder"])
        expect(shown(page, "scientific-name")).to_have_text(candidate["species"]["scientific_name"])
        page.keyboard.press("ArrowRight")


def test_the_page_says_when_the_list_can_not_be_loaded_and_goes_on(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a pig in mud")
    page = log_in("otto")
    page.route("**/outline/", lambda route: route.fulfill(status=503, body="{}"))
    page.goto(f"{site.url}/queries/{query}/label/")
    expect(page.locator("[data-stage]")).to_contain_text("The candidates could not be loaded")
    page.keyboard.press("n")
    page.unroute("**/outline/")
    page.get_by_role("button", name="Try again").click()
    wait_painted(page, 1)
    assert shown(page, "judged").inner_text() == "0"

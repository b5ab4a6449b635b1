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
    for key in "rnu":
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


def test_a_list_is_labeled_to_its_end_with_a_thumb_at_360_pixels(
    site: Site, log_in: Callable[..., Page]
) -> None:
    [species] = site.api("ada", "GET", "/api/species/?search=marsh+hopper")["results"]
    guidelines = "Only whole animals count."
    query = site.open_query(
        "a marsh hopper resting", species=[species["scientific_name"]], guidelines=guidelines
    )
    size = len(site.candidates("ann", query)["results"])
    assert size >= 4
    page = log_in("ann", viewport=NARROW, has_touch=True, is_mobile=True)
    open_label_page(page, site, query)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate("document.documentElement.scrollHeight") <= 740
    assert box(page.locator("[data-stage]"))["height"] >= 300
    for name in ("not_relevant", "unsure", "relevant"):
        area = box(page.locator(f".bar [data-do={name}]"))
        assert min(area["width"], area["height"]) >= 48
        # Within a thumb's reach: the lowest fifth of the window.
        assert area["y"] >= 740 * 0.8
    for one in page.locator(".tools button, .image-tools button, [data-bar=single] .step").all():
        area = box(one)
        assert min(area["width"], area["height"]) >= 43.9

    def tap(name: str, rank: int) -> None:
        page.locator(f"[data-do={name}]").locator("visible=true").first.tap()
        wait_painted(page, rank)

    tap("relevant", 2)
    tap("unsure", 3)
    tap("back", 2)
    tap("not_relevant", 3)
    tap("skip", 4)
    tap("undo", 2)
    saved(page)
    given = [one["relevance"] for one in site.candidates("ann", query, limit=3)["results"]]
    assert given == ["relevant", "unsure", None]

    side = page.locator("[data-side]")
    expect(side).not_to_be_in_viewport()
    page.get_by_role("button", name="Info").tap()
    expect(side).to_be_in_viewport()
    expect(side.locator("[data-show=license]")).not_to_be_empty()
    expect(side).to_contain_text(guidelines)
    page.get_by_role("button", name="Close the information").tap()
    expect(side).not_to_be_in_viewport()
    assert painted(page) == 2

    tap("not_relevant", 3)
    for rank in range(3, size):
        tap("not_relevant", rank + 1)
    expect(shown(page, "rank")).to_have_text(str(size))
    page.locator(".bar [data-do=not_relevant]").tap()
    expect(page.locator(".stage")).to_contain_text("The list is exhausted")
    saved(page)
    progress = site.progress("ann", query)
    assert progress["judged"] == progress["candidates"] == size
    assert progress["stop"]["exhausted"] is True


#: Windows as of phones, upright and on their side, and of notebooks at zooms up to 400 %.
WINDOWS = (
    (320, 256), (320, 460), (341, 300), (360, 640), (455, 256), (546, 307), (568, 320),
    (667, 375), (683, 384), (844, 390), (1366, 560),
)  # fmt: skip
SHOWN = """() => {
    const [image, box] = ["[data-canvas] img", "[data-canvas]"].map((one) =>
        document.querySelector(one).getBoundingClientRect());
    const size = (from, to, end) =>
        Math.min(image[to], box[to], end) - Math.max(image[from], box[from], 0);
    return Math.max(size("left", "right", innerWidth), size("top", "bottom", innerHeight));
}"""


def test_an_image_is_in_view_at_every_size_or_gets_no_label(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a cow")
    page = log_in("otto")
    open_label_page(page, site, query)
    for width, height in WINDOWS:
        page.set_viewport_size({"width": width, "height": height})
        page.reload()
        wait_painted(page, 1)
        assert page.evaluate(SHOWN) >= 239, (width, height)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size({"width": 546, "height": 307})
    page.reload()
    wait_painted(page, 1)
    bottom = "window.scrollTo(0, document.body.scrollHeight)"
    page.evaluate(bottom)
    page.keyboard.press("n")
    expect(page.locator("[data-hint]")).to_have_text("Not labeled: the image isn't in view.")
    # The first key brings it back.
    press(page, "n")
    wait_painted(page, 2)
    saved(page)
    assert shown(page, "judged").inner_text() == "1"

"""Drawing boxes in the browser: by mouse, by keyboard, without a connection, with others' boxes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from playwright.sync_api import Page, expect

from tests.e2e.conftest import PHONE
from tests.e2e.labeling import press_elsewhere
from tests.processes import wait_for
from tests.site import Site

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif("boxes" not in settings.EXTRAS, reason="The extra isn't installed"),
]
#: One that is there: before that no key stores anything.
IMAGE = ".boxes-canvas svg > image[data-loaded]"


def to_box(site: Site, text: str) -> int:
    """A complete query that asks for boxes on its three relevant images."""
    query = site.open_query(text)
    images = [one["image"] for one in site.candidates("ann", query, limit=3)["results"]]
    site.judge("ann", query, [(image, "relevant") for image in images])
    change = {"state": "complete", "note": "enough"}
    site.api("ada", "PATCH", f"/api/queries/{query}/", change)
    site.api("ada", "PUT", f"/api/queries/{query}/boxes/", {"images": "all"})
    return query


def drag(page: Page, *shares: float) -> None:
    """Drag from one place of the image to another, in shares of its width and height."""
    area = page.locator(IMAGE).bounding_box()
    assert area is not None
    x, y, to_x, to_y = (
        area["xy"[at % 2]] + share * area[("width", "height")[at % 2]]
        for at, share in enumerate(shares)
    )
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move((x + to_x) / 2, (y + to_y) / 2)
    page.mouse.move(to_x, to_y)
    page.mouse.up()


def drawn(site: Site, query: int, user: str = "ann") -> list[Any]:
    """Each stored image's boxes, as whole percents of the image."""
    found = site.api(user, "GET", f"/api/queries/{query}/boxes/?kind=own")["results"]
    return [
        [
            [round(100 * value / size) for value, size in zip(
                box["bbox"], (one["width"], one["height"]) * 2, strict=True)]
            + [box["group"]]
            for box in one["own"]["boxes"]
        ]
        for one in found
    ]  # fmt: skip


def test_one_drag_and_one_key_a_box_also_without_a_connection(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = to_box(site, "a finch to box")
    page = log_in("ann", f"/queries/{query}/")
    page.get_by_role("link", name="Draw boxes on 3 images").click()
    boxes = page.locator(".box-shape")
    place = page.locator("[data-boxes-place]")
    stored = page.locator("[data-boxes-saved]")
    expect(place).to_have_text("3 images left")
    page.keyboard.press("Enter")
    expect(page.locator("[data-boxes-said]")).to_contain_text("Draw a box first")
    page.route("**/boxes/", lambda route: route.abort())
    drag(page, 0.1, 0.2, 0.5, 0.6)
    expect(boxes).to_have_count(1)
    page.keyboard.press("Enter")
    expect(place).to_have_text("2 images left")
    expect(boxes).to_have_count(0)

    # Two boxes: one is moved by its corner and its number, the other made and moved by keys.
    drag(page, 0.5, 0.5, 0.1, 0.1)
    drag(page, 0.5, 0.5, 0.6, 0.7)
    drag(page, 0.105, 0.105, 0.305, 0.205)
    press_elsewhere(page, "и", "KeyB")
    expect(boxes).to_have_count(2)
    page.keyboard.press("g")
    page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("Escape")
    drag(page, 0.9, 0.9, 0.95, 0.95)
    expect(boxes).to_have_count(3)
    press_elsewhere(page, "я", "KeyZ", ctrlKey=True)
    expect(boxes).to_have_count(2)
    page.keyboard.press("Enter")
    expect(place).to_have_text("1 image left")
    expect(stored).to_have_text("2 images not saved yet")
    assert drawn(site, query) == []
    page.unroute("**/boxes/")
    # The page asks before it is left with boxes that aren't saved.
    page.on("dialog", lambda dialog: dialog.accept())
    page.reload()
    wait_for(lambda: len(drawn(site, query)) == 2, what="the boxes that waited")
    expect(place).to_have_text("1 image left")
    page.locator(IMAGE).wait_for()
    page.keyboard.press("0")
    expect(page.locator(".boxes-canvas")).to_contain_text("No image waits")
    expect(stored).to_have_text("All saved")
    found = sorted(drawn(site, query), key=len)
    assert found[:2] == [[], [[10, 20, 40, 40, False]]]
    [first, second] = found[2]
    assert first == [30, 20, 50, 60, False]
    assert second[4] is True
    assert second[2] < 50


def test_a_key_stores_nothing_of_an_image_that_is_not_in_view(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = to_box(site, "a crow to box")
    page = log_in("ann", viewport={"width": 546, "height": 307})
    held: list[Any] = []
    page.route("**/images/**", lambda route: held.append(route))
    page.goto(f"{site.url}/queries/{query}/boxes/")
    said, place = page.locator("[data-boxes-said]"), page.locator("[data-boxes-place]")
    expect(place).to_have_text("3 images left")
    page.keyboard.press("0")
    expect(said).to_have_text("Not labeled: the image wasn't on the screen yet.")
    for route in held:
        route.continue_()
    page.unroute("**/images/**")
    page.locator(IMAGE).wait_for()
    for edge in ("0", "document.body.scrollHeight"):
        page.evaluate(f"window.scrollTo(0, {edge})")
        page.keyboard.press("0")
        expect(said).to_have_text("Not labeled: the image isn't in view.")
        expect(said).to_be_in_viewport(ratio=1)
    expect(place).to_have_text("3 images left")
    # The first key has brought it back.
    page.keyboard.press("0")
    expect(place).to_have_text("2 images left")


def test_a_finger_draws_and_a_reviewer_decides_between_two(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = to_box(site, "a wren to box")
    page = log_in("ann", f"/queries/{query}/boxes/", viewport=PHONE, has_touch=True)
    drag(page, 0.2, 0.2, 0.7, 0.8)
    expect(page.locator(".box-shape")).to_have_count(1)
    page.get_by_role("button", name="Save, next").click()
    expect(page.locator("[data-boxes-saved]")).to_have_text("All saved")
    assert drawn(site, query) == [[[20, 20, 50, 60, False]]]

    [one] = site.api("ann", "GET", f"/api/queries/{query}/boxes/?kind=own")["results"]
    body = {"image": one["image"], "client_id": "0" * 32, "boxes": [{"bbox": [0, 0, 20, 20]}]}
    site.api("otto", "POST", f"/api/queries/{query}/boxes/", body)
    page = log_in("rita", f"/queries/{query}/boxes/?kind=disputed")
    expect(page.locator(".box-other")).to_have_count(2)
    page.get_by_role("button", name="Take otto’s 1").click()
    page.keyboard.press("Enter")
    expect(page.locator("[data-boxes-saved]")).to_have_text("All saved")
    disputed = site.api("rita", "GET", f"/api/queries/{query}/boxes/?kind=disputed")
    assert disputed["count"] == 0

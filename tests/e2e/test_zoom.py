"""Zoom up to the original pixels, pan, brightness and contrast, with keys, mouse and fingers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import CDPSession, Page, expect

from tests.e2e.conftest import PHONE
from tests.e2e.labeling import box, open_label_page, painted, press, wait_painted
from tests.site import Site

pytestmark = pytest.mark.e2e

PICTURE = ".canvas img"
PERCENT = "[data-zoom-percent]"


def natural(page: Page) -> tuple[int, int]:
    """The picture's own size in pixels."""
    width, height = page.evaluate(
        f"(p => [p.naturalWidth, p.naturalHeight])(document.querySelector('{PICTURE}'))"
    )
    return width, height


def scale(page: Page) -> float:
    """Screen pixels per pixel of the picture."""
    return float(box(page.locator(PICTURE))["width"] / natural(page)[0])


def middle(page: Page) -> tuple[float, float]:
    """Which point of the picture is in the middle of the stage, each part 0 to 1."""
    picture, stage = box(page.locator(PICTURE)), box(page.locator(".canvas"))
    return (
        (stage["x"] + stage["width"] / 2 - picture["x"]) / picture["width"],
        (stage["y"] + stage["height"] / 2 - picture["y"]) / picture["height"],
    )


def tone(page: Page) -> str:
    return str(page.evaluate(f"getComputedStyle(document.querySelector('{PICTURE}')).filter"))


def test_keys_and_mouse_zoom_and_pan(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a duck on a pond")
    # A window smaller than the pictures, so that they are shown reduced.
    page = log_in("otto", viewport={"width": 300, "height": 170})
    open_label_page(page, site, query)
    fitting = scale(page)
    assert fitting < 1
    expect(page.locator(PERCENT)).to_contain_text("Fit")
    page.keyboard.press("x")
    assert box(page.locator(PICTURE))["width"] == pytest.approx(natural(page)[0], abs=0.5)
    expect(page.locator(PERCENT)).to_have_text("100 %")
    for _ in range(3):
        page.keyboard.press("Shift+ArrowDown")
        page.keyboard.press("ArrowUp")
    page.keyboard.press("Shift+ArrowDown")
    place = middle(page)
    assert place[1] > 0.5

    press(page, "n")
    assert painted(page) == 2
    assert scale(page) == pytest.approx(1)
    assert middle(page) == pytest.approx(place, abs=0.02)
    press(page, "ArrowRight")
    assert scale(page) == pytest.approx(1)

    page.keyboard.press("+")
    assert scale(page) == pytest.approx(1.25)
    press(page, "ArrowLeft")
    assert scale(page) == pytest.approx(1.25, rel=0.05)
    page.keyboard.press("0")
    assert scale(page) == pytest.approx(fitting, rel=0.05)
    for _ in range(30):
        page.keyboard.press("+")
    assert scale(page) >= 2

    page.keyboard.press("0")
    expect(page.locator(PERCENT)).to_contain_text("Fit")
    fitting = scale(page)
    picture = box(page.locator(PICTURE))
    # The point under the pointer stays there, as far as the picture fills the stage.
    at = (picture["x"] + picture["width"] * 0.3, picture["y"] + picture["height"] * 0.4)
    page.mouse.move(*at)
    page.mouse.wheel(0, -240)
    page.wait_for_function(f"!document.querySelector('{PERCENT}').textContent.includes('Fit')")
    larger = box(page.locator(PICTURE))
    assert scale(page) > fitting
    assert (at[1] - larger["y"]) / larger["height"] == pytest.approx(0.4, abs=0.01)

    page.mouse.down()
    page.mouse.move(at[0] + 60, at[1] - 30, steps=4)
    page.mouse.up()
    moved = box(page.locator(PICTURE))
    assert (moved["y"] - larger["y"]) == pytest.approx(-30, abs=1)
    assert painted(page) == 2

    page.keyboard.press("0")
    page.mouse.dblclick(*at)
    assert scale(page) > fitting
    page.mouse.dblclick(*at)
    assert scale(page) == pytest.approx(fitting)
    # The buttons are there where they cover little of the image.
    page.set_viewport_size({"width": 900, "height": 700})
    page.get_by_role("button", name="Zoom in").wait_for()
    fitting = scale(page)
    page.get_by_role("button", name="Zoom in").click()
    assert scale(page) == pytest.approx(fitting * 1.25)
    page.get_by_role("button", name="Zoom out").click()
    expect(page.locator(PERCENT)).to_contain_text("Fit")


def touch(session: CDPSession, kind: str, *points: tuple[float, float]) -> None:
    found: list[dict[str, Any]] = [
        {"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)
    ]
    session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": found})


def test_two_fingers_zoom_and_one_steps_or_pans(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a turtle on a log")
    page = log_in("otto", viewport=PHONE, has_touch=True, is_mobile=True)
    open_label_page(page, site, query)
    session = page.context.new_cdp_session(page)
    fitting = scale(page)
    stage = box(page.locator(".canvas"))
    x, y = stage["x"] + stage["width"] / 2, stage["y"] + stage["height"] / 2

    def swipe(by: float) -> None:
        touch(session, "touchStart", (x, y))
        for part in range(1, 6):
            touch(session, "touchMove", (x + by * part / 5, y))
        touch(session, "touchEnd")

    swipe(-120)
    wait_painted(page, 2)
    expect(page.locator("[data-hint]")).to_contain_text("Skipped rank 1")
    swipe(120)
    wait_painted(page, 1)

    touch(session, "touchStart", (x - 30, y), (x + 30, y))
    for step in range(1, 11):
        touch(session, "touchMove", (x - 30 - 3 * step, y), (x + 30 + 3 * step, y))
    touch(session, "touchEnd")
    assert scale(page) == pytest.approx(fitting * 2, rel=0.1)
    before = middle(page)
    swipe(-80)
    assert middle(page)[0] > before[0]
    assert painted(page) == 1

    page.touchscreen.tap(x, y)
    page.touchscreen.tap(x, y)
    expect(page.locator(PERCENT)).to_contain_text("Fit")


def test_brightness_and_contrast_are_kept_for_the_next_session(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("an owl in the dark")
    page = log_in("otto")
    open_label_page(page, site, query)
    assert tone(page) == "none"
    for key in "]]][}":
        page.keyboard.press(key)
    assert tone(page) == "brightness(1.2) contrast(1.1)"
    press(page, "n")
    assert tone(page) == "brightness(1.2) contrast(1.1)"
    page.get_by_role("button", name="Brightness and contrast").click()
    with page.expect_response(
        lambda answer: "/preferences/" in answer.url and "1.5" in (answer.request.post_data or "")
    ):
        page.get_by_role("slider", name="Contrast").fill("1.5")
    assert tone(page) == "brightness(1.2) contrast(1.5)"

    again = log_in("otto")
    open_label_page(again, site, query)
    assert tone(again) == "brightness(1.2) contrast(1.5)"
    again.keyboard.press("\\")
    assert tone(again) == "none"

"""The account page: colors, time zone and keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.labeling import open_label_page
from tests.processes import wait_for
from tests.site import Site

pytestmark = pytest.mark.e2e


def background(page: Page) -> str:
    color: str = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    return color


def save(page: Page) -> None:
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()


def test_colors_times_and_keys_are_as_the_person_chose_them(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a newt in a pond")
    page = log_in("ann", "/account/", color_scheme="light", timezone_id="Asia/Tokyo")
    light = background(page)
    page.get_by_label("Colors").select_option("Dark")
    page.get_by_role("button", name="Use Asia/Tokyo, as this browser").click()
    save(page)
    expect(page.locator("[data-zone-offer]")).to_be_hidden()
    dark = background(page)
    assert dark != light
    open_label_page(page, site, query)
    assert background(page) == dark
    page.emulate_media(color_scheme="dark")
    page.goto(f"{site.url}/account/")
    page.get_by_label("Colors").select_option("Light")
    page.get_by_label("Time zone").select_option("Europe/Berlin")
    save(page)
    assert background(page) == light
    expect(page.locator("html[data-time-zone='Europe/Berlin']")).to_be_attached()
    moment = page.evaluate(
        "async () => {"
        " const [words] = performance.getEntriesByType('resource').map(({ name }) => name)"
        ".filter((name) => /js.words/.test(name));"
        " return (await import(words)).moment(new Date('2026-11-03T12:00:00Z')); }"
    )
    assert moment == "3 Nov 2026, 13:00:00"

    page.get_by_role("button", name="Change keys").click()
    dialog = page.get_by_role("dialog", name="Keys")
    expect(dialog.get_by_role("button", name="Page back: Page ↑. Replace")).to_be_visible()
    dialog.get_by_role("button", name="Relevant: R. Replace", exact=True).click()
    page.keyboard.press("q")
    expect(dialog.locator("[data-keys-state]")).to_contain_text("“Relevant” has Q now")

    def keys() -> Any:
        return site.api("ann", "GET", "/api/preferences/labeling/")["keys"]["relevant"]

    wait_for(lambda: keys() == ["q", "1"], what="the keys to be stored")

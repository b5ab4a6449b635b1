"""The account page, and how a person comes in."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.labeling import open_label_page
from tests.processes import wait_for
from tests.site import Site

pytestmark = pytest.mark.e2e


def background(page: Page) -> str:
    color: str = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    return color


def test_colors_hold_on_every_page_whatever_the_system_has(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a newt in a pond")
    page = log_in("nora", "/account/", color_scheme="light")
    light = background(page)
    page.get_by_label("Colors").select_option("Dark")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    dark = background(page)
    assert dark != light
    open_label_page(page, site, query)
    assert background(page) == dark
    page.emulate_media(color_scheme="dark")
    page.goto(f"{site.url}/account/")
    page.get_by_label("Colors").select_option("Light")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    assert background(page) == light


def test_times_of_scripts_are_in_the_persons_zone(site: Site, log_in: Callable[..., Page]) -> None:
    page = log_in("zoe", "/account/", timezone_id="Asia/Tokyo")
    page.get_by_role("button", name="Use Asia/Tokyo, as this browser").click()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    expect(page.locator("[data-zone-offer]")).to_be_hidden()
    page.get_by_label("Time zone").select_option("Europe/Berlin")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("html[data-time-zone='Europe/Berlin']")).to_be_attached()
    moment = page.evaluate(
        "async () => {"
        " const [words] = performance.getEntriesByType('resource').map(({ name }) => name)"
        ".filter((name) => /js.words/.test(name));"
        " return (await import(words)).moment(new Date('2026-11-03T12:00:00Z')); }"
    )
    assert moment == "3 Nov 2026, 13:00:00"


def test_keys_are_changed_on_the_account_page_too(site: Site, log_in: Callable[..., Page]) -> None:
    page = log_in("kim", "/account/")
    page.get_by_role("button", name="Change keys").click()
    dialog = page.get_by_role("dialog", name="Keys")
    expect(dialog.get_by_role("button", name="Page back: Page ↑. Replace")).to_be_visible()
    dialog.get_by_role("button", name="Relevant: R. Replace", exact=True).click()
    page.keyboard.press("q")
    expect(dialog.locator("[data-keys-state]")).to_contain_text("“Relevant” has Q now")

    def keys() -> Any:
        return site.api("kim", "GET", "/api/preferences/labeling/")["keys"]["relevant"]

    wait_for(lambda: keys() == ["q", "1"], what="the keys to be stored")


def test_an_invited_person_comes_in_once(
    site: Site, log_in: Callable[..., Page], browser: Browser
) -> None:
    office = log_in("ada", "/people/")
    office.get_by_label("User name").fill("nils")
    office.get_by_label("Role").select_option("Researcher")
    office.get_by_role("button", name="Make a link").click()
    link = office.locator("[data-copied]").inner_text()
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(link)
        page.get_by_label("New password", exact=True).fill("tawny-owl-at-dusk-7")
        page.get_by_label("New password, once more").fill("tawny-owl-at-dusk-7")
        page.get_by_role("button", name="Set password").click()
        expect(page).to_have_url(re.compile("/leaderboard/|/releases/"))
        page.get_by_role("link", name="nils").click()
        expect(page.get_by_role("heading", name="Account", exact=True)).to_be_visible()
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(link)
        expect(page.get_by_text("This link doesn’t work")).to_be_visible()

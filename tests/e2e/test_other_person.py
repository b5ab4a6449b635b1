"""Somebody else logs in in another tab: the open page stores nothing under their name."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.e2e.labeling import open_label_page, wait_painted
from tests.site import PASSWORD, Site


def test_flags_and_view_of_an_open_page_are_not_stored_as_somebody_elses(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a fox whose page outlives its session")
    page = log_in("ann")
    open_label_page(page, site, query)
    wait_painted(page, 1)
    image = site.candidates("ada", query)["results"][0]["image"]
    before = site.api("otto", "GET", "/api/preferences/labeling/")["view"]

    other = page.context.new_page()
    page.context.clear_cookies()
    other.goto(f"{site.url}/login/")
    other.get_by_label("User name").fill("otto")
    other.get_by_label("Password").fill(PASSWORD)
    other.get_by_role("button", name="Log in").click()
    expect(other.get_by_role("heading", name="Queries")).to_be_visible()

    page.bring_to_front()
    with page.expect_response("**/api/preferences/labeling/") as kept:
        page.keyboard.press("g")
    assert kept.value.status == 409
    page.keyboard.press("f")
    dialog = page.get_by_role("dialog", name="Flag this image")
    expect(dialog.get_by_role("status")).to_contain_text("Somebody else is logged in")
    page.keyboard.press("1")
    expect(dialog.get_by_role("button", name="Duplicate")).to_be_disabled()

    assert site.api("otto", "GET", "/api/preferences/labeling/")["view"] == before
    flags = site.api("otto", "GET", f"/api/images/{image}/flags/")
    assert (flags["results"] if isinstance(flags, dict) else flags) == []

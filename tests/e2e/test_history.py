"""The history of the judgments of the image on screen."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.labeling import focused, open_label_page, press, wait_stored
from tests.site import Site

pytestmark = pytest.mark.e2e


def test_each_change_of_a_label_is_listed_with_who_when_and_where(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a spotted animal in the rain")
    first = site.candidates("ann", query, limit=1)["results"][0]["image"]
    page = log_in("ann")
    open_label_page(page, site, query)
    page.context.set_offline(True)
    page.keyboard.press("h")
    dialog = page.get_by_role("dialog", name="History of this image")
    expect(dialog).to_contain_text("There is no connection to the server")
    page.context.set_offline(False)
    dialog.get_by_role("button", name="Try again").click()
    expect(dialog).to_contain_text("No judgment yet")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()

    press(page, "n")
    press(page, "ArrowLeft")
    press(page, "r")
    press(page, "ArrowLeft")
    wait_stored(site, "ann", query, {first: ("relevant", "list")})
    site.judge("otto", query, [(first, "unsure")])
    page.locator("[data-do=history]").press("Enter")
    items = dialog.get_by_role("listitem")
    expect(items).to_have_count(2)  # otto's is not for other annotators
    expect(dialog).to_contain_text("reviewers see everybody's")
    expect(items.nth(0)).to_contain_text(re.compile(r"Not relevant\s*→\s*to\s*Relevant"))
    expect(items.nth(0)).to_contain_text(re.compile(r"ann in the list · rank 1 · \d+\.\d s"))
    expect(items.nth(0).locator("time")).to_have_text(
        re.compile(r"(just now|\d+ seconds? ago) · \d+ \w+ \d{4}, \d\d:\d\d:\d\d")
    )
    expect(items.nth(1)).to_contain_text("no label")
    page.keyboard.press("Escape")
    assert focused(page) == "history"

    page = log_in("rita")
    open_label_page(page, site, query)
    page.keyboard.press("h")
    expect(page.get_by_role("dialog").get_by_role("listitem")).to_have_count(3)
    expect(page.get_by_role("dialog").get_by_role("listitem").nth(0)).to_contain_text("otto")

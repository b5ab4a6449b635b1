"""Comments on the labeling page and the query's page."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.labeling import open_label_page, press, saved, wait_painted
from tests.site import Site

pytestmark = pytest.mark.e2e


def test_a_comment_is_written_answered_and_resolved(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a stoat in the snow")
    image = site.candidates("ann", query, limit=1)["results"][0]["image"]
    said = {
        "image": image,
        "text": "@otto a weasel?",
        "client_id": "0" * 8 + "-0000-4000-8000-" + "0" * 12,
    }
    site.api("ann", "POST", f"/api/queries/{query}/comments/", said)
    page = log_in("otto")
    open_label_page(page, site, query)
    count = page.locator("[data-comments-count]")
    page.keyboard.press("c")
    dialog = page.get_by_role("dialog", name="Comments on this image")
    expect(dialog.locator("[data-comments-state]")).to_contain_text("once your own judgment")
    expect(dialog.get_by_role("listitem")).to_have_count(0)
    # A key that comes before the browser has moved the focus out of what was closed.
    page.evaluate(
        "() => { document.querySelector('[data-comments]').close();"
        " const key = { key: 'n', code: 'KeyN', bubbles: true, cancelable: true };"
        " document.activeElement.dispatchEvent(new KeyboardEvent('keydown', key)); }"
    )
    wait_painted(page, 2)
    saved(page)
    press(page, "ArrowLeft")
    expect(count).to_have_text("1")
    page.keyboard.press("c")
    expect(dialog.locator(".comment-text")).to_have_text(["@otto a weasel?"])
    page.keyboard.type("No:\nsee its tail")  # keys of the page rest
    page.keyboard.press("Control+Enter")
    expect(dialog.locator(".comment-text")).to_have_text(["@otto a weasel?", "No:\nsee its tail"])
    dialog.get_by_role("button", name="Resolve").click()
    expect(dialog).to_contain_text("Resolved by otto")
    dialog.get_by_role("button", name="Reopen").click()
    expect(dialog).not_to_contain_text("Resolved by")
    page.keyboard.press("Escape")
    expect(count).to_have_text("2")

    page.goto(f"{site.url}/queries/{query}/#comments-{image}")
    expect(page.get_by_role("dialog").locator(".comment-text")).to_have_count(2)
    page.keyboard.press("Escape")
    page.get_by_role("textbox", name="New comment").fill("In winter fur only?")
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.locator("[data-query-comments] .comment-text")).to_have_text(
        ["In winter fur only?"]
    )

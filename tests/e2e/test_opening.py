"""Many drafts become open on one page, and their lists are there."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import PHONE
from tests.processes import wait_for
from tests.site import Site

pytestmark = pytest.mark.e2e


def drafts(site: Site, count: int) -> tuple[str, list[int]]:
    """Drafts whose text shares a word of their own, and that word."""
    word = uuid.uuid4().hex[:8]
    made = []
    for number in range(count):
        fields = {"text": f"{word} bird {number}", "category": "Species ID", "split": "val"}
        made.append(site.api("ada", "POST", "/api/queries/", fields)["id"])
    return word, made


def test_what_is_ticked_is_opened_and_ranked(site: Site, log_in: Callable[..., Page]) -> None:
    word, made = drafts(site, 3)
    page = log_in("ada")
    page.goto(f"{site.url}/")
    page.get_by_role("link", name="Open drafts").click()
    page.get_by_label("Text").fill(word)
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("button", name="Open 3 queries")).to_be_enabled()
    page.get_by_label("All 3").uncheck()
    expect(page.get_by_role("button", name="Open queries")).to_be_disabled()
    for number in (0, 2):
        page.get_by_label(f"{word} bird {number}").check()
    page.get_by_role("button", name="Open 2 queries").click()
    expect(page.get_by_role("status").first).to_have_text(
        "2 queries are open. The worker ranks their candidates."
    )

    def told() -> list[tuple[str, str]]:
        found = [site.api("ada", "GET", f"/api/queries/{pk}/") for pk in made]
        return [(one["state"], one["list"]["state"]) for one in found]

    ready = [("open", "ready"), ("draft", "none"), ("open", "ready")]
    wait_for(lambda: told() == ready, what="the lists")


def test_on_a_phone_one_draft_is_opened_by_keyboard(
    site: Site, log_in: Callable[..., Page]
) -> None:
    word, [draft] = drafts(site, 1)
    page = log_in("ada", viewport=PHONE)
    page.goto(f"{site.url}/queries/open/?search={word}")
    box = page.get_by_label(f"{word} bird 0")
    box.focus()
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Open queries")).to_be_disabled()
    page.keyboard.press("Space")
    page.get_by_role("button", name="Open 1 query").press("Enter")
    expect(page.get_by_role("status").first).to_have_text(
        "1 query is open. The worker ranks its candidates."
    )
    assert site.api("ada", "GET", f"/api/queries/{draft}/")["state"] == "open"

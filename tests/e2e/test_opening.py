"""Many drafts become open on one page, and their lists are there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import PHONE
from tests.processes import wait_for
from tests.site import Site

pytestmark = pytest.mark.e2e


def test_what_is_ticked_is_opened_and_ranked(site: Site, log_in: Callable[..., Page]) -> None:
    made = []
    for number in range(4):
        fields = {"text": f"opened bird {number}", "category": "Species ID", "split": "val"}
        made.append(site.api("ada", "POST", "/api/queries/", fields)["id"])

    def told() -> list[tuple[str, str]]:
        found = [site.api("ada", "GET", f"/api/queries/{pk}/") for pk in made]
        return [(one["state"], one["list"]["state"]) for one in found]

    page = log_in("ada", "/")
    page.get_by_role("link", name="Open drafts").click()
    page.get_by_label("Text").fill("opened")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("button", name="Open 4 queries")).to_be_enabled()
    page.get_by_label("All 4").uncheck()
    expect(page.get_by_role("button", name="Open queries")).to_be_disabled()
    for number in (0, 2):
        page.get_by_label(f"opened bird {number}").check()
    page.get_by_role("button", name="Open 2 queries").click()
    expect(page.get_by_role("status").first).to_have_text(
        "2 queries are open. The worker ranks their candidates."
    )
    ready = [("open", "ready"), ("draft", "none"), ("open", "ready"), ("draft", "none")]
    wait_for(lambda: told() == ready, what="the lists")

    # On a phone, by keyboard.
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    page.goto(f"{site.url}/queries/open/?search=opened+bird+1")
    page.get_by_label("opened bird 1").focus()
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Open queries")).to_be_disabled()
    page.keyboard.press("Space")
    page.get_by_role("button", name="Open 1 query").press("Enter")
    expect(page.get_by_role("status").first).to_have_text(
        "1 query is open. The worker ranks its candidates."
    )
    assert told()[1][0] == "open"

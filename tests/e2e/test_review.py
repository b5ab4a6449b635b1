"""A reviewer decides a doubt and a query that was given up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

from tests.e2e.conftest import PHONE
from tests.site import Site


def test_a_decision_joins_the_history_of_its_image(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a bird on a branch")
    images = [one["image"] for one in site.candidates("ada", query, limit=3)["results"]]
    for user, said in (("ann", "relevant"), ("otto", "not_relevant")):
        for image in images:
            site.judge(user, query, [(image, said)])
    site.judge("ann", query, [(images[0], None)])
    site.judge("ann", query, [(images[0], "unsure")])
    page = log_in("rita")
    page.goto(f"{site.url}/queries/{query}/review/")
    item = page.locator("ol.review > li").first
    entries = item.locator(".history li")
    expect(entries.first).to_be_hidden()
    item.get_by_text("History").click()
    expect(entries).to_have_count(4)
    expect(entries.nth(2)).to_contain_text("Relevant → Taken back")
    item.get_by_role("button", name="Not relevant").click()
    expect(entries).to_have_count(5)
    expect(entries.last).to_contain_text("rita just now")
    expect(entries.last).to_contain_text("Not labeled → Not relevant")
    item.get_by_role("button", name="Relevant", exact=True).click()
    expect(entries.last).to_contain_text("Not relevant → Relevant")
    history = site.api("rita", "GET", f"/api/queries/{query}/history/?image={images[0]}")
    assert [act["relevance"] for act in history["results"] if act["annotator"] == "rita"] == [
        "not_relevant",
        "relevant",
    ]
    page.goto(f"{site.url}/queries/{query}/")
    expect(page.locator("[data-agreement] tbody tr")).to_have_count(3)


def test_a_query_is_given_up_and_rejected_with_the_same_reason(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a happy bird")
    page = log_in("ann", viewport=PHONE)
    page.goto(f"{site.url}/queries/{query}/")
    page.locator("summary", has_text="Give up").click()
    form = page.locator("form", has=page.get_by_role("button", name="Give up"))
    form.get_by_label("Reason").select_option("unlabelable")
    form.get_by_label("Note").fill("Nobody can see that.")
    form.get_by_role("button", name="Give up").click()
    notice = page.locator("[data-given-up]")
    expect(notice).to_contain_text("Given up: Can't be labeled from images.")
    expect(notice.get_by_role("button")).to_have_count(0)
    reviewer = log_in("rita")
    reviewer.goto(f"{site.url}/queries/{query}/")
    expect(notice_of(reviewer)).to_contain_text("Nobody can see that.")
    notice_of(reviewer).get_by_role("button", name="Reject for this reason").click()
    expect(reviewer.locator(".notice.error")).to_contain_text("Can't be labeled from images.")
    assert site.api("rita", "GET", f"/api/queries/{query}/")["state"] == "rejected"


def notice_of(page: Page) -> Any:
    return page.locator("[data-given-up]")

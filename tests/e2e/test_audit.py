"""The audit in the browser: images drawn at random, up to a certificate."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.labeling import (
    last_transition,
    open_label_page,
    open_panel,
    own,
    press,
    rules,
    saved,
    wait_painted,
)
from tests.e2e.tiles import all_not, label, prefer, tile, wait_seen
from tests.site import Site

pytestmark = pytest.mark.e2e

HAND_IN = """
from django.conf import settings
from annotator.models import User
from labeling.lifecycle.services import query_transition
from labeling.queries.models import Query
settings.RELEASE_AUDIT_SHARE, settings.RELEASE_AUDIT_SEEDS = 0.2, 100_000
ann = User.objects.get(username="ann")
query_transition(query=Query.objects.get(pk={query}), to_state="submitted", by=ann, note="done")
"""


def figure(page: Page, name: str, text: str) -> None:
    """Wait until the page gives this number."""
    expect(page.locator(f"[data-audit-show={name}]")).to_have_text(text)


def shown_image(page: Page) -> str:
    """The address of the image on the screen."""
    return str(page.locator("[data-canvas] img").get_attribute("src"))


def test_from_a_place_to_pause_to_a_certificate_and_handing_in(
    site: Site, log_in: Callable[..., Page]
) -> None:
    rule = "streak and certificate:0.9"
    query = site.open_query("a bird in the reeds", hand_in_rule=rule)
    label(site, "ann", query, dict.fromkeys(range(1, 41), "relevant") | all_not(41, 139))
    page = log_in("ann")
    open_label_page(page, site, query)
    page.context.set_offline(True)
    press(page, "n")
    panel = page.locator("[data-stop]")
    expect(panel.get_by_role("heading")).to_have_text("A place to pause")
    expect(panel.locator("[data-stop-verdict]")).to_contain_text("asks for a certificate")
    page.context.set_offline(False)
    saved(page)
    panel.get_by_role("button", name="Continue labeling").click()
    open_panel(page)
    expect(panel.locator("[data-stop-rules]")).to_contain_text("80 % of 90 % recall certified")
    assert rules(panel)["Negatives in a row"] == ("100 of 100", True)
    expect(panel.get_by_label("Why hand in now?")).to_be_visible()
    panel.get_by_role("link", name="Audit").click()
    message = page.locator("[data-message]")
    expect(message).to_contain_text("4 more without a hit would certify 90 %")
    figure(page, "pool", "the first 150 of the list, out of 260 images of the corpus")
    page.get_by_role("button", name="Draw images").click()
    figure(page, "to-judge", "4")
    wait_painted(page, 1)
    assert page.locator("[data-show=rank], [data-do=similar]").count() == 0
    page.keyboard.press("ArrowRight")
    expect(page.locator("[data-hint]")).to_contain_text("can’t be skipped")
    press(page, "n")
    saved(page)
    # What was displayed comes first again, whatever happened to the page.
    left = shown_image(page)
    page.reload()
    wait_painted(page, 2)
    assert shown_image(page) == left
    figure(page, "to-judge", "3")
    page.context.set_offline(True)
    press(page, "n", 2)
    page.keyboard.press("z")  # takes the last back
    wait_painted(page, 3)
    press(page, "n")
    page.context.set_offline(False)
    saved(page)
    figure(page, "to-judge", "1")
    press(page, "n")
    expect(message).to_contain_text("Certified")
    figure(page, "recall", "90 %")
    expect(page.locator("[data-bound]")).to_have_attribute("aria-valuenow", "90")
    assert {source for _, source in own(site, "ann", query).values()} == {"list", "audit"}

    page.get_by_role("link", name="To the ranking").click()
    expect(panel.get_by_role("heading")).to_have_text("The stop rule is met")
    assert rules(panel)["And a certificate"] == ("90 % of 90 % recall certified", True)
    expect(panel.locator("[data-stop-early]")).to_be_hidden()
    panel.get_by_role("button", name="Hand in").click()
    expect(page.get_by_role("heading", name="Queries", exact=True)).to_be_visible()
    assert last_transition(site, query) == ("submitted", "", "")


def test_a_hit_leads_back_to_the_ranking(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a fox at dusk")
    first = site.candidates("ann", query, limit=1)["results"][0]["image"]
    site.judge("ann", query, [(first, "relevant")])
    page = log_in("ann", f"/queries/{query}/audit/")
    page.get_by_role("button", name="Draw images").click()
    wait_painted(page, 1)
    press(page, "n")
    figure(page, "drawn", "6")
    press(page, "r")
    notice = page.locator("[data-notice=hit]")
    expect(notice).to_contain_text("was missed in the ranking")
    figure(page, "hits", "1")
    press(page, "n", 4)
    expect(page.locator("[data-message]")).to_contain_text("Only judging all that are left")
    figure(page, "drawn", "6")
    expect(notice).to_have_count(0)
    page.get_by_role("link", name="To the ranking").click()
    page.wait_for_url(re.compile(r"/label/"))


def test_the_audit_of_a_release_by_pages(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a bird on a wire")
    images = [one["image"] for one in site.candidates("ann", query)["results"]]
    found, rest = images[:10], images[10:20]
    site.judge("ann", query, [(image, "relevant") for image in found])
    site.judge("ann", query, [(image, "not_relevant") for image in rest])
    site.served.manage("shell", "-c", HAND_IN.format(query=query))
    page = log_in("otto", "/")
    prefer(site, "otto", view="grid", grid_size=12)
    page.locator(".notice", has_text="left to audit").get_by_role("link", name="Judge").click()
    grid = page.locator("[data-grid]")
    first = "1"
    while page.locator("#studio").get_attribute("data-state") != "end":
        ranks = wait_seen(page, int(first))
        expect(page.locator("[data-grid-kind]")).to_have_text("Drawn images")
        tile(page, ranks[0]).click()
        # What is drawn for these judgments makes the page grow, and loads its images again.
        with page.expect_response("**/draws/"):
            page.keyboard.press("Enter")
        saved(page)
        # The page may have grown by images drawn meanwhile, so the next says where it begins.
        page.wait_for_function(
            """first => document.querySelector("#studio").dataset.state === "end"
              && document.querySelector("[data-message]").textContent.includes("left to audit")
              || document.querySelector("[data-grid]").dataset.first !== first""",
            arg=first,
        )
        first = grid.get_attribute("data-first") or ""
    expect(page.locator("[data-message]")).to_contain_text("Nothing left to audit")
    assert page.locator("[data-show=rank], [data-show=score]").count() == 0
    judged = own(site, "otto", query)
    assert {source for _, source in judged.values()} == {"audit"}
    # Every known positive was mixed in, and the others are what nobody had judged.
    assert judged.keys() >= set(found)
    assert len(judged) > len(found)
    assert judged.keys().isdisjoint(rest)
    assert len(judged) == int(grid.get_attribute("data-last") or 0)

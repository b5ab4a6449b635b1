"""The audit in the browser: images drawn at random, up to a certificate."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.e2e.labeling import open_label_page, own, press, saved, wait_painted
from tests.e2e.tiles import prefer, tile, wait_seen
from tests.site import Site

HAND_IN = """
from django.conf import settings
from annotator.models import User
from labeling.lifecycle.services import query_transition
from labeling.queries.models import Query
settings.RELEASE_AUDIT_SHARE, settings.RELEASE_AUDIT_SEEDS = 0.2, 100_000
ann = User.objects.get(username="ann")
query_transition(query=Query.objects.get(pk={query}), to_state="submitted", by=ann, note="done")
"""
FOUND = 40
NEGATIVE = 100
"""Negatives in a row, so that the rule is met."""


def ranked_pass(site: Site, text: str) -> int:
    """A query of which ann has labeled 140 of 150 candidates."""
    query = site.open_query(text)
    images = [one["image"] for one in site.candidates("ann", query)["results"]]
    site.judge("ann", query, [(image, "relevant") for image in images[:FOUND]])
    rest = images[FOUND : FOUND + NEGATIVE]
    site.judge("ann", query, [(image, "not_relevant") for image in rest])
    return query


def figure(page: Page, name: str, text: str) -> None:
    """Wait until the page gives this number."""
    expect(page.locator(f"[data-audit-show={name}]")).to_have_text(text)


def shown_image(page: Page) -> str:
    """The address of the image on the screen."""
    return str(page.locator("[data-canvas] img").get_attribute("src"))


def test_from_the_streak_to_a_certificate(site: Site, log_in: Callable[..., Page]) -> None:
    query = ranked_pass(site, "a bird in the reeds")
    page = log_in("ann")
    open_label_page(page, site, query)
    page.keyboard.press("p")
    page.locator("[data-stop]").get_by_role("link", name="Audit").click()
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
    saved(page, timeout=60_000)
    figure(page, "to-judge", "1")
    press(page, "n")
    expect(message).to_contain_text("Certified")
    figure(page, "recall", "90 %")
    expect(page.locator("[data-bound]")).to_have_attribute("aria-valuenow", "90")
    assert {source for _, source in own(site, "ann", query).values()} == {"list", "audit"}


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
    expect(notice).to_contain_text("the ranked pass missed")
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

"""The audit in the browser: images drawn at random, up to a certificate."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.e2e.labeling import open_label_page, press, saved
from tests.site import Site

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


def audit(page: Page, site: Site, query: int) -> None:
    page.goto(f"{site.url}/queries/{query}/audit/")
    expect(page.locator(".stage-message")).to_contain_text("10 images are unjudged; none is drawn")


def figure(page: Page, name: str, text: str) -> None:
    expect(page.locator(f"[data-audit-show={name}]")).to_have_text(text)


def test_from_the_streak_to_a_certificate(site: Site, log_in: Callable[..., Page]) -> None:
    query = ranked_pass(site, "a bird in the reeds")
    page = log_in("ann")
    open_label_page(page, site, query)
    page.keyboard.press("e")
    page.locator("[data-stop]").get_by_role("link", name="Audit").click()
    page.wait_for_url(re.compile(r"/audit/$"))
    expect(page.locator(".stage-message")).to_contain_text("10 images are unjudged; none is drawn")
    page.get_by_role("button", name="Draw images").click()
    figure(page, "to-judge", "5")
    press(page, "n", 7)
    expect(page.locator(".stage-message")).to_contain_text("Certified")

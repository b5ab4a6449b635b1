"""A reviewer decides doubts on the labeling page, and a query that was given up."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import PHONE
from tests.e2e.labeling import poll, press, saved, wait_painted
from tests.site import Site
from tests.worlds import DEPTH

pytestmark = pytest.mark.e2e


def images_of(site: Site, query: int, count: int) -> list[int]:
    """The first images of the query's list."""
    return [one["image"] for one in site.candidates("ada", query, limit=count)["results"]]


def in_doubt(site: Site, text: str, count: int, after: int = 0) -> tuple[int, list[int]]:
    """An open query on whose images after a rank ann and otto disagree."""
    query = site.open_query(text)
    images = images_of(site, query, after + count)[after:]
    site.judge("ann", query, [(image, "relevant") for image in images])
    site.judge("otto", query, [(image, "not_relevant") for image in images])
    return query, images


def open_review(page: Page, site: Site, query: int, kind: str = "") -> None:
    """The review of a query, with its first undecided image painted and everybody's votes."""
    page.goto(f"{site.url}/queries/{query}/review/{kind}")
    expect(page.locator("[data-single][data-painted]")).to_be_visible()
    page.keyboard.press("v")


def said(site: Site, query: int) -> dict[int, tuple[str, str]]:
    """Relevance and source of rita's judgments by image, as the database has them."""
    path = f"/api/queries/{query}/judgments/?annotator=rita"
    found = site.api("rita", "GET", path)["results"]
    return {one["image"]: (one["relevance"], one["source"]) for one in found}


def decided(page: Page, count: int, of: int) -> None:
    """Wait until the page says how many images are decided."""
    expect(page.locator(".meters")).to_contain_text(re.compile(rf"Decided\s*{count}\s*of {of}"))


def test_a_reviewer_decides_on_the_labeling_page(site: Site, log_in: Callable[..., Page]) -> None:
    query, images = in_doubt(site, "a bird on a branch", 3)
    site.judge("ann", query, [(images[0], None)])
    site.judge("ann", query, [(images[0], "unsure")])
    site.api("ada", "PATCH", f"/api/queries/{query}/", {"state": "submitted"})
    page = log_in("rita")
    page.goto(f"{site.url}/queries/{query}/review/")
    decided(page, 0, 3)
    # Everybody's votes appear after one's own, and the image stays until one goes on.
    wait_painted(page, 1)
    expect(page.locator("[data-votes]")).to_be_hidden()
    expect(page.locator("[data-review-history]")).to_be_hidden()
    page.keyboard.press("r")
    expect(page.locator("[data-votes]")).to_be_visible()
    page.keyboard.press("z")
    expect(page.locator("[data-votes]")).to_be_hidden()
    decided(page, 0, 3)
    page.keyboard.press("v")
    expect(page.locator("[data-votes] li")).to_have_text(
        [re.compile("Not relevant.*otto"), re.compile("Unsure.*ann")]
    )
    history = page.locator("[data-review-history] li")
    expect(history).to_have_count(6)
    expect(history.nth(3)).to_contain_text(re.compile(r"Relevant\s*→\s*to\s*taken back"))
    expect(page.get_by_role("tab", name="Reference")).to_be_visible()
    press(page, "n")
    decided(page, 1, 3)
    wait_painted(page, 2)
    press(page, "ArrowLeft")
    expect(page.locator("[data-votes] li").last).to_contain_text(re.compile("Not relevant.*You"))
    expect(history).to_have_count(7)
    press(page, "r")
    wait_painted(page, 2)
    press(page, "u")  # who is unsure goes on, and the image stays undecided
    press(page, "ArrowRight")
    expect(page.locator(".stage")).to_contain_text("2 images are still undecided")
    page.get_by_role("button", name="Go to the first undecided image").click()
    wait_painted(page, 2)
    page.keyboard.press("z")  # takes "unsure" back
    expect(page.locator("[data-votes] li")).to_have_count(2)
    press(page, "n")
    press(page, "r")
    expect(page.locator(".stage")).to_contain_text("No more images to decide")
    decided(page, 3, 3)
    saved(page)
    assert said(site, query) == {
        image: (relevance, "list")
        for image, relevance in zip(images, ("relevant", "not_relevant", "relevant"), strict=True)
    }
    shared = site.api("rita", "GET", f"/api/queries/{query}/history/?image={images[0]}")
    assert [act["relevance"] for act in shared["results"] if act["annotator"] == "rita"] == [
        "relevant",
        None,
        "not_relevant",
        "relevant",
    ]
    page.locator(".stage").get_by_role("link", name="Complete").click()
    expect(page).to_have_url(f"{site.url}/queries/{query}/complete/")
    page.goto(f"{site.url}/queries/{query}/")
    expect(page.locator("[data-agreement] tbody tr")).to_have_count(3)


def test_a_review_goes_on_after_a_reload_and_beside_others(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query, images = in_doubt(site, "a bird on a nest at dusk", 4, after=1)
    page = log_in("rita")
    open_review(page, site, query)
    expect(page.locator("[data-notice='still-labeling']")).to_contain_text("ann, otto")
    press(page, "r")
    press(page, "n")
    saved(page)
    page.reload()
    wait_painted(page, 3)
    page.keyboard.press("v")
    decided(page, 2, 4)
    press(page, "z")
    wait_painted(page, 2)
    decided(page, 1, 4)
    saved(page)

    # Another tab of the same person, and another reviewer.
    other = page.context.new_page()
    open_review(other, site, query)
    wait_painted(other, 2)
    press(other, "r")
    decided(page, 2, 4)
    expect(page.locator("[data-hint]")).to_contain_text("another tab")
    site.judge("ada", query, [(images[2], "not_relevant")])
    for tab in (page, other):
        poll(tab)
        decided(tab, 3, 4)
    # What somebody doubts from now on comes last, and what is there keeps its place.
    [later] = images_of(site, query, 1)
    site.judge("otto", query, [(later, "unsure")])
    for tab in (page, other):
        poll(tab)
        decided(tab, 3, 5)
    press(other, "ArrowRight")
    wait_painted(other, 4)
    press(other, "n")
    wait_painted(other, 5)
    press(other, "n")
    expect(other.locator(".stage")).to_contain_text("No more images to decide")
    saved(other)
    assert said(site, query)[later] == ("not_relevant", "list")


def test_a_review_of_one_kind_on_a_phone_takes_images_outside_the_list(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query, _ = in_doubt(site, "a bird far from the coast", 1)
    listed = set(images_of(site, query, DEPTH))
    with site.served.database() as cursor:
        cursor.execute("SELECT id FROM retrieval_image")
        outside = next(image for (image,) in cursor.fetchall() if image not in listed)
    site.judge("ann", query, [(outside, "unsure")], source="search")
    page = log_in("rita", viewport=PHONE, has_touch=True, is_mobile=True)
    open_review(page, site, query, "?kind=unsure")
    decided(page, 0, 1)
    page.get_by_role("button", name="Info").tap()
    expect(page.locator("[data-info]")).to_contain_text("not in the list")
    expect(page.locator("[data-votes]")).to_contain_text(re.compile("Unsure.*ann"))
    page.get_by_role("button", name="Close the information").tap()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator("[data-do=relevant]").tap()
    expect(page.locator(".stage")).to_contain_text("No more unsure images")
    saved(page)
    assert said(site, query) == {outside: ("relevant", "search")}
    page.get_by_role("link", name="Show all").click()
    wait_painted(page, 1)
    decided(page, 1, 2)
    page.get_by_role("button", name="Info").tap()
    page.get_by_role("link", name="Show in the list").tap()
    expect(page).to_have_url(re.compile(r"/label/\?rank=1$"))

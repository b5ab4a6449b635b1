"""The live chart and the strip of the last judgments, beside the picture."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e import tiles
from tests.e2e.labeling import box, open_label_page, press, saved, wait_painted
from tests.site import Site

pytestmark = pytest.mark.e2e


def chart_says(page: Page, words: str, **numbers: int) -> None:
    """The sentence under the chart, and the numbers that it is drawn from."""
    expect(page.locator("[data-chart-words]")).to_contain_text(words)
    for name, number in numbers.items():
        expect(page.locator("[data-chart]")).to_have_attribute(
            f"data-{name.replace('_', '-')}", str(number)
        )


def strip_shows(page: Page, *labels: str) -> None:
    """Wait until the strip begins with these; it is drawn once the next picture is painted."""
    buttons = page.locator("[data-last-judged] button")
    for place, label in enumerate(labels):
        expect(buttons.nth(place)).to_have_attribute("aria-label", label)


def test_chart_and_strip_follow_every_label_and_lead_back(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a bird on a wire, with a chart")
    known = tiles.candidates(site, "ann", query)
    page = log_in("ann")
    open_label_page(page, site, query)
    expect(page.locator("[data-chart] svg")).to_be_hidden()
    with page.expect_response(lambda answer: '"details":true' in (answer.request.post_data or "")):
        page.get_by_text("Details", exact=True).click()
    chart_says(page, "Nothing is labeled yet.", judged=0, relevant=0, rank=1)
    strip = page.locator("[data-last-judged]")
    expect(strip).to_contain_text("Your last judgments will be here.")
    height = box(page.locator("[data-strip]"))["height"]
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    press(page, "r", 2)
    press(page, "n", 3)
    press(page, "u")
    chart_says(
        page,
        "2 relevant in the first 6; the last at rank 2. 4 negatives in a row. "
        f"Similarity falls from {known[1]['score']:.3f} to {known[6]['score']:.3f}.",
        judged=6,
        last_relevant=2,
        streak=4,
        streak_from=3,
        rank=7,
    )
    strip_shows(
        page,
        "Rank 6, unsure",
        *(f"Rank {rank}, not relevant" for rank in (5, 4, 3)),
        *(f"Rank {rank}, relevant" for rank in (2, 1)),
    )
    # Drawn from the images that were on the screen.
    drawn = strip.locator("canvas").evaluate_all(
        "all => all.map(one => one.getContext('2d').getImageData(44, 44, 1, 1).data[3])"
    )
    assert drawn == [255] * 6
    assert not [one for one in requested if "-thumb" in one]
    assert box(page.locator("[data-strip]"))["height"] == height

    page.keyboard.press("z")
    wait_painted(page, 6)
    chart_says(page, "2 relevant in the first 5", judged=5, streak=3, rank=6)
    press(page, "ArrowRight")  # a gap: what follows is counted, the streak waits
    press(page, "r")
    chart_says(page, "3 relevant among 6 labeled; the last at rank 7.", judged=6, streak=3)

    # The strip and the chart lead to a rank.
    strip.get_by_role("button", name="Rank 3, not relevant").click()
    wait_painted(page, 3)
    expect(strip.locator("[aria-current=true]")).to_have_attribute(
        "aria-label", "Rank 3, not relevant"
    )
    press(page, "r")  # a change of mind is the last judgment
    strip_shows(page, "Rank 3, relevant", "Rank 7, relevant")
    saved(page)
    page.reload()
    strip_shows(page, "Rank 3, relevant", "Rank 7, relevant", "Rank 5, not relevant")
    expect(strip.locator("img[src]").first).to_be_attached()
    sources = strip.locator("img[src]").evaluate_all(
        "all => all.map(one => new URL(one.src)).map(one => one.pathname + one.search)"
    )
    assert set(sources) <= {known[rank]["thumbnail_url"] for rank in (1, 2, 3, 4, 5, 7)}
    wait_painted(page, 4)

    # The details are as they were left.
    page.locator("[data-chart] svg").scroll_into_view_if_needed()
    place = box(page.locator("[data-chart] svg"))
    middle = (place["x"] + place["width"] / 2, place["y"] + 60)
    page.mouse.move(*middle)
    readout = page.locator("[data-chart-readout]")
    expect(readout).to_contain_text("relevant, similarity")
    rank = int(readout.inner_text().split(":")[0].removeprefix("Rank "))
    assert 1 < rank < 50
    page.mouse.click(*middle)
    wait_painted(page, rank)
    chart_says(page, "relevant", rank=rank, to=50)
    page.get_by_role("button", name="Show the whole list").click()
    chart_says(page, "relevant", rank=rank, to=150)

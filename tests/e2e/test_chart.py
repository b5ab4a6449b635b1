"""The live chart and the strip of the last judgments, beside the picture."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.e2e import tiles
from tests.e2e.conftest import PHONE
from tests.e2e.labeling import open_label_page, press
from tests.site import Site

pytestmark = pytest.mark.e2e

NOT = "not_relevant"


@pytest.fixture(autouse=True)
def usual_view(site: Site) -> Iterator[None]:
    """The page as nobody has changed it, for these tests and others."""
    tiles.prefer(site, "ann")
    yield
    tiles.prefer(site, "ann")


def chart_says(page: Page, words: str, **numbers: int) -> None:
    """The sentence under the chart, and the numbers that it is drawn from."""
    expect(page.locator("[data-chart-words]")).to_contain_text(words)
    for name, number in numbers.items():
        expect(page.locator("[data-chart]")).to_have_attribute(f"data-{name}", str(number))


def strip(page: Page) -> list[str]:
    """What the strip shows; it is drawn when the picture that follows a judgment was painted."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    return page.locator("[data-last-judged] button").evaluate_all(
        "all => all.map(one => one.getAttribute('aria-label'))"
    )


def test_the_chart_follows_every_label(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a bird on a wire, with a chart")
    page = log_in("ann")
    open_label_page(page, site, query)
    chart_says(page, "Nothing is labeled yet.", judged=0, relevant=0, rank=1)
    press(page, "r", 2)
    press(page, "n", 3)
    press(page, "u", 1)
    chart_says(
        page,
        "2 relevant in the first 6; the last at rank 2. 4 negatives in a row.",
        **{
            "judged": 6,
            "relevant": 2,
            "last-relevant": 2,
            "streak": 4,
            "streak-from": 3,
            "rank": 7,
        },
    )
    scores = [tiles.candidates(site, "ann", query)[rank]["score"] for rank in (1, 6)]
    expect(page.locator("[data-chart-words]")).to_contain_text(
        f"Similarity falls from {scores[0]:.3f} to {scores[1]:.3f}."
    )
    page.keyboard.press("z")
    chart_says(page, "2 relevant in the first 5", judged=5, streak=3, rank=6)

    page.keyboard.press("ArrowRight")  # a gap: what follows is counted, the streak waits
    expect(page.locator("[data-single][data-painted='7']")).to_be_visible()
    press(page, "r", 1)
    chart_says(
        page,
        "3 relevant among 6 labeled; the last at rank 7. 3 negatives in a row.",
        **{"judged": 6, "last-relevant": 7, "streak": 3, "streak-from": 3},
    )


def test_the_curves_are_drawn_where_the_labels_are(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a deer in grass, with a chart")
    tiles.label(
        site, "ann", query, dict.fromkeys(range(1, 31), NOT) | {10: "relevant", 20: "relevant"}
    )
    page = log_in("ann")
    open_label_page(page, site, query)
    chart_says(page, "2 relevant in the first 30", to=50)
    found = page.evaluate(
        """() => {
          const points = (of) => document.querySelector(`.chart-${of}`).getAttribute("d").slice(1)
            .split("L").map((one) => one.split(" ").map(Number));
          const box = document.querySelector(".chart-streak");
          return {
            found: points("found"),
            score: points("score"),
            streak: [Number(box.getAttribute("x")), Number(box.getAttribute("width"))],
            here: Number(document.querySelector(".chart-here").getAttribute("x1")),
          };
        }"""
    )
    heights = [y for _, y in found["found"]]
    assert heights == sorted(heights, reverse=True)  # found never falls, and up is less
    assert len(set(heights)) == 3
    left, right = found["found"][0][0], found["found"][-1][0]
    place = {rank: left + (right - left) * (rank - 1) / 29 for rank in (21, 30, 31)}
    assert found["streak"][0] == pytest.approx(place[21], abs=1)
    assert sum(found["streak"]) == pytest.approx(place[30], abs=1)
    assert found["here"] == pytest.approx(place[31], abs=1)
    falls = [y for _, y in found["score"]]
    assert falls[-1] > falls[0]

    page.get_by_role("button", name="Show the whole list").click()
    chart_says(page, "2 relevant in the first 30", to=150)


def test_the_chart_leads_to_a_rank(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a crab in a net, with a chart")
    page = log_in("ann")
    open_label_page(page, site, query)
    box = page.locator("[data-chart] svg").bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60)
    expect(page.locator("[data-chart-readout]")).to_contain_text("0 relevant, similarity")
    told = page.locator("[data-chart-readout]").inner_text()
    rank = int(told.split(":")[0].removeprefix("Rank "))
    assert 1 < rank < 50
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 60)
    expect(page.locator(f"[data-single][data-painted='{rank}']")).to_be_visible()
    expect(page.locator("[data-chart]")).to_have_attribute("data-rank", str(rank))


def test_a_list_of_5000_is_thinned_to_the_pixels(script_page: Page) -> None:
    found = script_page.evaluate(
        """async () => {
          const { curve, extent, inWords, line, ticks } =
            await import("/static/js/studio/chart.js");
          const relevant = new Set([3, 4000, 4100]);
          const store = {
            size: 5000,
            entry: (rank) => ({
              rank,
              score: 1 - rank / 5000,
              relevance: rank > 4500 ? null : relevant.has(rank) ? "relevant" : "not_relevant",
              withdrawn: rank === 4200,
            }),
          };
          const data = curve(store, { prefix: 4500, streak: 399 });
          const x = (rank) => rank / 20;
          const values = (path) => path.slice(1).split("L").map((one) => Number(one.split(" ")[1]));
          return {
            words: inWords(data),
            judged: data.judged,
            streakFrom: data.streakFrom,
            to: [
              extent(data, 5000, 4501, false),
              extent(data, 5000, 1, true),
              extent(data, 20, 1, false),
            ],
            found: values(line(data.found, 1, 5000, x, (value) => value)),
            ticks: [ticks(0, 4, 4), ticks(1, 5000, 5), ticks(0.12, 0.31, 3)],
          };
        }"""
    )
    assert found["words"] == (
        "3 relevant among 4,499 labeled; the last at rank 4,100. 399 negatives in a row. "
        "Similarity falls from 1.000 to 0.100."
    )
    assert found["judged"] == 4499
    assert found["streakFrom"] == 4101
    assert found["to"] == [5000, 5000, 20]
    assert len(found["found"]) <= 2 * 251
    assert set(found["found"]) == {0, 1, 2, 3}
    assert found["ticks"] == [
        [0, 1, 2, 3, 4],
        [1000, 2000, 3000, 4000, 5000],
        [0.2, 0.3],
    ]


def test_the_strip_leads_back_to_a_judgment(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a fox on ice, with a strip")
    known = tiles.candidates(site, "ann", query)
    page = log_in("ann")
    open_label_page(page, site, query)
    expect(page.locator("[data-last-judged]")).to_contain_text("Your last judgments will be here.")
    height = page.locator("[data-strip]").evaluate("one => one.offsetHeight")
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    press(page, "r")
    press(page, "n", 2)
    press(page, "u")
    assert strip(page) == [
        "Rank 4, unsure",
        "Rank 3, not relevant",
        "Rank 2, not relevant",
        "Rank 1, relevant",
    ]
    # Drawn from the images that were on the screen.
    drawn = page.locator("[data-last-judged] canvas").evaluate_all(
        "all => all.map(one => one.getContext('2d').getImageData(44, 44, 1, 1).data[3])"
    )
    assert drawn == [255] * 4
    assert not [one for one in requested if "-thumb" in one]
    assert page.locator("[data-strip]").evaluate("one => one.offsetHeight") == height

    page.locator("[data-last-judged]").get_by_role("button", name="Rank 2, not relevant").click()
    expect(page.locator("[data-single][data-painted='2']")).to_be_visible()
    expect(page.locator("[data-last-judged] [aria-current=true]")).to_have_attribute(
        "aria-label", "Rank 2, not relevant"
    )
    press(page, "r")  # a change of mind is the last judgment
    assert strip(page)[:2] == ["Rank 2, relevant", "Rank 4, unsure"]
    page.keyboard.press("z")
    expect(page.locator("[data-last-judged]")).to_contain_text("✕")
    assert "Rank 2, not relevant" in strip(page)
    tiles.wait_saved(page)
    before = strip(page)
    page.reload()
    expect(page.locator("[data-last-judged] button")).to_have_count(4)
    assert strip(page) == before
    expect(page.locator("[data-last-judged] img[src]").first).to_be_attached()
    sources = page.locator("[data-last-judged] img[src]").evaluate_all(
        "all => all.map(one => new URL(one.src).pathname)"
    )
    assert set(sources) <= {known[rank]["thumbnail_url"] for rank in (4, 3, 2, 1)}

    first = page.locator("[data-last-judged] button").first
    first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("[data-single][data-painted='2']")).to_be_visible()


def test_the_strip_holds_the_last_twenty_and_a_page_counts_one_by_one(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a gull at sea, with a strip")
    page = log_in("ann", viewport=PHONE, has_touch=True, is_mobile=True)
    tiles.open_grid(page, site, "ann", query, size=24)
    tiles.tile(page, 24).tap()
    page.get_by_role("button", name="Submit page").tap()
    tiles.wait_seen(page, 25)
    assert strip(page) == [
        "Rank 24, relevant",
        *(f"Rank {r}, not relevant" for r in range(23, 4, -1)),
    ]
    page.locator("[data-last-judged] button").first.tap()
    tiles.wait_seen(page, 24)
    expect(tiles.tile(page, 24)).to_have_attribute("tabindex", "0")

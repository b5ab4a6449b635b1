"""Names and texts that are one long word: no page gets wider, and its buttons stay in sight."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.axe import wider_than_window
from tests.e2e.conftest import DESKTOP, NARROW
from tests.e2e.labeling import box, open_label_page, press
from tests.processes import wait_for
from tests.site import Site

pytestmark = pytest.mark.e2e

WORD = "W" * 60
ANN, OTTO, RITA, ADA = (WORD + name for name in ("ann", "otto", "rita", "ada"))

#: What a page has to press, and lies wholly or in part outside the window.
OUTSIDE = """() =>
  [...document.querySelectorAll('button, .button, input, select, summary, .site-user *')]
    .filter((one) => one.checkVisibility() && !one.closest('.visually-hidden, .skip-link, .board'))
    .filter((one) => { const { left, right, width } = one.getBoundingClientRect();
                       return width && (left < -1 || right > innerWidth + 1); })
    .map((one) => `outside: ${one.className} ${one.textContent.trim().slice(0, 20)}`)"""


def rename_a_species(site: Site, scientific: str, vernacular: str) -> list[str]:
    """Give the first species these names; those that it had."""
    with site.served.database() as cursor:
        cursor.execute("SELECT id, scientific_name FROM retrieval_species ORDER BY id LIMIT 1")
        species, before = cursor.fetchone()
        cursor.execute(
            "SELECT id, name FROM retrieval_speciesname WHERE species_id = %s ORDER BY id LIMIT 1",
            [species],
        )
        name, vernacular_before = cursor.fetchone()
        cursor.execute(
            "UPDATE retrieval_species SET scientific_name = %s WHERE id = %s", [scientific, species]
        )
        cursor.execute(
            "UPDATE retrieval_speciesname SET name = %s WHERE id = %s", [vernacular, name]
        )
    return [before, vernacular_before]


@pytest.fixture(scope="module")
def pages(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The addresses of pages that show such words: as names of people, species, releases and runs,
    texts, guidelines, reasons."""
    roles = {ANN: "annotator", OTTO: "annotator", RITA: "reviewer", ADA: "admin"}
    site.create_users(roles)
    names = rename_a_species(site, "W" * 80, "W" * 90)
    queries = []
    for text, split in ((WORD, "test"), ("W" * 200, "test"), ("W" * 199, "val")):
        query = site.open_query(text, split=split, guidelines="W" * 300)
        listed = [one["image"] for one in site.candidates("ada", query, limit=60)["results"]]
        site.judge(ANN, query, dict.fromkeys(listed[:30:3], "relevant").items())
        site.judge(ANN, query, dict.fromkeys(listed[1:30:3], "not_relevant").items())
        site.judge(OTTO, query, dict.fromkeys(listed[:30:6], "unsure").items())
        queries.append(query)
    open_, *complete = queries
    handed_in = {"state": "submitted", "give_up": "other", "note": "W" * 200}
    site.api(ANN, "PATCH", f"/api/queries/{open_}/", handed_in)
    for query in complete:
        decided = {"state": "complete", "note": "W" * 150}
        site.api(RITA, "PATCH", f"/api/queries/{query}/", decided)
    release = site.api(ADA, "POST", "/api/releases/", {"name": WORD})["id"]
    wait_for(
        lambda: site.api(ADA, "GET", f"/api/releases/{release}/")["state"] == "done",
        what="the release",
    )
    number = site.api(ADA, "GET", f"/api/queries/{complete[0]}/")["query_id"]
    file = tmp_path_factory.mktemp("runs") / "run.trec"
    file.write_text(
        "".join(
            f"{one} Q0 {image} {rank} {100 - rank} upload\n"
            for one in site.completed()
            for rank, image in enumerate(listed, start=1)
        )
    )
    told = ("submit_run", str(release), str(file), "--publish", "--wait", "--name")
    site.served.manage(
        "shell",
        "-c",
        "from django.core.management import call_command\n"
        + "".join(f"call_command(*{(*told, name)})\n" for name in ("W" * 100, "W" * 99)),
    )
    runs = site.api(ADA, "GET", f"/api/releases/{release}/runs/")["results"]
    first, second = (one["id"] for one in runs if one["name"].startswith("WWW"))
    yield [
        "/",
        *(f"/queries/{query}/" for query in queries),
        *(f"/queries/{open_}/{name}/" for name in ("edit", "delete", "review", "complete")),
        f"/search/?text={WORD}",
        "/corpus/",
        "/releases/",
        f"/releases/{release}/",
        *(
            f"/releases/{release}/{name}/"
            for name in ("statistics", "leaderboard", "correlations", "bias", "submit", "rerank")
        ),
        "/runs/",
        f"/runs/{first}/",
        f"/runs/{first}/queries/{number}/",
        f"/runs/{first}/card/",
        f"/runs/compare/?a={first}&b={second}",
        f"/{WORD}/",
        # Last, since the studio has a frame of its own.
        f"/queries/{open_}/label/",
    ]
    # Other tests look for the species by its own names.
    rename_a_species(site, *names)


def test_every_page_stays_in_the_window(
    site: Site, log_in: Callable[..., Page], pages: list[str]
) -> None:
    found: dict[tuple[str, int], Any] = {}
    page = log_in(ADA, viewport=NARROW)
    for path in pages:
        answer = page.goto(site.url + path)
        assert answer is not None
        assert answer.ok or path == f"/{WORD}/", path
        page.wait_for_load_state("load")
        for size in (NARROW, DESKTOP):
            page.set_viewport_size(size)
            problems = [*wider_than_window(page), *page.evaluate(OUTSIDE)]
            if problems:
                found[path, size["width"]] = problems
        page.set_viewport_size(NARROW)
    assert found == {}


def test_whole_words_stay_whole(site: Site, log_in: Callable[..., Page], pages: list[str]) -> None:
    """At 360 pixels no button breaks a word of its own."""
    page = log_in(OTTO, viewport=NARROW)
    open_label_page(page, site, int(pages[-1].split("/")[2]))
    bar = page.locator("[data-bar=single]")
    heights = {
        name: box(bar.locator(f"[data-do={name}]"))["height"] for name in ("relevant", "unsure")
    }
    line = float(
        bar.locator("[data-do=relevant]").evaluate(
            "one => parseFloat(getComputedStyle(one).lineHeight)"
        )
    )
    text = bar.locator("[data-do=relevant]").evaluate(
        "one => { const range = document.createRange(); range.selectNodeContents(one);"
        " return range.getBoundingClientRect().height; }"
    )
    assert heights["relevant"] == heights["unsure"]
    assert text < 1.5 * line


def test_where_the_streak_waits_lies_over_nothing_else(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a wren that waits")
    page = log_in("otto")
    open_label_page(page, site, query)
    press(page, "s")
    press(page, "n")
    expect(page.locator("[data-gap]")).to_have_text("waits at rank 1")
    for width in (900, 1024, 1366):
        page.set_viewport_size({"width": width, "height": 800})
        shown = page.locator(".meters > div, .saved").evaluate_all(
            "all => all.filter((one) => one.checkVisibility()).map((one) => {"
            " const range = document.createRange(); range.selectNodeContents(one);"
            " const { left, right } = range.getBoundingClientRect(); return [left, right]; })"
        )
        assert len(shown) >= 4
        for (_, right), (left, _) in pairwise(shown):
            assert right <= left + 1, width
        assert shown[-1][1] <= width

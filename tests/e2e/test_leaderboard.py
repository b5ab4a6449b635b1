"""The leaderboard in a browser: sorting by keys, every page by machine's rules, the file alone."""

from __future__ import annotations

import io
import urllib.request
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from playwright.sync_api import Browser, Page, Route, expect

from tests.e2e.axe import problems
from tests.e2e.conftest import DESKTOP
from tests.processes import wait_for
from tests.site import Site

pytestmark = pytest.mark.e2e


@dataclass
class Board:
    """A release with baselines and an uploaded run."""

    release: int
    queries: list[int]
    run: int
    baseline: int


#: All by one process, since each takes seconds to start.
MAKE_RUNS = """
from evaluation.runs.models import Run
from django.core.management import call_command
call_command(
    *("submit_run", "{0}", {1!r}, "--name", {2!r}, "--parameters", "150", "--publish", "--wait")
)
run = Run.objects.get(release={0}, kind="upload")
call_command("rerank_run", str(run.pk), "--depth", "50", "--model", {3!r}, "--wait")
"""


@pytest.fixture(scope="module")
def board(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Board:
    """Two queries of the test split and one of the validation split; runs in one and two stages."""
    numbers = []
    for text, split, category in (
        ("a finch for the leaderboard", "test", "Species ID"),
        ("a beetle for the leaderboard", "test", "Human Impact"),
        ("a snail for the leaderboard", "val", "Species ID"),
    ):
        query = site.open_query(text, split=split, category=category)
        listed = [one["image"] for one in site.candidates("ann", query, limit=60)["results"]]
        site.judge("ann", query, dict.fromkeys(listed[:30:3], "relevant").items())
        site.judge("ann", query, dict.fromkeys(listed[1:30:3], "not_relevant").items())
        site.api("ada", "PATCH", f"/api/queries/{query}/", {"state": "complete", "note": "Enough."})
        numbers.append(site.api("ada", "GET", f"/api/queries/{query}/")["query_id"])
    release = site.api("ada", "POST", "/api/releases/", {"name": "Board"})["id"]
    wait_for(
        lambda: site.api("ada", "GET", f"/api/releases/{release}/")["state"] == "done",
        what="the release",
    )
    job = site.api("ada", "POST", f"/api/releases/{release}/baselines/")["id"]
    wait_for(
        lambda: site.api("ada", "GET", f"/api/jobs/{job}/")["state"] == "done",
        what="the baselines",
        seconds=120,
    )
    file = tmp_path_factory.mktemp("runs") / "run.trec"
    file.write_text(
        "".join(
            f"{number} Q0 {image} {rank} {100 - rank} upload\n"
            for number in site.completed()
            for rank, image in enumerate(listed, start=1)
        )
    )
    name = "An uploaded run with a name that is much longer than anybody would like to read"
    model = site.candidates("ada", query, limit=1)["list"]["model"]
    site.served.manage("shell", "-c", MAKE_RUNS.format(release, str(file), name, model))
    runs = site.api("ada", "GET", f"/api/releases/{release}/runs/")["results"]
    by_kind = {one["kind"]: one["id"] for one in runs}
    return Board(release, numbers, run=by_kind["upload"], baseline=by_kind["model"])


COMPETING = "table[data-board]:not([data-bounds])"
BOUNDS = "table[data-bounds]"


def names(page: Page) -> list[str]:
    """The methods that compete, in the order shown."""
    texts: list[str] = page.locator(f"{COMPETING} .board-title").all_inner_texts()
    return [text.strip() for text in texts]


def figures(page: Page, table: str) -> list[float]:
    """The figures of the first column that has some, in the order shown."""
    cells = page.locator(f"{table} tbody tr td:nth-child(4)")
    return [
        float(one) for one in cells.evaluate_all("cells => cells.map((one) => one.dataset.value)")
    ]


def test_headers_sort_at_once_by_keyboard(log_in: Any, site: Site, board: Board) -> None:
    page = log_in("ada")
    page.goto(f"{site.url}/releases/{board.release}/leaderboard/")
    header = page.locator(f"{COMPETING} thead th", has_text="mAP@50")
    expect(header).to_have_attribute("aria-sort", "descending")
    assert len(names(page)) >= 3
    assert len(figures(page, BOUNDS)) == 4
    visits: list[str] = []
    page.on(
        "request",
        lambda request: (
            visits.append(request.url) if request.resource_type in {"document", "fetch"} else None
        ),
    )
    header.get_by_role("link").focus()
    page.keyboard.press("Enter")
    expect(header).to_have_attribute("aria-sort", "ascending")
    # Both tables, by one header.
    for table in (COMPETING, BOUNDS):
        assert figures(page, table) == sorted(figures(page, table))
    expect(page.locator(f"{BOUNDS} [aria-sort]")).to_have_attribute("aria-sort", "ascending")
    assert visits == []
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    method = page.locator(f"{COMPETING} thead th", has_text="Method")
    expect(method).to_have_attribute("aria-sort", "ascending")
    assert names(page) == sorted(names(page), key=str.casefold)
    by_name = names(page)
    page.reload()
    assert names(page) == by_name

    # Runs in two stages stay under their first.
    page.goto(f"{site.url}/releases/{board.release}/leaderboard/?stages=under")
    page.locator(COMPETING).get_by_role("link", name="mAP@50").click()
    found = page.evaluate(
        "() => [...document.querySelector('table[data-board]').tBodies].map((body) =>"
        " [...body.rows].map((row) =>"
        " [row.classList.contains('board-under'), Number(row.children[3].dataset.value)]))"
    )
    assert sorted(map(len, found)) == [1, 1, 2]
    assert all([under for under, _ in family] == [False, True][: len(family)] for family in found)
    heads = [family[0][1] for family in found]
    assert heads == sorted(heads)


def test_every_page_fits_and_keeps_the_rules(log_in: Any, site: Site, board: Board) -> None:
    page = log_in("ada")
    wrong = []
    pages = (
        f"/releases/{board.release}/leaderboard/",
        f"/releases/{board.release}/leaderboard/?view=category",
        f"/releases/{board.release}/leaderboard/?view=measures&split=both",
        f"/releases/{board.release}/leaderboard/?column=P@10&column=Bpref&column=RBPresidual",
        f"/releases/{board.release}/analysis/",
        f"/releases/{board.release}/leaderboard/?task=rerank",
        f"/releases/{board.release}/bias/",
        f"/runs/{board.run}/",
        f"/runs/{board.run}/queries/{board.queries[0]}/?other={board.baseline}",
        f"/runs/compare/?a={board.run}&b={board.baseline}",
    )
    if "correlations" in settings.EXTRAS:
        pages = (*pages, f"/releases/{board.release}/correlations/")
    for path in pages:
        page.goto(site.url + path)
        wrong += problems(page)
    assert wrong == []


def test_the_exported_page_needs_no_network(
    browser: Browser, site: Site, board: Board, tmp_path: Path
) -> None:
    file = tmp_path / "leaderboard.html"
    address = f"{site.url}/api/releases/{board.release}/leaderboard.html"
    asking = urllib.request.Request(address, headers=site.headers("ada"))
    with urllib.request.urlopen(asking, timeout=60) as answer:
        file.write_bytes(answer.read())
    context = browser.new_context(viewport=DESKTOP, offline=True)
    page = context.new_page()
    asked: list[str] = []
    errors: list[str] = []

    def refuse(route: Route) -> None:
        asked.append(route.request.url)
        route.abort()

    page.route(lambda url: not url.startswith(("file:", "data:")), refuse)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on(
        "console",
        lambda message: errors.append(message.text) if message.type == "error" else None,
    )
    page.goto(file.as_uri())
    table = page.locator("table[data-board]").first
    expect(table).to_be_visible()
    expect(page.locator("svg").first).to_be_visible()
    header = table.locator("thead th:visible", has_text="mAP@50")
    expect(header).to_have_attribute("aria-sort", "descending")
    header.get_by_role("button").focus()
    page.keyboard.press("Enter")
    expect(header).to_have_attribute("aria-sort", "ascending")
    light = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") != light
    page.evaluate(
        "() => document.querySelectorAll('details').forEach((one) => { one.open = true })"
    )
    assert problems(page) == []
    assert (asked, errors) == ([], [])
    context.close()


def test_the_website_sorts_and_filters_from_a_disk(
    browser: Browser, site: Site, board: Board, tmp_path: Path
) -> None:
    address = f"{site.url}/api/releases/{board.release}/leaderboard.zip"
    asking = urllib.request.Request(address, headers=site.headers("ada"))
    with urllib.request.urlopen(asking, timeout=60) as answer:
        zipfile.ZipFile(io.BytesIO(answer.read())).extractall(tmp_path)
    [folder] = tmp_path.iterdir()
    page = browser.new_page(viewport=DESKTOP)
    asked: list[str] = []
    errors: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((folder / "index.html").as_uri())
    rows = page.locator(f"{COMPETING} tbody tr:visible")
    bounds = page.get_by_role("heading", name="Best possible re-ranks")
    whole = rows.count()
    assert whole >= 3
    expect(page.locator("svg:visible").first).to_be_visible()
    expect(page.get_by_role("status")).to_have_text(f"{whole} methods")

    # Filters, of all sections at once.
    page.get_by_label("Size").select_option("100 to 500 M")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("An uploaded run")
    expect(page.get_by_role("status")).to_contain_text(f"1 of {whole} methods")
    page.get_by_role("link", name="Re-ranking, validation").click()
    expect(rows).to_have_count(0)
    page.get_by_role("link", name="Full ranking, validation").click()
    expect(rows).to_have_count(1)
    page.get_by_role("button", name="Show all").click()
    expect(rows).to_have_count(whole)
    page.get_by_label("Search").fill("RANDOM")
    expect(rows).to_have_count(1)
    expect(bounds.filter(visible=True)).to_have_count(0)
    page.get_by_label("Search").fill("")

    # A column that isn't shown at first, by which the table is then sorted.
    column = page.locator(f"{COMPETING} thead").get_by_role("button", name="P@10", exact=True)
    expect(column.filter(visible=True)).to_have_count(0)
    page.locator("summary:visible", has_text="Columns").click()
    page.locator("label:visible", has_text="P@10").get_by_label("P@10", exact=True).check()
    column.filter(visible=True).click()
    shown = rows.locator("td:visible:nth-last-child(2)")
    found = [float(one) for one in shown.evaluate_all("all => all.map((one) => one.dataset.value)")]
    assert found == sorted(found, reverse=True)

    inside = {path.as_uri() for path in folder.iterdir()}
    assert {url.split("#")[0] for url in asked} <= inside
    assert errors == []
    page.close()

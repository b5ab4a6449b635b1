"""Labeling in the order that learns: revisions come meanwhile, and nothing is lost by them."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.labeling import painted, saved, shown, wait_painted
from tests.e2e.outboxes import images_of
from tests.e2e.tiles import label
from tests.site import Site

pytestmark = pytest.mark.e2e

#: The ranks of what is relevant, far behind what a person sees at first.
WANTED = frozenset(range(100, 130))


def open_learned(page: Page, site: Site, query: int) -> None:
    page.goto(f"{site.url}/queries/{query}/label/?order=learned")
    expect(page.locator("[data-single][data-painted]")).to_be_visible()


def work(page: Page, count: int) -> list[tuple[int, str]]:
    """Label so many images by their ranks; the (rank, key) of each."""
    done = []
    for _ in range(count):
        rank = int(shown(page, "rank").inner_text())
        wait_painted(page, rank)
        key = "r" if rank in WANTED else "n"
        page.keyboard.press(key)
        done.append((rank, key))
        expect(shown(page, "rank")).not_to_have_text(str(rank))
    return done


def stored(site: Site, query: int) -> list[dict[str, Any]]:
    found = site.api("ann", "GET", f"/api/queries/{query}/judgments/?limit=500")
    return list(found["results"])


def test_revisions_come_while_one_labels(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a heron at dusk")
    label(site, "ann", query, {110: "relevant", 1: "not_relevant"})
    page = log_in("ann")
    open_learned(page, site, query)
    expect(page.locator("[data-revision]")).to_have_text(", revision 1")
    expect(shown(page, "why")).to_have_text("told once it is labeled")
    with page.expect_response("**/revisions/"):
        first = work(page, 10)
    expect(page.locator("[data-revision]")).to_have_text(", revision 2")
    more = work(page, 10)
    saved(page)
    ranks = [rank for rank, _ in first + more]
    assert len(set(ranks)) == 20
    rows = {row["rank"]: row for row in stored(site, query)}
    assert set(rows) == {1, 110, *ranks}
    queue = [rows[rank] for rank in ranks]
    assert {row["source"] for row in queue} == {"learned", "list"}
    # Each is stored at the place of the queue that it was met in.
    assert [row["place"] for row in queue[:10]] == list(range(1, 11))
    assert len({row["revision"] for row in queue}) == 2
    # The streak is that of the frozen prefix, whatever came in a row here.
    prefix = next(rank for rank in range(1, 200) if rank not in rows) - 1
    assert site.progress("ann", query)["prefix"] == prefix
    page.keyboard.press("ArrowLeft")
    expect(shown(page, "rank")).to_have_text(str(ranks[-1]))
    why = shown(page, "why").inner_text()
    assert why in ("learned, revision 1", "learned, revision 2", f"CLIP rank {ranks[-1]}")


def test_undo_and_redo_keep_how_an_image_was_found(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a heron at dawn")
    label(site, "ann", query, {110: "relevant", 1: "not_relevant"})
    page = log_in("ann")
    open_learned(page, site, query)
    [(rank, _)] = work(page, 1)
    saved(page)
    [before] = [row for row in stored(site, query) if row["rank"] == rank]
    page.keyboard.press("z")
    wait_painted(page, rank)
    expect(shown(page, "judged")).to_have_text("2")
    page.keyboard.press("y")
    expect(shown(page, "judged")).to_have_text("3")
    saved(page)
    [after] = [row for row in stored(site, query) if row["rank"] == rank]
    same = ("image", "source", "revision", "place", "relevance")
    assert [after[name] for name in same] == [before[name] for name in same]
    assert before["revision"] is not None


def test_nothing_is_lost_where_the_server_dies_and_the_network_is_cut(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a heron in the rain")
    label(site, "ann", query, {110: "relevant", 1: "not_relevant"})
    page = log_in("ann")
    open_learned(page, site, query)
    page.wait_for_function(
        "() => performance.getEntriesByType('resource')"
        ".filter(({ name }) => name.includes('/images/')).length > 40"
    )
    done = work(page, 12)
    page.context.set_offline(True)
    done += work(page, 12)
    page.context.set_offline(False)
    done += work(page, 5)
    for process in site.served.find("gunicorn"):
        process.send_signal(signal.SIGKILL)
    done += work(page, 5)
    site.served.wait_healthy()
    done += work(page, 12)
    saved(page, timeout=60_000)
    ranks = [rank for rank, _ in done]
    assert len(set(ranks)) == len(ranks) == 46
    images = images_of(site, query, 150)
    names = {"r": "relevant", "n": "not_relevant"}
    expected = {images[rank - 1]: (rank, names[key]) for rank, key in done}
    rows = {row["image"]: (row["rank"], row["relevance"]) for row in stored(site, query)}
    assert rows == expected | {images[109]: (110, "relevant"), images[0]: (1, "not_relevant")}
    assert painted(page) not in ranks
    number = site.api("ann", "GET", f"/api/queries/{query}/")["query_id"]
    assert "revisions" in site.served.manage("verify_lists", "--query", str(number)).stdout

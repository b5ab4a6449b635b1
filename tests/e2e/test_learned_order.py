"""Labeling in the order that learns: revisions come meanwhile, and nothing is lost by them."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.labeling import painted, saved, shown, wait_painted
from tests.e2e.tiles import label
from tests.site import Site

pytestmark = pytest.mark.e2e

#: The ranks of what is relevant, far behind what a person sees at first.
WANTED = frozenset(range(100, 130))
DISCONNECT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


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
    expect(shown(page, "why")).to_have_text("shown once you label it")
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
    why = shown(page, "why").text_content()
    assert why in ("learned, revision 1", "learned, revision 2", f"CLIP rank {ranks[-1]}")

    # Undone and done again, a judgment keeps how its image was found.
    before = rows[ranks[-1]]
    page.keyboard.press("z")
    wait_painted(page, ranks[-1])
    expect(shown(page, "judged")).to_have_text("21")
    page.keyboard.press("y")
    expect(shown(page, "judged")).to_have_text("22")
    saved(page)
    [after] = [row for row in stored(site, query) if row["rank"] == ranks[-1]]
    same = ("image", "source", "revision", "place", "relevance")
    assert [after[name] for name in same] == [before[name] for name in same]
    assert before["revision"] is not None


def test_nothing_is_lost_where_requests_connections_and_the_server_are(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a heron in the rain")
    label(site, "ann", query, {110: "relevant", 1: "not_relevant"})
    page = log_in("ann")
    open_learned(page, site, query)
    done = work(page, 12)
    for address in ("judgments", "revisions"):
        page.route(f"**/{address}/", lambda route: route.abort())
    done += work(page, 6)
    for address in ("judgments", "revisions"):
        page.unroute(f"**/{address}/")
    done += work(page, 4)
    with site.served.database() as cursor:
        cursor.execute(DISCONNECT)
    done += work(page, 4)
    for process in site.served.find("gunicorn"):
        process.send_signal(signal.SIGKILL)
    done += work(page, 4)
    site.served.wait_healthy()
    done += work(page, 4)
    saved(page, timeout=60_000)
    ranks = [rank for rank, _ in done]
    assert len(set(ranks)) == len(ranks)
    images = {one["rank"]: one["image"] for one in site.candidates("ann", query)["results"]}
    names = {"r": "relevant", "n": "not_relevant"}
    expected = {images[rank]: (rank, names[key]) for rank, key in done}
    rows = {row["image"]: (row["rank"], row["relevance"]) for row in stored(site, query)}
    assert rows == expected | {images[110]: (110, "relevant"), images[1]: (1, "not_relevant")}
    assert painted(page) not in ranks
    number = site.api("ann", "GET", f"/api/queries/{query}/")["query_id"]
    assert "revisions" in site.served.manage("verify_lists", "--query", str(number)).stdout

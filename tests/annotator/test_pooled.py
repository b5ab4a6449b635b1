"""The web server behind PgBouncer in transaction mode, with fewer connections than threads."""

from __future__ import annotations

import urllib.error
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import psycopg2
import pytest

from tests.e2e.conftest import start_site
from tests.processes import PGBOUNCER, pgbouncer, pool_url, wait_for
from tests.site import Site

pytestmark = pytest.mark.e2e

CONNECTIONS = 2
ACTS = 60


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A site whose web server reaches its database by a pool of CONNECTIONS."""
    if PGBOUNCER is None:
        pytest.skip("pgbouncer is not installed")
    made = start_site(tmp_path / "var", DATABASE_POOL_URL=pool_url())
    try:
        with pgbouncer(tmp_path, made.served, CONNECTIONS):
            made.served.wait_healthy()
            yield made
    finally:
        made.served.end()


def servers(site: Site) -> int:
    """How many connections to the database the pool has."""
    console = psycopg2.connect(site.served.environment["DATABASE_POOL_URL"], dbname="pgbouncer")
    try:
        console.autocommit = True
        with console.cursor() as cursor:
            cursor.execute("SHOW SERVERS")
            return len(cursor.fetchall())
    finally:
        console.close()


def test_requests_share_few_connections_and_nothing_is_lost(site: Site) -> None:
    query = site.open_query("a hopper on a stone")
    ids = [one["image"] for one in site.candidates("ann", query, limit=ACTS)["results"]]

    def act(image: int) -> None:
        site.judge("ann", query, [(image, "not_relevant")])
        site.api("rita", "GET", f"/api/queries/{query}/outline/")
        site.api("rita", "GET", "/api/species/?search=hop")

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(act, ids))
    assert 1 <= servers(site) <= CONNECTIONS
    judged = site.api("rita", "GET", f"/api/queries/{query}/judgments/?limit=100")
    assert {one["image"] for one in judged["results"]} == set(ids)


def test_a_pool_that_is_killed_is_waited_for(site: Site, tmp_path: Path) -> None:
    query = site.open_query("a moth at a lamp")
    first, second = (one["image"] for one in site.candidates("ann", query, limit=2)["results"])
    site.judge("ann", query, [(first, "relevant")])
    for process in psutil.process_iter():
        if str(tmp_path / "pgbouncer.ini") in _command(process):
            process.kill()
    with pytest.raises(urllib.error.HTTPError) as refused:
        site.judge("ann", query, [(second, "relevant")])
    assert (refused.value.code, refused.value.headers["Retry-After"]) == (503, "5")
    wait_for(lambda: site.served.health()["database"] == "unreachable", what="word of it")
    with pgbouncer(tmp_path, site.served, CONNECTIONS):
        site.served.wait_healthy()
        site.judge("ann", query, [(second, "relevant")])
        assert site.progress("ann", query)["judged"] == 2


def _command(process: psutil.Process) -> list[str]:
    with suppress(psutil.NoSuchProcess):
        return process.cmdline()
    return []

"""The web server behind PgBouncer in transaction mode, with fewer connections than threads, and
with a replica beside.
"""

from __future__ import annotations

import urllib.error
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg2
import pytest

from annotator.postgres.embedded import DATABASE
from annotator.postgres.guardian import DATABASE_USER, Layout
from tests.e2e.conftest import start_site
from tests.processes import PGBOUNCER, PgBouncer, database_url, pool_url, wait_for
from tests.site import Site
from tests.standby import Standby

pytestmark = pytest.mark.e2e

CONNECTIONS = 2
ACTS = 60


@pytest.fixture(scope="module")
def pooled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, PgBouncer]]:
    """A site whose web server reaches its database by a pool of CONNECTIONS, with an address of a
    replica that isn't there yet; and the pool.
    """
    if PGBOUNCER is None:
        pytest.skip("pgbouncer is not installed")
    folder = tmp_path_factory.mktemp("pooled")
    replica = {"HOST": Layout(folder / "standby").socket_dir, "USER": DATABASE_USER}
    made = start_site(
        folder / "var",
        DATABASE_POOL_URL=pool_url(),
        DATABASE_REPLICA_URL=database_url({**replica, "NAME": DATABASE}),
    )
    try:
        pool = PgBouncer(folder, made.served, CONNECTIONS)
        try:
            wait_for(
                lambda: made.served.health().get("status") == "degraded",
                seconds=90,
                what="a site without replica",
            )
            yield made, pool
        finally:
            pool.kill()
    finally:
        made.served.end()


@pytest.fixture
def site(pooled: tuple[Site, PgBouncer]) -> Site:
    return pooled[0]


@pytest.fixture
def pool(pooled: tuple[Site, PgBouncer]) -> PgBouncer:
    return pooled[1]


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


def test_search_reads_from_a_replica_beside_the_pool(site: Site) -> None:
    [species] = site.api("ann", "GET", "/api/species/?search=hop")["results"][:1]
    path, name = f"/api/species/{species['id']}/", species["scientific_name"]

    def read() -> str:
        return str(site.api("ann", "GET", path)["scientific_name"])

    standby = Standby(site.served.var_dir, site.served.var_dir.with_name("standby"))
    try:
        site.served.wait_healthy()
        with standby.halted(DATABASE):
            with site.served.database() as cursor:
                cursor.execute(
                    "UPDATE retrieval_species SET scientific_name = 'Bufo new' WHERE id = %s",
                    [species["id"]],
                )
            # Each of the web server's processes looks at the replica within some seconds.
            wait_for(lambda: read() == name, what="the replica's use")
            # The text's vector is asked for and stored on the primary.
            found = site.api("ann", "GET", "/api/search/?text=what+nobody+has+searched+for")
            assert found["results"]
        wait_for(lambda: read() == "Bufo new", what="the replica")
        standby.stop()
        assert read() == "Bufo new"
        parts = site.served.health()
        assert (parts["status"], parts["replica"]) == ("degraded", "unreachable")
    finally:
        standby.remove()


def test_a_pool_that_is_killed_is_waited_for(site: Site, pool: PgBouncer) -> None:
    query = site.open_query("a moth at a lamp")
    first, second = (one["image"] for one in site.candidates("ann", query, limit=2)["results"])
    site.judge("ann", query, [(first, "relevant")])
    pool.kill()
    with pytest.raises(urllib.error.HTTPError) as refused:
        site.judge("ann", query, [(second, "relevant")])
    assert (refused.value.code, refused.value.headers["Retry-After"]) == (503, "5")
    wait_for(lambda: site.served.health()["database"] == "unreachable", what="word of it")
    pool.start()
    wait_for(lambda: site.served.health()["database"] == "ok", what="the pool")
    site.judge("ann", query, [(second, "relevant")])
    assert site.progress("ann", query)["judged"] == 2

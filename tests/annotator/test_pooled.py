"""The web server behind PgBouncer in transaction mode, with fewer connections than threads, and
with a replica beside.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psycopg2
import pytest

from annotator.postgres.embedded import DATABASE
from annotator.postgres.guardian import DATABASE_USER, PORT, Layout
from tests.e2e.conftest import start_site
from tests.processes import database_url, free_port, wait_for
from tests.site import Site
from tests.standby import Standby

pytestmark = pytest.mark.e2e

PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
CONNECTIONS = 2
ACTS = 60


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site whose web server reaches its database by a pool of CONNECTIONS, with an address of a
    replica that isn't there yet.
    """
    if PROGRAM is None:
        pytest.skip("pgbouncer is not installed")
    folder, port = tmp_path_factory.mktemp("pooled"), free_port()
    var_dir = folder / "var"
    url = f"postgres://{DATABASE_USER}@127.0.0.1:{port}/{DATABASE}"
    replica = {"HOST": Layout(folder / "standby").socket_dir, "USER": DATABASE_USER}
    made = start_site(
        var_dir,
        DATABASE_POOL_URL=url,
        DATABASE_REPLICA_URL=database_url({**replica, "NAME": DATABASE}),
    )
    config, people = folder / "pgbouncer.ini", folder / "people.txt"
    people.write_text(f'"{DATABASE_USER}" ""\n')
    # As root it runs as PostgreSQL's own account, which may enter the socket's folder.
    account = f"user = {(var_dir / 'postgres').owner()}\n" if os.geteuid() == 0 else ""
    config.write_text(
        f"[databases]\n{DATABASE} = host={Layout(var_dir).socket_dir} port={PORT}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = trust\nauth_file = {people}\nadmin_users = {DATABASE_USER}\n"
        f"pool_mode = transaction\ndefault_pool_size = {CONNECTIONS}\n{account}"
    )
    pool = subprocess.Popen([PROGRAM, "-q", str(config)])

    def listens() -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return True
        return False

    try:
        wait_for(listens, what="PgBouncer")
        wait_for(
            lambda: made.served.health().get("status") == "degraded",
            seconds=90,
            what="a site without replica",
        )
        yield made
    finally:
        made.served.end()
        pool.kill()
        pool.wait()


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

"""The web server behind PgBouncer in transaction mode, with fewer connections than threads."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psycopg2
import pytest

from annotator.postgres.embedded import DATABASE
from annotator.postgres.guardian import DATABASE_USER, PORT, Layout
from tests.e2e.conftest import start_site
from tests.processes import ROOT, free_port, wait_for
from tests.site import Site

pytestmark = pytest.mark.e2e

PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
CONNECTIONS = 2
ACTS = 60


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A site whose web server reaches its database by a pool of CONNECTIONS."""
    if PROGRAM is None:
        pytest.skip("pgbouncer is not installed")
    var_dir, port = tmp_path / "var", free_port()
    url = f"postgres://{DATABASE_USER}@127.0.0.1:{port}/{DATABASE}"
    made = start_site(var_dir, DATABASE_POOL_URL=url)
    config, people = tmp_path / "pgbouncer.ini", tmp_path / "people.txt"
    people.write_text(f'"{DATABASE_USER}" ""\n')
    # As root it runs as PostgreSQL's own account, which may enter the socket's folder.
    account = f"user = {(var_dir / 'postgres').owner()}\n" if os.geteuid() == 0 else ""
    # As the pods have it, with this machine's database and without passwords.
    text = (ROOT / "deploy/kubernetes/base/pgbouncer.ini").read_text()
    for wanted, here in {
        "host=inquire-database port=5432": f"host={Layout(var_dir).socket_dir} port={PORT}",
        "listen_addr = 0.0.0.0": "listen_addr = 127.0.0.1",
        "listen_port = 6432": f"listen_port = {port}",
        "auth_type = scram-sha-256": f"auth_type = trust\nadmin_users = {DATABASE_USER}",
        "auth_file = /run/secrets/inquire/PGBOUNCER_USERS": f"auth_file = {people}",
        "default_pool_size = 20": f"default_pool_size = {CONNECTIONS}",
    }.items():
        assert wanted in text
        text = text.replace(wanted, here)
    config.write_text(f"{text}\n{account}")
    pool = subprocess.Popen([PROGRAM, "-q", str(config)])

    def listens() -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return True
        return False

    try:
        wait_for(listens, what="PgBouncer")
        made.served.wait_healthy()
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

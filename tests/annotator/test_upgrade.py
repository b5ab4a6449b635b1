"""A database of any released version becomes one of this version, and loses nothing."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg2
import pytest
from django.db import connection

from annotator.backup.archive import archive_header, archive_verify
from annotator.people.tokens import digest_of
from tests.annotator.kept_databases import FOLDER
from tests.processes import ROOT, database_url

#: Tables that a migration may change for reasons of its own.
DJANGOS = ("django_", "auth_permission")
OPENS_THE_API = """
from django.test import Client
for token in {tokens}:
    headers = {{"Authorization": f"Token {{token}}", "Host": "localhost"}}
    print(Client().get("/api/jobs/", headers=headers).status_code, end="")
"""
IS_WHOLE = """
from django.core.management import call_command
call_command("migrate", plan=True)
for name in ("migrate", "check_counts", "verify_lists"):
    call_command(name)
"""


@pytest.fixture
def database(db: None) -> Iterator[str]:
    """The name of an empty database beside the tests' own."""
    name = f"upgraded_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
    known = connection.settings_dict
    with closing(psycopg2.connect(host=known["HOST"], user=known["USER"], dbname="postgres")) as to:
        to.autocommit = True
        with to.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
            yield name
            cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.parametrize("kept", sorted(FOLDER.glob("*.sql.gz")), ids=lambda path: path.name)
def test_a_kept_database_migrates(kept: Path, database: str, tmp_path: Path) -> None:
    known = connection.settings_dict | {"NAME": database}
    own = psycopg2.connect(host=known["HOST"], user=known["USER"], dbname=database)
    own.autocommit = True
    with closing(own), own.cursor() as cursor:

        def counts() -> dict[str, int]:
            cursor.execute("SELECT relname FROM pg_stat_user_tables WHERE schemaname = 'public'")
            found = {}
            for (table,) in cursor.fetchall():
                cursor.execute(f"SELECT count(*) FROM public.{table}")
                found[table] = cursor.fetchone()[0]
            return {name: n for name, n in found.items() if not name.startswith(DJANGOS)}

        def manage(*arguments: str) -> str:
            environment = os.environ | {
                "DATABASE_URL": database_url(known),
                "VAR_DIR": str(tmp_path),
                "DJANGO_SETTINGS_MODULE": "annotator.settings",
            }
            done = subprocess.run(
                [sys.executable, "manage.py", *arguments],
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
                timeout=300,
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        cursor.execute(gzip.decompress(kept.read_bytes()).decode())
        before = counts()
        tokens = []
        if before.pop("authtoken_token", 0):  # version 0.1.0 stored them as they are
            cursor.execute("SELECT key FROM public.authtoken_token")
            tokens = [token for (token,) in cursor.fetchall()]
        assert before["labeling_judgmentevent"] > 0
        assert before["benchmark_release"] > 0
        assert "the database is in" in manage("migrate")
        after = counts()
        (dump,) = (tmp_path / "backups").iterdir()
        assert not archive_header(dump)["images"]
        assert archive_verify(dump)
        assert {name: after.get(name) for name in before} == before
        if tokens:
            assert "authtoken_token" not in after
            cursor.execute("SELECT digest FROM public.annotator_apitoken")
            assert {digest for (digest,) in cursor.fetchall()} == set(map(digest_of, tokens))
            answers = manage("shell", "-c", OPENS_THE_API.format(tokens=tokens))
            assert answers.endswith("200" * len(tokens))
        again = manage("shell", "-c", IS_WHOLE)
        assert "No planned migration operations" in again
        assert "the database is in" not in again
        assert "lists are the same bit for bit" in again


def test_the_present_version_is_kept() -> None:
    assert any(FOLDER.glob("*.sql.gz"))

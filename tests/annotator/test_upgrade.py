"""A database of any released version becomes one of this version, and loses nothing."""

from __future__ import annotations

import gzip
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from annotator.backup.archive import archive_header, archive_verify
from annotator.people.tokens import digest_of
from tests.annotator.beside import ask, database_beside, working_on
from tests.annotator.kept_databases import FOLDER

#: Tables that a migration may change for reasons of its own.
DJANGOS = ("django_", "auth_permission")
KEPT = sorted(FOLDER.glob("*.sql.gz"))
assert KEPT


def run(*arguments: str, **options: Any) -> str:
    """What a command writes."""
    output = StringIO()
    call_command(*arguments, stdout=output, **options)
    return output.getvalue()


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.name)
def test_a_kept_database_migrates(
    kept: Path, transactional_db: None, settings: Any, tmp_path: Path
) -> None:
    settings.VAR_DIR = tmp_path
    with database_beside("upgraded") as name, working_on(name):

        def counts() -> dict[str, int]:
            tables = ask(
                name, "SELECT relname FROM pg_stat_user_tables WHERE schemaname = 'public'"
            )
            return {
                table: ask(name, f"SELECT count(*) FROM public.{table}")[0][0]
                for (table,) in tables
                if not table.startswith(DJANGOS)
            }

        ask(name, gzip.decompress(kept.read_bytes()).decode())
        before = counts()
        tokens = []
        if before.pop("authtoken_token", 0):  # version 0.1.0 stored them as they are
            tokens = [token for (token,) in ask(name, "SELECT key FROM public.authtoken_token")]
        assert before["labeling_judgmentevent"] > 0
        assert before["benchmark_release"] > 0
        assert "the database is in" in run("migrate")
        after = counts()
        (dump,) = (tmp_path / "backups").iterdir()
        assert not archive_header(dump)["images"]
        assert archive_verify(dump)
        assert {name: after.get(name) for name in before} == before
        if tokens:
            assert "authtoken_token" not in after
            digests = ask(name, "SELECT digest FROM public.annotator_apitoken")
            assert {digest for (digest,) in digests} == set(map(digest_of, tokens))
            for token in tokens:
                client = Client(headers={"Authorization": f"Token {token}"})
                assert client.get("/api/jobs/").status_code == 200
        assert "No planned migration operations" in run("migrate", plan=True)
        assert "the database is in" not in run("migrate")
        run("check_counts")
        assert "lists are the same bit for bit" in run("verify_lists")

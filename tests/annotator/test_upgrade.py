"""A database of any version from 0.2.0 on becomes one of this version, and loses nothing; an older
one is left as it is."""

from __future__ import annotations

import gzip
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from annotator.backup.services import dump_write
from tests.annotator.beside import ask, database_beside, working_on
from tests.annotator.kept_databases import FOLDER
from tests.databases import MIGRATED

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
        assert before["labeling_judgmentevent"] > 0
        assert before["releases_release"] > 0
        due = "No planned migration operations" not in run("migrate", plan=True)
        assert ("the database is in" in run("migrate")) == due
        after = counts()
        assert {name: after.get(name) for name in before} == before
        assert "No planned migration operations" in run("migrate", plan=True)
        assert "the database is in" not in run("migrate")
        run("check_counts")
        assert "lists are the same bit for bit" in run("verify_lists")


def test_an_older_database_is_left_as_it_is(
    transactional_db: None, settings: Any, tmp_path: Path
) -> None:
    settings.VAR_DIR = tmp_path / "var"
    with database_beside("before", MIGRATED) as name, working_on(name):
        applied = (
            "INSERT INTO django_migrations (app, name, applied) VALUES ('benchmark', '1', now())"
        )
        ask(name, applied)
        with pytest.raises(CommandError, match=r"The database is of a version before 0\.2\.0"):
            run("migrate")
        backup = tmp_path / "older.tar"
        dump_write(backup)
    with database_beside("empty") as name, working_on(name):
        with pytest.raises(CommandError, match=r"The backup is of a version before 0\.2\.0"):
            run("restore", str(backup))
        assert ask(name, "SELECT to_regclass('django_migrations') IS NULL") == [(True,)]

"""Migrations while the version before serves: what they may do, and how they wait for locks."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.postgres.operations import AddConstraintNotValid
from django.core.management import CommandError, call_command
from django.db import connection, migrations, models
from django.db.migrations.loader import MigrationLoader

import extras
from annotator.management.commands import migrate as command
from core.locks import lock_key
from tests.annotator.beside import ask, database_beside, working_on
from tests.databases import MIGRATED, cursor_on
from tests.processes import wait_for
from tests.threads import WAITING, meanwhile

SQUAWK = shutil.which("squawk", path=Path(sys.executable).parent)
OURS = ["annotator", "core", "retrieval", "labeling", "releases", "evaluation"]
#: Rules of squawk that a migration breaks with a reason, which stands beside: as where a column
#: goes that the version before doesn't use any more.
ACCEPTED: dict[str, set[str]] = {
    # Of a table of a few rows.
    "retrieval.0002_model_in_use": {"require-concurrent-index-creation"},
}
EXCLUDED = [
    "require-lock-timeout",  # `migrate` sets it
    "require-statement-timeout",  # what is slow must not lock
    "ban-drop-constraint",  # takes a moment, and what was allowed stays allowed
    "prefer-robust-stmts",
    # Tastes.
    "prefer-bigint-over-int",
    "prefer-text-field",
    "prefer-identity",
]


def broken_rules(sql: str) -> set[str]:
    """The rules that a migration's SQL breaks. https://squawkhq.com/docs/rules"""
    assert SQUAWK, "squawk-cli is missing: install requirements-dev.txt"
    options = ["--pg-version", "16", "--reporter", "json", "--exclude", ",".join(EXCLUDED)]
    done = subprocess.run(
        [SQUAWK, *options, "--stdin-filepath", "migration.sql"],
        input=sql,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    return {one["rule_name"] for one in json.loads(done.stdout)}


def test_new_migrations_lock_briefly_and_leave_the_version_before_at_work(
    transactional_db: None,
) -> None:
    found = MigrationLoader(connection).disk_migrations
    # The first migration of each app makes its tables.
    new = [
        (app, one) for app, one in found if app in (*OURS, *extras.NAMES) and one != "0001_initial"
    ]
    assert {app for app, one in found if one == "0001_initial"} >= {*OURS}
    for app, name in new:
        sql = StringIO()
        call_command("sqlmigrate", app, name, stdout=sql)
        broken = broken_rules(sql.getvalue()) - ACCEPTED.get(f"{app}.{name}", set())
        assert not broken, f"{app}.{name}: {broken}. See CONTRIBUTING.md, “Change the database”."


COLUMN = {"null": True, "on_delete": models.CASCADE, "db_index": False}
POSITIVE = models.CheckConstraint(condition=models.Q(width__gt=0), name="width_positive")
IMAGE_INDEX = models.Index(fields=["width"], name="image_width")
NEW_TABLE = [
    ("id", models.BigAutoField(primary_key=True)),
    ("name", models.CharField(max_length=9, unique=True)),
    ("image", models.ForeignKey("retrieval.image", on_delete=models.CASCADE)),
]


def test_what_locks_or_breaks_is_told(db: None) -> None:
    add_column = migrations.AddField("image", "x", models.IntegerField(null=True))
    allowed = [add_column, AddConstraintNotValid("image", POSITIVE)]
    allowed.append(migrations.CreateModel("Fresh", NEW_TABLE))
    refused = {
        "ban-drop-default": migrations.AddField("image", "x", models.IntegerField(default=0)),
        "adding-foreign-key-constraint": migrations.AddField(
            "image", "x", models.ForeignKey("retrieval.species", **COLUMN)
        ),
        "require-concurrent-index-creation": migrations.AddIndex("image", IMAGE_INDEX),
        "constraint-missing-not-valid": migrations.AddConstraint("image", POSITIVE),
        "changing-column-type": migrations.AlterField("image", "width", models.TextField()),
        "ban-drop-column": migrations.RemoveField("image", "width"),
        "renaming-column": migrations.RenameField("image", "width", "across"),
        "ban-drop-table": migrations.DeleteModel("imageflag"),
    }
    assert broken_rules(sql_of(*allowed)) == set()
    assert broken_rules("".join(sql_of(one) for one in refused.values())) == refused.keys()


def sql_of(*operations: Any) -> str:
    """The SQL of a migration, each in its own transaction."""
    text = ""
    for operation in operations:
        migration = migrations.Migration("0099_try", "retrieval")
        migration.operations = [operation]
        state = MigrationLoader(connection).project_state()
        with connection.schema_editor(collect_sql=True, atomic=False) as editor:
            migration.apply(state, editor, collect_sql=True)
        text += "\n".join(["BEGIN;", *editor.collected_sql, "COMMIT;\n"])
    return text


@pytest.fixture
def older(transactional_db: None, settings: Any, tmp_path: Path) -> Iterator[str]:
    """The name of the database on which Django works now, which lacks the tables of one app."""
    settings.VAR_DIR = tmp_path
    with database_beside("older", MIGRATED) as name, working_on(name):
        ask(
            name,
            "DO $$ DECLARE one regclass; BEGIN "
            "FOR one IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relname ~ '^evaluation_' "
            "LOOP EXECUTE format('DROP TABLE %s CASCADE', one); END LOOP; END $$; "
            "DELETE FROM django_migrations WHERE app = 'evaluation'; "
            "INSERT INTO annotator_user (id, password, is_superuser, username, first_name, "
            "last_name, email, is_staff, is_active, date_joined, role, theme, time_zone) "
            "SELECT n, '', false, 'ann' || n, '', '', '', false, true, now(), 'annotator', "
            "'system', 'UTC' FROM generate_series(1, 2) n",
        )
        yield name


def migrate() -> str:
    """What `migrate` writes."""
    output = StringIO()
    call_command("migrate", stdout=output)
    return output.getvalue()


def migrated(name: str) -> bool:
    """Whether the migration that `older` lacks is applied."""
    return ask(name, "SELECT to_regclass('evaluation_run') IS NOT NULL") == [(True,)]


def test_a_migration_that_waits_for_a_lock_lets_requests_pass(
    older: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "PAUSE_SECONDS", 0.1)
    monkeypatch.setattr(command, "LOCK_SECONDS", 1)
    with cursor_on(older) as holding:
        holding.execute("BEGIN; UPDATE annotator_user SET first_name = 'Ann' WHERE id = 1")
        with meanwhile(migrate) as outputs:
            # While it tries again and again, others write to the table, each within some tries.
            for moment in range(2):
                wait_for(
                    lambda: ask(older, WAITING) != [(0,)], what="the migration to wait", pause=0.02
                )
                ask(
                    older,
                    "SET statement_timeout = '10s'; "
                    f"UPDATE annotator_user SET first_name = '{moment}' WHERE id = 2",
                )
            assert outputs == []
            assert not migrated(older)
            holding.execute("COMMIT")
    [output] = outputs
    assert migrated(older)
    assert output.count("Before version") == 1
    assert "waits: canceling statement due to lock timeout" in output


def test_a_lock_that_stays_is_told(older: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("TRIES", 2), ("PAUSE_SECONDS", 0), ("LOCK_SECONDS", 1)):
        monkeypatch.setattr(command, name, value)
    with cursor_on(older) as holding:
        holding.execute("BEGIN; UPDATE annotator_user SET first_name = 'Ann' WHERE id = 1")
        with pytest.raises(CommandError, match="Another session holds a lock"):
            migrate()
        holding.execute("ROLLBACK")
    assert not migrated(older)


def test_one_process_migrates_at_a_time(older: str) -> None:
    waits = (
        f"SELECT 1 FROM pg_stat_activity WHERE datname = '{older}' AND pid <> pg_backend_pid() "
        "AND query LIKE '%pg_try_advisory_lock%'"
    )
    with cursor_on(older) as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [lock_key("migrations")])
        with meanwhile(migrate) as first, meanwhile(migrate) as second:
            wait_for(lambda: len(ask(older, waits)) == 2, what="both to wait")
            assert not migrated(older)
            cursor.execute("SELECT pg_advisory_unlock(%s)", [lock_key("migrations")])
    assert migrated(older)
    outputs = [*first, *second]
    assert sum("Applying evaluation.0001_initial" in one for one in outputs) == 1

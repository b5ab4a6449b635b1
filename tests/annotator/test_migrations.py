"""Migrations while the version before serves: what they may do, and how they wait for locks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from django.contrib.postgres.operations import (
    AddConstraintNotValid,
    AddIndexConcurrently,
)
from django.core.management import call_command
from django.db import connection, migrations, models
from django.db.migrations.loader import MigrationLoader

from core.locks import lock_key
from tests.databases import MIGRATED
from tests.processes import ROOT, database_url, wait_for

SQUAWK = shutil.which("squawk", path=Path(sys.executable).parent)
OURS = ["annotator", "core", "retrieval", "labeling", "benchmark"]
#: The last migration of each app before the rule: what they did is done.
BEFORE_THE_RULE = {"annotator": 4, "core": 1, "retrieval": 5, "labeling": 17, "benchmark": 5}
#: Rules of squawk that a migration breaks with a reason, which stands beside: as where a column
#: goes that the version before doesn't use any more.
ACCEPTED: dict[str, set[str]] = {}
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


def number(name: str) -> int:
    """The number that a migration's name begins with."""
    return int(name.partition("_")[0])


def test_new_migrations_lock_briefly_and_leave_the_version_before_at_work(db: None) -> None:
    found = MigrationLoader(connection).disk_migrations
    new = [(app, one) for app, one in found if app in OURS and number(one) > BEFORE_THE_RULE[app]]
    assert {app for app, _ in found} >= {*OURS}
    assert ("annotator", "0005_token_requests") in new
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


@pytest.mark.parametrize(
    ("operation", "rule"),
    [
        (migrations.AddField("image", "x", models.IntegerField(null=True)), None),
        (migrations.AddField("image", "x", models.IntegerField(db_default=0)), None),
        (migrations.AddField("image", "x", models.IntegerField(default=0)), "ban-drop-default"),
        (
            migrations.AddField("image", "x", models.ForeignKey("retrieval.species", **COLUMN)),
            "adding-foreign-key-constraint",
        ),
        (migrations.AddIndex("image", IMAGE_INDEX), "require-concurrent-index-creation"),
        (AddIndexConcurrently("image", IMAGE_INDEX), None),
        (migrations.AddConstraint("image", POSITIVE), "constraint-missing-not-valid"),
        (AddConstraintNotValid("image", POSITIVE), None),
        (migrations.AlterField("image", "width", models.TextField()), "changing-column-type"),
        (migrations.RemoveField("image", "width"), "ban-drop-column"),
        (migrations.RenameField("image", "width", "across"), "renaming-column"),
        (migrations.DeleteModel("imageflag"), "ban-drop-table"),
        (migrations.CreateModel("Fresh", NEW_TABLE), None),
        (
            migrations.RunSQL("CREATE INDEX x ON retrieval_image (width)"),
            "require-concurrent-index-creation",
        ),
    ],
)
def test_what_locks_or_breaks_is_told(
    transactional_db: None, operation: Any, rule: str | None
) -> None:
    migration = migrations.Migration("0099_try", "retrieval")
    migration.operations = [operation]
    migration.atomic = not isinstance(operation, AddIndexConcurrently)
    state = MigrationLoader(connection).project_state()
    with connection.schema_editor(collect_sql=True, atomic=migration.atomic) as editor:
        migration.apply(state, editor, collect_sql=True)
    lines = editor.collected_sql
    if migration.atomic:
        lines = ["BEGIN;", *lines, "COMMIT;"]
    broken = broken_rules("\n".join(lines))
    assert broken == ({rule} if rule else set())


@pytest.fixture
def older(db: None) -> Iterator[str]:
    """The name of a database to which the last migration of tokens was not applied."""
    name = f"older_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
    with closing(session("postgres")) as server, server.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name} TEMPLATE {MIGRATED}")
        with closing(session(name)) as own, own.cursor() as inside:
            inside.execute(
                "DROP TABLE annotator_tokenrequests; "
                "DELETE FROM django_migrations WHERE name = '0005_token_requests'"
            )
            inside.execute(
                "INSERT INTO annotator_user (id, password, is_superuser, username, first_name, "
                "last_name, email, is_staff, is_active, date_joined, role, theme, time_zone) "
                "VALUES (1, '', false, 'ann', '', '', '', false, true, now(), 'annotator', "
                "'system', 'UTC')"
            )
            inside.execute(
                "INSERT INTO annotator_apitoken (id, user_id, name, digest, expires_at) "
                "VALUES (1, 1, 'one', 'd', now())"
            )
        yield name
        cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")


def session(name: str) -> Any:
    """A connection to a database of the tests' server."""
    known = connection.settings_dict
    made = psycopg2.connect(host=known["HOST"], user=known["USER"], dbname=name)
    made.autocommit = True
    return made


def migrate(name: str, folder: Path, before: str = "") -> subprocess.Popen[str]:
    """`migrate` on a database, after some Python that changes the command's module `m`."""
    code = (
        "from django.core.management import call_command\n"
        "from annotator.management.commands import migrate as m\n"
        f"{before}\n"
        "call_command('migrate')"
    )
    environment = os.environ | {
        "DATABASE_URL": database_url(connection.settings_dict | {"NAME": name}),
        "VAR_DIR": str(folder),
        "DJANGO_SETTINGS_MODULE": "annotator.settings",
    }
    return subprocess.Popen(
        [sys.executable, "-u", "manage.py", "shell", "--no-imports", "-c", code],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def migrated(cursor: Any) -> bool:
    """Whether the migration that `older` lacks is applied."""
    cursor.execute("SELECT to_regclass('annotator_tokenrequests') IS NOT NULL")
    return bool(cursor.fetchone()[0])


def test_a_migration_that_waits_for_a_lock_lets_requests_pass(older: str, tmp_path: Path) -> None:
    with (
        closing(session(older)) as long,
        closing(session(older)) as request,
        long.cursor() as holding,
        request.cursor() as asking,
    ):
        holding.execute("BEGIN; UPDATE annotator_apitoken SET name = 'two'")
        migrating = migrate(older, tmp_path, "m.PAUSE_SECONDS = 0.5")
        assert migrating.stdout is not None
        output: list[str] = []
        reading = threading.Thread(target=lambda: output.extend(migrating.stdout))
        reading.start()
        wait_for(lambda: "waits: canceling statement due to lock timeout" in "".join(output))
        # While it tries again and again, others write to the table, each within some tries.
        for moment in range(5):
            asking.execute("SET statement_timeout = '10s'")
            asking.execute(
                "INSERT INTO annotator_apitoken (id, user_id, name, digest, expires_at) "
                "VALUES (%s, 1, %s, %s, now())",
                [100 + moment, str(moment), str(moment)],
            )
        assert migrating.poll() is None
        assert not migrated(asking)
        holding.execute("COMMIT")
        assert migrating.wait(60) == 0, "".join(output)
        reading.join()
        assert migrated(asking)
        assert "".join(output).count("Before version") == 1


def test_a_lock_that_stays_is_told(older: str, tmp_path: Path) -> None:
    with closing(session(older)) as long, long.cursor() as holding:
        holding.execute("BEGIN; UPDATE annotator_apitoken SET name = 'two'")
        quick = "m.TRIES, m.PAUSE_SECONDS, m.LOCK_SECONDS = 2, 0, 1"
        output, _ = migrate(older, tmp_path, quick).communicate(timeout=120)
        assert output.count("waits: canceling statement due to lock timeout") == 2
        assert "Another session holds a lock that a migration needs" in output
        holding.execute("ROLLBACK")
        assert not migrated(holding)


def test_one_process_migrates_at_a_time(older: str, tmp_path: Path) -> None:
    with closing(session(older)) as other, other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [lock_key("migrations")])
        both = [migrate(older, tmp_path) for _ in range(2)]

        def wait() -> bool:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND pid <> "
                "pg_backend_pid() AND query LIKE '%%pg_try_advisory_lock%%'",
                [older],
            )
            return bool(cursor.fetchone()[0] == 2)

        wait_for(wait, what="both to wait")
        assert not migrated(cursor)
        cursor.execute("SELECT pg_advisory_unlock(%s)", [lock_key("migrations")])
        outputs = [one.communicate(timeout=120)[0] for one in both]
        assert [one.returncode for one in both] == [0, 0], outputs
        assert migrated(cursor)
        assert sum("Applying annotator.0005_token_requests" in one for one in outputs) == 1

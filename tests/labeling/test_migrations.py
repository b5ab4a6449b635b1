"""Migrations that carry data over, on a database of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg2
import pytest
from django.db import connection

from tests.processes import ROOT, database_url

NAME = "test_migrations_carry_data"


@pytest.fixture
def empty_database(db: None) -> Iterator[str]:
    """The DATABASE_URL of a database beside the tests' own."""
    with maintenance() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {NAME}")
        cursor.execute(f"CREATE DATABASE {NAME}")
    yield database_url(connection.settings_dict | {"NAME": NAME})
    with maintenance() as cursor:
        cursor.execute(f"DROP DATABASE {NAME} WITH (FORCE)")


@contextmanager
def maintenance() -> Iterator[psycopg2.extensions.cursor]:
    """A cursor outside any transaction, which creating databases needs."""
    known = connection.settings_dict
    connected = psycopg2.connect(host=known["HOST"], user=known["USER"], dbname=known["NAME"])
    connected.autocommit = True
    with closing(connected), connected.cursor() as cursor:
        yield cursor


def manage(url: str, var_dir: Path, *arguments: str) -> None:
    environment = os.environ | {
        "DATABASE_URL": url,
        "VAR_DIR": str(var_dir),
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


BEFORE = """
INSERT INTO annotator_user (id, username, password, is_superuser, first_name, last_name, email,
                            is_staff, is_active, date_joined, role)
    VALUES (1, 'ann', '', false, '', '', '', false, true, now(), 'annotator'),
           (2, 'otto', '', false, '', '', '', false, true, now(), 'annotator');
INSERT INTO retrieval_image (id, dataset, source_id, file_name, sha256, format, width, height,
                             size_bytes, license, license_url, rights_holder, created_at)
    SELECT n, 'toy', n, n, n, 'JPEG', 1, 1, 1, '', '', '', now() FROM generate_series(1, 9) n;
INSERT INTO labeling_query (id, query_id, text, category, iconic_group, split, scientific_terms,
                            guidelines, state, reject_reason, reject_note, created_at, updated_at)
    SELECT n, n, 'a toad', 'Species ID', '', 'val', false, '', 'open', '', '', now(), now()
      FROM generate_series(1, 2) n;
INSERT INTO labeling_judgment (id, query_id, image_id, annotator_id, relevance, source, seconds,
                               created_at, updated_at)
    SELECT 100 * query + 10 * image + who, query, image, who, 'unsure', 'list', 1, now(), now()
      FROM generate_series(1, 2) query, generate_series(1, 9) image, generate_series(1, 2) who;
INSERT INTO labeling_judgmentevent (judgment_id, annotator_id, client_id, previous, relevance,
                                    source, seconds, made_at)
    SELECT j.id, j.annotator_id, gen_random_uuid(), '', 'unsure', 'list', turn,
           '2026-01-01'::timestamptz + turn * interval '1 day'
      FROM labeling_judgment j, generate_series(1, 3) turn;
"""


def test_events_find_their_query_and_image(empty_database: str, tmp_path: Path) -> None:
    manage(empty_database, tmp_path, "migrate", "labeling", "0002")
    manage(empty_database, tmp_path, "migrate", "annotator")
    with closing(psycopg2.connect(empty_database)) as before, before, before.cursor() as cursor:
        cursor.execute(BEFORE)
        cursor.execute(
            "SELECT e.id, j.query_id, j.image_id, e.annotator_id, e.made_at, e.made_at, e.seconds "
            "FROM labeling_judgmentevent e JOIN labeling_judgment j ON j.id = e.judgment_id"
        )
        expected = sorted(cursor.fetchall())
    assert len(expected) == 108
    manage(empty_database, tmp_path, "migrate")
    with closing(psycopg2.connect(empty_database)) as after, after.cursor() as cursor:
        cursor.execute(
            "SELECT id, query_id, image_id, annotator_id, acted_at, made_at, seconds "
            "FROM labeling_judgmentevent"
        )
        assert sorted(cursor.fetchall()) == expected
        with pytest.raises(psycopg2.IntegrityError, match="never changes"):
            cursor.execute("UPDATE labeling_judgmentevent SET seconds = 0")


SUBMITTED = """
INSERT INTO annotator_user (id, username, password, is_superuser, first_name, last_name, email,
                            is_staff, is_active, date_joined, role)
    VALUES (1, 'ann', '', false, '', '', '', false, true, now(), 'annotator');
INSERT INTO labeling_query (id, query_id, text, category, iconic_group, split, split_settled,
                            scientific_terms, guidelines, state, reject_reason, reject_note,
                            created_at, updated_at)
    SELECT n, n, 'a toad', 'Species ID', '', 'val', true, false, '', state, '', '', now(), now()
      FROM unnest(ARRAY['open', 'submitted', 'complete']) WITH ORDINALITY one (state, n);
INSERT INTO labeling_querytransition (query_id, from_state, to_state, reason, note, made_by_id,
                                      made_at)
    SELECT n, 'open', 'submitted', 'too_easy', 'turn ' || turn, 1,
           '2026-01-01'::timestamptz + turn * interval '1 day'
      FROM generate_series(1, 3) n, generate_series(1, 2) turn;
"""


def test_who_handed_a_query_in_has_handed_their_part_in(
    empty_database: str, tmp_path: Path
) -> None:
    manage(empty_database, tmp_path, "migrate", "labeling", "0004")
    manage(empty_database, tmp_path, "migrate", "annotator")
    with closing(psycopg2.connect(empty_database)) as before, before, before.cursor() as cursor:
        cursor.execute(SUBMITTED)
    manage(empty_database, tmp_path, "migrate")
    with closing(psycopg2.connect(empty_database)) as after, after.cursor() as cursor:
        cursor.execute("SELECT state FROM labeling_query ORDER BY id")
        assert cursor.fetchall() == [("open",), ("submitted",), ("complete",)]
        cursor.execute(
            "SELECT query_id, annotator_id, reason, note, rule, handed_in_at::date::text"
            "  FROM labeling_assignment"
        )
        assert cursor.fetchall() == [(2, 1, "too_easy", "turn 2", "", "2026-01-03")]

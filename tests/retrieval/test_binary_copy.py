"""Rows go through PostgreSQL's binary COPY and come back as they were."""

from datetime import UTC, datetime, timedelta
from io import BytesIO

import numpy as np
import pytest
from django.db import connection

from core.binary_copy import (
    BadCopy,
    RowReader,
    microseconds,
    moment_of,
    new_rows,
    parse_rows,
    row_layout,
)


def copied_out(statement):
    target = BytesIO()
    with connection.cursor() as cursor:
        cursor.copy_expert(f"COPY ({statement}) TO STDOUT (FORMAT binary)", target)
    return target.getvalue()


@pytest.mark.parametrize("count", [0, 1, 1000])
@pytest.mark.parametrize("dimension", [None, 1, 5])
def test_rows_come_back_from_the_database(db, count, dimension):
    layout = row_layout(["number", "at"], dimension=dimension)
    rows = new_rows(layout, count)
    rows["number"] = np.arange(count) - 500
    rows["at"] = np.arange(count) * 10**12
    column, names = "", "number, at"
    if dimension is not None:
        rows["vector"] = np.random.default_rng(1).normal(size=(count, dimension))
        column, names = ", vector halfvec", f"{names}, vector"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TEMP TABLE trial (number bigint, at timestamptz{column})")
        cursor.copy_expert(f"COPY trial ({names}) FROM STDIN (FORMAT binary)", RowReader(rows), 100)
    found = parse_rows(copied_out(f"SELECT {names} FROM trial ORDER BY number"), layout)
    assert found.tobytes() == rows.tobytes()


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1::bigint, 2::bigint",
        "SELECT NULL::bigint",
        "SELECT 1::int",
        "SELECT 1::bigint UNION ALL SELECT NULL",
    ],
)
def test_other_rows_are_refused(db, statement):
    with pytest.raises(BadCopy):
        parse_rows(copied_out(statement), row_layout(["value"]))


@pytest.mark.parametrize("data", [b"", b"PGCOPY", b"PGCOPY\n\xff\r\n\0" + bytes(8)])
def test_what_was_cut_off_is_refused(data):
    with pytest.raises(BadCopy):
        parse_rows(data, row_layout(["value"]))


def test_moments_are_exact_to_the_microsecond():
    start = datetime(1990, 1, 1, tzinfo=UTC)
    for us in (0, 1, 10**15 + 7):
        moment = start + timedelta(microseconds=us)
        assert moment_of(microseconds(moment)) == moment
    assert microseconds(datetime(2000, 1, 1, tzinfo=UTC)) == 0

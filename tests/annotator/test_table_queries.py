"""SQL over tables that are named: values are bound, and nothing else can be read."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.dataset import dataset

from core.table_queries import query_tables

pytestmark = pytest.mark.pure

BIRDS = pa.table({"name": ["stork", "it's"], "legs": [2, None]})


def test_tables_and_files_are_joined(tmp_path: Path) -> None:
    pq.write_table(BIRDS, tmp_path / "birds[1].parquet")
    tables = {"birds": BIRDS, "stored": dataset(tmp_path / "birds[1].parquet")}
    statement = "SELECT name, birds.legs FROM birds JOIN stored USING (name) ORDER BY name"
    assert query_tables(statement, tables).fetchall() == [("it's", None), ("stork", 2)]


def test_values_are_bound() -> None:
    statement = "SELECT legs FROM birds WHERE name = $name AND list_contains($legs, 2)"
    for name, legs in (("stork", [(2,)]), ("' OR true --", [])):
        assert query_tables(statement, {"birds": BIRDS}, name=name, legs=[1, 2]).fetchall() == legs


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_parquet($path)",
        "COPY (SELECT 1) TO 'written.csv'",
        "SELECT * FROM BIRDS",
        "SET enable_external_access = true",
    ],
)
def test_nothing_else_is_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "birds.parquet"
    pq.write_table(BIRDS, path)
    values = {"path": str(path)} if "$path" in statement else {}
    with pytest.raises(duckdb.Error):
        query_tables(statement, {}, **values).fetchall()
    assert [one.name for one in tmp_path.iterdir()] == ["birds.parquet"]


def test_a_table_of_one_statement_is_unknown_to_the_next() -> None:
    assert query_tables("SELECT count(*) FROM birds", {"birds": BIRDS}).fetchall() == [(2,)]
    with pytest.raises(duckdb.CatalogException):
        query_tables("SELECT count(*) FROM birds", {})

"""SQL over Arrow tables and Parquet files, by DuckDB."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from core.cores import cores

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection, DuckDBPyRelation
    from pyarrow.dataset import Dataset

#: Of all statements of a process together; what needs more spills to disk.
MEMORY: Final = "1GB"


def query_tables(
    statement: str, tables: Mapping[str, pa.Table | Dataset], /, **values: Any
) -> DuckDBPyRelation:
    """Query these tables by one SQL statement; the rows are fetched from what it returns.

    `$name` in the statement is the value of that name. The statement reaches no other table, no
    file and no address. Without ORDER BY, rows come in any order.
    """
    connection = _database().cursor()
    for name, rows in tables.items():
        connection.register(name, rows)
    return connection.sql(statement, params=values)


@cache
def _database() -> DuckDBPyConnection:
    """The process's empty database; each statement gets a connection of its own to it."""
    import duckdb  # takes as long as many a command

    # DuckDB makes this folder when it spills, and removes it.
    spill = Path(gettempdir(), f"duckdb-{uuid4()}")
    database = duckdb.connect(
        config={"memory_limit": MEMORY, "threads": cores(), "temp_directory": str(spill)}
    )
    for name in ("enable_external_access", "python_enable_replacements"):
        database.execute(f"SET {name} = false")
    database.execute("SET lock_configuration = true")
    return database

"""The SQL statements of a block of code, and the large tables that PostgreSQL reads whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import connection

#: Tables that grow with the corpus or with its labels; partitions begin with their parent's name.
LARGE: Final = (
    *("retrieval_image", "retrieval_embedding"),
    *("labeling_candidate", "labeling_judgment"),
)
#: Small ones whose names begin like those of large ones.
SMALL: Final = (
    *("retrieval_imageflag", "retrieval_imagewithdrawal", "retrieval_imagetakedown"),
    "retrieval_imageroot",
    *("retrieval_embeddingmodel", "retrieval_embeddingcount", "labeling_candidatelist"),
)


@dataclass(slots=True)
class Watch:
    """The statements of a watched block."""

    statements: list[str] = field(default_factory=list)
    whole: list[tuple[str, str]] = field(default_factory=list)
    """(a whole table that is read, and how; the SQL): by a sequential scan, or along an index
    without a condition and without a limit.
    """


@contextmanager
def watched(*, plans: bool = False) -> Iterator[Watch]:
    """Collect the statements of this thread's connection; with `plans`, also the tables that they
    read whole under the present settings.
    """
    watch = Watch()

    def execute(
        run: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        planned = sql.lstrip(" \n(").upper().startswith(("SELECT", "WITH", "INSERT", "UPD", "DEL"))
        if plans and planned and not many:
            # The driver's own cursor: Django's would come back here.
            with connection.connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}", params)
                [[[plan]]] = cursor.fetchall()
                found = list(_whole(plan["Plan"]))
                # A partition that another model left empty is read whole in no time.
                cursor.execute(
                    "SELECT relname FROM pg_class WHERE relname = ANY(%s)"
                    " AND pg_relation_size(oid) > 0",
                    [[table for table, _ in found]],
                )
                filled = {table for (table,) in cursor.fetchall()}
            watch.whole += [(how, sql) for table, how in found if table in filled]
        watch.statements.append(sql)
        return run(sql, params, many, context)

    with connection.execute_wrapper(execute):
        yield watch


def is_large(table: str) -> bool:
    """Whether a table or one of its indexes grows with the corpus or its labels."""
    return table.startswith(LARGE) and not table.startswith(SMALL)


def _whole(node: dict[str, Any], *, limited: bool = False) -> Iterator[tuple[str, str]]:
    kind, table = node["Node Type"], node.get("Relation Name", node.get("Index Name", ""))
    if is_large(table) and kind == "Seq Scan":
        yield table, f"Seq Scan on {table}"
    elif is_large(table) and "Index" in kind and "Index Cond" not in node and not limited:
        yield table, f"{kind} of all of {table}"
    for part in node.get("Plans", ()):
        below = kind == "Limit" or (limited and kind in ("Nested Loop", "Memoize", "Subquery Scan"))
        yield from _whole(part, limited=below)

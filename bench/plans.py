"""The SQL statements of a block of code, and which tables PostgreSQL would read whole for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import connection

#: Tables that grow with the corpus or with its labels; partitions begin with their parent's name.
LARGE: Final = (
    "retrieval_image",
    "retrieval_embedding",
    "labeling_candidate",
    "labeling_judgment",
    "labeling_judgmentevent",
)
#: Small ones whose names begin like those of large ones.
SMALL: Final = (
    "retrieval_imageflag",
    "retrieval_imagewithdrawal",
    "retrieval_imageroot",
    "retrieval_embeddingmodel",
    "retrieval_embeddingcount",
    "labeling_candidatelist",
)
_PLANNED: Final = ("SELECT", "WITH", "INSERT", "UPDATE", "DELETE")
_INDEX_SCANS: Final = frozenset({"Index Scan", "Index Only Scan", "Bitmap Index Scan"})


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement as it was sent."""

    sql: str
    plan: dict[str, Any] | None
    """EXPLAIN's JSON; None where it wasn't asked for or there is none."""

    @property
    def whole(self) -> list[str]:
        """The large tables that are read from end to end, with how: by a sequential scan, or along
        an index without a condition and without an end.
        """
        return [] if self.plan is None else list(_whole(self.plan, limited=False))


@dataclass(slots=True)
class Watch:
    """What ran while a block was watched."""

    statements: list[Statement] = field(default_factory=list)

    @property
    def whole(self) -> list[tuple[str, str]]:
        """(what was read whole, SQL) of every statement that does so."""
        return [(table, one.sql) for one in self.statements for table in one.whole]


@contextmanager
def watched(*, plans: bool) -> Iterator[Watch]:
    """Collect the statements of this thread's connection, with `plans` each with its plan as the
    settings of that moment give it.
    """
    seen = Watch()

    def execute(
        run: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        plan = _explained(sql, params) if plans and not many else None
        seen.statements.append(Statement(sql, plan))
        return run(sql, params, many, context)

    with connection.execute_wrapper(execute):
        yield seen


def _explained(sql: str, params: Any) -> dict[str, Any] | None:
    if not sql.lstrip(" \n(").upper().startswith(_PLANNED):
        return None
    # Of the driver's own: Django's cursor would come back here.
    with connection.connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}", params)
        [[[found]]] = cursor.fetchall()
    plan: dict[str, Any] = found["Plan"]
    return plan


def _whole(node: dict[str, Any], *, limited: bool) -> Iterator[str]:
    kind, table = node["Node Type"], node.get("Relation Name", node.get("Index Name", ""))
    large = table.startswith(LARGE) and not table.startswith(SMALL)
    if large and kind == "Seq Scan":
        yield f"Seq Scan on {table}"
    elif large and kind in _INDEX_SCANS and "Index Cond" not in node and not limited:
        yield f"{kind} of all of {table}"
    for part in node.get("Plans", ()):
        below = kind == "Limit" or (limited and kind in ("Nested Loop", "Memoize", "Subquery Scan"))
        yield from _whole(part, limited=below)

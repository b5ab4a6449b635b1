"""What changed between two versions of a benchmark, from their snapshots.

Pure: it reads two snapshots and gives plain data (for JSON) and sentences.
"""

from __future__ import annotations

from dataclasses import asdict, astuple, dataclass, field
from typing import Any, Final

from core.table_queries import query_tables
from releases.snapshot.snapshot import Snapshot, SnapshotQuery

#: The fields of JudgmentChanges that count changed pairs, in words.
JUDGMENT_CHANGES: Final = {
    "became_relevant": "became relevant",
    "became_not_relevant": "became not relevant",
    "newly_judged": "newly judged",
    "no_longer_judged": "no longer judged",
}

#: The counts of JudgmentChanges, in their order.
_PAIRS: Final = """
WITH compared AS (
    SELECT query_id, before.relevant AS was, after.relevant AS now
      FROM before FULL JOIN after USING (query_id, image_id)
)
SELECT query_id,
       count(*) FILTER (NOT was AND now), count(*) FILTER (was AND NOT now),
       count(*) FILTER (was IS NULL), count(*) FILTER (was IS NULL AND now),
       count(*) FILTER (now IS NULL), count(*) FILTER (now IS NULL AND was),
       count(*) FILTER (was = now)
  FROM compared GROUP BY query_id ORDER BY query_id
"""


@dataclass(frozen=True, slots=True)
class UnsharedQuery:
    """A query that only one of the versions has."""

    query_id: int
    text: str
    split: str
    category: str
    judged: int | None
    """None where it isn't known."""
    relevant: int


@dataclass(frozen=True, slots=True)
class QueryChange:
    """A change of a query that both versions have."""

    query_id: int
    text: str
    """The present text."""
    was: Any
    now: Any


@dataclass(slots=True)
class JudgmentChanges:
    """How many pairs changed their consensus, in the queries that both versions have."""

    became_relevant: int = 0
    became_not_relevant: int = 0
    newly_judged: int = 0
    newly_relevant: int = 0
    """How many of the newly judged are relevant."""
    no_longer_judged: int = 0
    no_longer_relevant: int = 0
    """How many of the no longer judged were relevant."""
    unchanged: int = 0

    @property
    def any(self) -> bool:
        """Whether any pair changed."""
        return any(getattr(self, name) for name in JUDGMENT_CHANGES)


@dataclass(slots=True)
class Difference:
    """All that changed from one version to the next; queries by id."""

    previous: dict[str, Any]
    """Name, version and made_at of the version before."""
    added: list[UnsharedQuery] = field(default_factory=list)
    dropped: list[UnsharedQuery] = field(default_factory=list)
    reworded: list[QueryChange] = field(default_factory=list)
    """`was` and `now` are the texts."""
    moved: list[QueryChange] = field(default_factory=list)
    """Between splits."""
    category: list[QueryChange] = field(default_factory=list)
    species: list[QueryChange] = field(default_factory=list)
    """The scientific names of the species filters."""
    lists: list[QueryChange] = field(default_factory=list)
    """The candidate lists: model and depth."""
    judgments: JudgmentChanges = field(default_factory=JudgmentChanges)
    judgments_by_query: list[dict[str, Any]] = field(default_factory=list)
    """query_id, text, split and the counts of JudgmentChanges of each query in which a pair
    changed."""
    corpus: dict[str, Any] = field(default_factory=dict)
    """changed; and [was, now] of images, species and fingerprint."""
    rerank_model: list[str] = field(default_factory=list)
    """The models that ordered the fixed lists: was, now."""
    runs: list[dict[str, Any]] = field(default_factory=list)
    """Scores of the published runs by both versions' labels, a table for each task and split: task,
    split, queries (how many both versions score), measures (their keys; the first ranks the runs),
    means (the names of their means), tau_b (of the two orders; None where it isn't defined) and
    runs: name, was and now (a mean for each measure), and rank (was and now)."""


def compare(old: Snapshot, new: Snapshot) -> Difference:
    """What changed from `old` to `new`."""
    was, now = old.header, new.header
    difference = Difference(
        previous={"name": was.name, "version": was.version, "made_at": was.made_at}
    )
    tables = {"before": old.dataset("pairs"), "after": new.dataset("pairs")}
    rows = query_tables(_PAIRS, tables).fetchall()
    by_query = {query_id: JudgmentChanges(*counts) for query_id, *counts in rows}
    _compare_queries(difference, old, new, by_query)
    common = {key: by_query[key] for key in by_query if key in old.queries and key in new.queries}
    sums = map(sum, zip(*map(astuple, common.values()), strict=True))
    difference.judgments = JudgmentChanges(*sums)
    for query_id, changes in common.items():
        if changes.any:
            query = new.queries[query_id]
            named = {"query_id": query_id, "text": query.text, "split": query.split}
            difference.judgments_by_query.append({**named, **asdict(changes)})
    difference.corpus = {
        "changed": was.corpus_fingerprint != now.corpus_fingerprint,
        "images": [was.corpus_images, now.corpus_images],
        "species": [was.corpus_species, now.corpus_species],
        "fingerprint": [was.corpus_fingerprint, now.corpus_fingerprint],
    }
    difference.rerank_model = [was.rerank_model, now.rerank_model]
    return difference


def without_test_labels(difference: dict[str, Any]) -> dict[str, Any]:
    """A difference, as a dict, for those who may not see labels of the test split: it counts pairs
    in the validation queries alone, and has the tables of runs on these.

    `judged` and `relevant` of test queries are None. An empty difference stays empty.
    """
    if not difference:
        return {}
    shown = [query for query in difference["judgments_by_query"] if query.get("split") == "val"]
    unshared = {
        key: [
            query if query["split"] == "val" else {**query, "judged": None, "relevant": None}
            for query in difference[key]
        ]
        for key in ("added", "dropped")
    }
    counts = {name: sum(query[name] for query in shown) for name in difference["judgments"]}
    return {
        **difference,
        **unshared,
        "judgments": counts,
        "judgments_by_query": shown,
        "runs": [table for table in difference.get("runs", []) if table["split"] == "val"],
        "withheld": True,
    }


def _compare_queries(
    difference: Difference, old: Snapshot, new: Snapshot, pairs: dict[int, JudgmentChanges]
) -> None:
    for query_id, query in new.queries.items():
        before = old.queries.get(query_id)
        if before is None:
            difference.added.append(_unshared(query, new, pairs))
            continue
        for changes, was, now in (
            (difference.reworded, before.text, query.text),
            (difference.moved, before.split, query.split),
            (difference.category, before.category, query.category),
            (difference.species, before.species, query.species),
            (difference.lists, _list(before), _list(query)),
        ):
            if was != now:
                changes.append(QueryChange(query_id, query.text, was, now))
    difference.dropped += [
        _unshared(query, old, pairs)
        for query_id, query in old.queries.items()
        if query_id not in new.queries
    ]


def _unshared(
    query: SnapshotQuery, version: Snapshot, pairs: dict[int, JudgmentChanges]
) -> UnsharedQuery:
    own = pairs.get(query.query_id, JudgmentChanges())
    return UnsharedQuery(
        query_id=query.query_id,
        text=query.text,
        split=query.split,
        category=query.category,
        judged=own.newly_judged + own.no_longer_judged if version.header.negatives_known else None,
        relevant=own.newly_relevant + own.no_longer_relevant,
    )


def _list(query: SnapshotQuery) -> dict[str, Any]:
    return {"model": " + ".join(query.pool) or query.model, "depth": query.list_depth}

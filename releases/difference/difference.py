"""What changed between two versions of a benchmark, from their snapshots.

Pure: it reads two snapshots and gives plain data (for JSON) and sentences.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final, TypeVar

from releases.snapshot.snapshot import Pair, Snapshot, SnapshotQuery

#: The fields of JudgmentChanges that count pairs, with what they say of one.
JUDGMENT_CHANGES: Final = {
    "became_relevant": "became relevant",
    "became_not_relevant": "became not relevant",
    "newly_judged": "newly judged",
    "no_longer_judged": "no longer judged",
}

Key = tuple[int, int]
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class QueryOf:
    """A query that one of the versions has alone."""

    query_id: int
    text: str
    split: str
    category: str
    judged: int | None
    """None where it isn't known."""
    relevant: int


@dataclass(frozen=True, slots=True)
class Changed:
    """Something of a query that both versions have."""

    query_id: int
    text: str
    """As it is now."""
    was: Any
    now: Any


@dataclass(slots=True)
class JudgmentChanges:
    """How many pairs changed their consensus, of the queries that both versions have."""

    became_relevant: int = 0
    became_not_relevant: int = 0
    newly_judged: int = 0
    newly_relevant: int = 0
    """Those of the newly judged that are relevant."""
    no_longer_judged: int = 0
    no_longer_relevant: int = 0
    """Those of the no longer judged that were relevant."""
    unchanged: int = 0

    @property
    def any(self) -> bool:
        """Whether any pair changed."""
        return any(getattr(self, name) for name in JUDGMENT_CHANGES)

    def add(self, other: JudgmentChanges) -> None:
        """Add another's counts to these."""
        for name, count in asdict(other).items():
            setattr(self, name, getattr(self, name) + count)


@dataclass(slots=True)
class Difference:
    """All that changed from one version to the next; queries by id."""

    previous: dict[str, Any]
    """Name, version and made_at of the version before."""
    added: list[QueryOf] = field(default_factory=list)
    dropped: list[QueryOf] = field(default_factory=list)
    reworded: list[Changed] = field(default_factory=list)
    """`was` and `now` are the texts."""
    moved: list[Changed] = field(default_factory=list)
    """Between splits."""
    category: list[Changed] = field(default_factory=list)
    species: list[Changed] = field(default_factory=list)
    """The scientific names of the species filters."""
    lists: list[Changed] = field(default_factory=list)
    """The candidate lists: model and depth."""
    judgments: JudgmentChanges = field(default_factory=JudgmentChanges)
    judgments_by_query: list[dict[str, Any]] = field(default_factory=list)
    """query_id, text, split and the counts of JudgmentChanges, of the queries in which a pair
    changed."""
    corpus: dict[str, Any] = field(default_factory=dict)
    """changed, and was and now of images, species and fingerprint."""
    rerank_model: list[str] = field(default_factory=list)
    """Whose order the fixed lists were and are in."""
    runs: list[dict[str, Any]] = field(default_factory=list)
    """Scores of the published runs by both versions' labels, a table for each task and split: task,
    split, queries (how many both versions score), measures (keys, the first of them ranks), means
    (what their means are called), tau_b (of the two orders; None where it isn't defined) and runs:
    name, was and now (a mean for each measure), and rank (was and now)."""


def compare(old: Snapshot, new: Snapshot) -> Difference:
    """What changed from `old` to `new`; streams the pairs of both."""
    header = old.header
    found = Difference(
        previous={"name": header.name, "version": header.version, "made_at": header.made_at}
    )
    by_query, sizes = _pairs(old, new)
    _queries(found, old, new, sizes)
    for query_id in sorted(by_query):
        changes = by_query[query_id]
        found.judgments.add(changes)
        if changes.any:
            query = new.queries[query_id]
            named = {"query_id": query_id, "text": query.text, "split": query.split}
            found.judgments_by_query.append({**named, **asdict(changes)})
    found.corpus = _corpus(old, new)
    found.rerank_model = [header.rerank_model, new.header.rerank_model]
    return found


def as_json(difference: Difference) -> dict[str, Any]:
    """The difference in what JSON knows."""
    return asdict(difference)


def without_test_labels(difference: dict[str, Any]) -> dict[str, Any]:
    """A difference from `as_json` for those who may not see labels of the test split: pairs are
    counted in the validation queries alone, and runs scored on them.

    `judged` and `relevant` of test queries are None. An empty difference stays empty.
    """
    if not difference:
        return {}
    shown = [one for one in difference["judgments_by_query"] if one.get("split") == "val"]
    bare = {
        key: [
            one if one["split"] == "val" else {**one, "judged": None, "relevant": None}
            for one in difference[key]
        ]
        for key in ("added", "dropped")
    }
    counts = {name: sum(one[name] for one in shown) for name in difference["judgments"]}
    return {
        **difference,
        **bare,
        "judgments": counts,
        "judgments_by_query": shown,
        "runs": [one for one in difference.get("runs", []) if one["split"] == "val"],
        "withheld": True,
    }


def _queries(
    found: Difference, old: Snapshot, new: Snapshot, sizes: dict[int, tuple[int, int]]
) -> None:
    for query_id, query in new.queries.items():
        before = old.queries.get(query_id)
        if before is None:
            found.added.append(_query_of(query, new, sizes))
            continue
        for changes, was, now in (
            (found.reworded, before.text, query.text),
            (found.moved, before.split, query.split),
            (found.category, before.category, query.category),
            (found.species, before.species, query.species),
            (found.lists, _list(before), _list(query)),
        ):
            if was != now:
                changes.append(Changed(query_id, query.text, was, now))
    found.dropped += [
        _query_of(query, old, sizes)
        for query_id, query in old.queries.items()
        if query_id not in new.queries
    ]


def _query_of(query: SnapshotQuery, of: Snapshot, sizes: dict[int, tuple[int, int]]) -> QueryOf:
    judged, relevant = sizes.get(query.query_id, (0, 0))
    return QueryOf(
        query_id=query.query_id,
        text=query.text,
        split=query.split,
        category=query.category,
        judged=None if not of.header.negatives_known else judged,
        relevant=relevant,
    )


def _list(query: SnapshotQuery) -> dict[str, Any]:
    return {"model": " + ".join(query.pool) or query.model, "depth": query.list_depth}


def _corpus(old: Snapshot, new: Snapshot) -> dict[str, Any]:
    was, now = old.header, new.header
    return {
        "changed": was.corpus_fingerprint != now.corpus_fingerprint,
        "images": [was.corpus_images, now.corpus_images],
        "species": [was.corpus_species, now.corpus_species],
        "fingerprint": [was.corpus_fingerprint, now.corpus_fingerprint],
    }


def _pairs(
    old: Snapshot, new: Snapshot
) -> tuple[dict[int, JudgmentChanges], dict[int, tuple[int, int]]]:
    """The changes of each query that both have, and (judged, relevant) of the others."""
    common = old.queries.keys() & new.queries.keys()
    changes: dict[int, JudgmentChanges] = defaultdict(JudgmentChanges)
    judged: Counter[int] = Counter()
    relevant: Counter[int] = Counter()
    for (query_id, _), was, now in _aligned(old.pairs(), new.pairs()):
        if query_id not in common:
            judged[query_id] += 1
            relevant[query_id] += bool(was) or bool(now)
        else:
            _count(changes[query_id], was, now)
    return changes, {query_id: (judged[query_id], relevant[query_id]) for query_id in judged}


def _count(changes: JudgmentChanges, was: bool | None, now: bool | None) -> None:
    if was is None:
        changes.newly_judged += 1
        changes.newly_relevant += bool(now)
    elif now is None:
        changes.no_longer_judged += 1
        changes.no_longer_relevant += was
    elif was == now:
        changes.unchanged += 1
    elif now:
        changes.became_relevant += 1
    else:
        changes.became_not_relevant += 1


def _aligned(
    old: Iterator[Pair], new: Iterator[Pair]
) -> Iterator[tuple[Key, bool | None, bool | None]]:
    """(key, relevance before, relevance now) of every pair of two ascending streams; None where a
    stream doesn't have it."""
    was, now = next(old, None), next(new, None)
    while was is not None or now is not None:
        key = min((one.query_id, one.image_id) for one in (was, now) if one is not None)
        before = after = None
        if was is not None and (was.query_id, was.image_id) == key:
            before, was = was.relevant, next(old, None)
        if now is not None and (now.query_id, now.image_id) == key:
            after, now = now.relevant, next(new, None)
        yield key, before, after

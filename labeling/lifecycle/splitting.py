"""Drawing which queries are for validation and which for testing."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Required, TypedDict, Unpack

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from core.errors import Conflict
from labeling.lifecycle.services import lock_query_ids
from labeling.queries.categories import CATEGORIES, SPLITS
from labeling.queries.models import Benchmark, Query, QueryEdit, default_benchmark
from labeling.queries.splits import assign_splits

LARGEST_SEED = 2**63 - 1


class SplitChanged(Conflict):
    """The queries were changed after the draw was shown."""


@dataclass(frozen=True, slots=True)
class SplitRow:
    """How many queries of one category are in each split, before the draw and after."""

    category: str
    val_before: int
    test_before: int
    val: int
    test: int

    @property
    def total(self) -> int:
        """Of both splits, after the draw."""
        return self.val + self.test

    @property
    def share(self) -> float:
        """Of validation, after the draw."""
        return self.val / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """What a draw does. All ids are query ids."""

    categories: dict[int, str]
    before: dict[int, str]
    after: dict[int, str]
    drawn: frozenset[int]
    """Those that were drawn; the others kept theirs."""
    undecided: frozenset[int]
    """Whose split wasn't settled before."""
    released: dict[int, str]
    """Those that change splits though a release has them -> the newest such release's title."""

    @property
    def moved(self) -> list[int]:
        """Queries that change splits, ascending."""
        return [
            query_id for query_id, split in self.after.items() if split != self.before[query_id]
        ]

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the draw's outcome: what is confirmed is what was shown."""
        content = json.dumps([sorted(self.before.items()), sorted(self.after.items())])
        return hashlib.sha256(content.encode()).hexdigest()

    @property
    def rows(self) -> list[SplitRow]:
        """The categories that have queries, in the categories' order."""
        before = Counter(
            (self.categories[query_id], split) for query_id, split in self.before.items()
        )
        after = Counter(
            (self.categories[query_id], split) for query_id, split in self.after.items()
        )
        return [
            SplitRow(name, *(counts[name, split] for counts in (before, after) for split in SPLITS))
            for name in CATEGORIES
            if any(after[name, split] for split in SPLITS)
        ]

    @property
    def sum(self) -> SplitRow:
        """All categories together."""
        counts = [
            Counter(splits.values())[s] for splits in (self.before, self.after) for s in SPLITS
        ]
        return SplitRow("", *counts)


class SplitChoices(TypedDict, total=False):
    """How to draw."""

    val_share: Required[float]
    """For validation, from 0 to 1."""
    seed: Required[int]
    released: Required[Mapping[int, str]]
    """Query id -> title of the newest release that has it."""
    benchmark: Benchmark | None
    """Whose queries, or the first's."""
    stratify: bool
    """Meet the share in each category (see `queries.splits`)."""
    redraw: bool
    """Draw all again, also settled and released ones."""
    unfinished: bool
    """Draw for all queries that aren't rejected, not only for complete ones."""


@transaction.atomic
def queries_split(
    *, by: Any = None, expected: str = "", **choices: Unpack[SplitChoices]
) -> SplitPlan:
    """Draw the splits of a benchmark's complete queries; afterwards all of them are settled. Whose
    split changes has it in its history.

    Settled splits and those of released queries are kept. `expected` is the fingerprint of the plan
    that somebody agreed to. Raises ValidationError with the field named, and SplitChanged for
    another plan than expected.
    """
    lock_query_ids()
    plan = split_plan(**choices, lock=True)
    if expected and plan.fingerprint != expected:
        raise SplitChanged(
            "Queries were changed meanwhile, so this isn't the draw that was shown. Check it again."
        )
    now = timezone.now()
    for split in SPLITS:
        moved = [query_id for query_id in plan.moved if plan.after[query_id] == split]
        Query.objects.filter(query_id__in=moved).update(split=split, updated_at=now)
    keys = Query.objects.filter(query_id__in=plan.moved).values_list("pk", "query_id")
    QueryEdit.objects.bulk_create(
        QueryEdit(
            query_id=pk,
            changes=[["split", plan.before[query_id], plan.after[query_id]]],
            made_by=by,
        )
        for pk, query_id in keys
    )
    Query.objects.filter(query_id__in=plan.after).update(split_settled=True)
    return plan


def split_plan(
    *,
    val_share: float,
    seed: int,
    released: Mapping[int, str],
    benchmark: Benchmark | None = None,
    stratify: bool = False,
    redraw: bool = False,
    unfinished: bool = False,
    lock: bool = False,
) -> SplitPlan:
    """What `queries_split` would do; changes nothing, and locks the queries only with `lock`."""
    if not 0 <= val_share <= 1:
        raise ValidationError({"val_share": "The share for validation is a number from 0 to 1."})
    if not 0 <= seed <= LARGEST_SEED:
        raise ValidationError({"seed": f"The seed is a whole number from 0 to {LARGEST_SEED}."})
    of_benchmark = benchmark.pk if benchmark else default_benchmark()
    queries = Query.objects.filter(benchmark=of_benchmark).order_by("query_id")
    if unfinished:
        queries = queries.exclude(state=Query.State.REJECTED)
    else:
        queries = queries.filter(state=Query.State.COMPLETE)
    if lock:
        queries = queries.select_for_update(no_key=True)
    rows = list(queries.values_list("query_id", "category", "split", "split_settled"))
    categories = {query_id: category for query_id, category, _, _ in rows}
    before = {query_id: split for query_id, _, split, _ in rows}
    undecided = frozenset(query_id for query_id, _, _, settled in rows if not settled)
    fixed = {
        query_id: split
        for query_id, split in before.items()
        if not redraw and (query_id not in undecided or query_id in released)
    }
    after = assign_splits(
        categories, val_share=val_share, seed=seed, stratify=stratify, fixed=fixed
    )
    return SplitPlan(
        categories=categories,
        before=before,
        after=after,
        drawn=frozenset(after.keys() - fixed.keys()),
        undecided=undecided,
        released={
            query_id: released[query_id]
            for query_id, split in after.items()
            if split != before[query_id] and query_id in released
        },
    )

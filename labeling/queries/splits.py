"""Which queries are for validation and which for testing.

INQUIRE holds out 50 of its 250 queries for validation (Vendrow et al. 2024, section 3). Here the
share is free, the draw is by a seed, and it may be stratified by category.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

VAL: Final = "val"
TEST: Final = "test"


def assign_splits(
    queries: Mapping[int, str],
    *,
    val_share: float,
    seed: int,
    stratify: bool,
    fixed: Mapping[int, str],
) -> dict[int, str]:
    """The split of each of `queries` (query id -> category), by query id.

    Those in `fixed` (query id -> split) keep theirs; the others are drawn so that `val_share` of
    all, from 0 to 1, rounded half up, are for validation, as nearly as the fixed ones allow. With
    `stratify` each category is brought as near that share as whole numbers allow under this total:
    without fixed queries, by largest remainders. What is drawn depends on the ids, their categories
    and the seed, not on their order.

    ValueError: a share outside 0 to 1, a split that isn't known, or a fixed query that isn't among
    `queries`.
    """
    share = _exact(val_share)
    _check_fixed(queries, fixed)
    strata: defaultdict[str, list[int]] = defaultdict(list)
    for query_id, category in queries.items():
        strata[category if stratify else ""].append(query_id)
    fixed_val = Counter(name for name, ids in strata.items() for i in ids if fixed.get(i) == VAL)
    free = {name: sum(i not in fixed for i in ids) for name, ids in strata.items()}
    total = math.floor(share * len(queries) + Fraction(1, 2))
    count = min(max(total - fixed_val.total(), 0), sum(free.values()))
    ideal = {name: share * len(ids) - fixed_val[name] for name, ids in strata.items()}
    quotas = _quotas(ideal, free, count, seed)
    drawn: dict[int, str] = {}
    for name, ids in strata.items():
        order = sorted((i for i in ids if i not in fixed), key=lambda i: (_hash(seed, i), i))
        for place, query_id in enumerate(order):
            drawn[query_id] = VAL if place < quotas[name] else TEST
    return {query_id: fixed.get(query_id) or drawn[query_id] for query_id in sorted(queries)}


def _quotas(
    ideal: Mapping[str, Fraction], free: Mapping[str, int], count: int, seed: int
) -> dict[str, int]:
    """How many to draw of each stratum: `count` in all, at most those that are `free`.

    Giving one at a time to the stratum furthest below its ideal minimizes the sum of squared
    distances from `ideal`, since each distance is convex.
    """
    quotas = dict.fromkeys(ideal, 0)
    ties = {name: _hash(seed, name) for name in ideal}
    for _ in range(count):
        open_strata = [name for name in ideal if quotas[name] < free[name]]
        most = max(open_strata, key=lambda name: (ideal[name] - quotas[name], ties[name], name))
        quotas[most] += 1
    return quotas


def _exact(share: float) -> Fraction:
    """The share as it is written, so that 0.2 of 250 is 50 and no rounding of floats decides."""
    if not 0 <= share <= 1:
        raise ValueError(f"The share for validation is from 0 to 1, not {share}.")
    return Fraction(repr(float(share)))


def _check_fixed(queries: Mapping[int, str], fixed: Mapping[int, str]) -> None:
    for query_id, split in fixed.items():
        if split not in (VAL, TEST):
            raise ValueError(f"Query {query_id} has the unknown split {split!r}.")
        if query_id not in queries:
            raise ValueError(f"Query {query_id} is fixed, but isn't among the queries.")


def _hash(seed: int, item: int | str) -> bytes:
    """A pseudo-random value, the same on every machine."""
    return hashlib.sha256(f"{seed}:{item}".encode()).digest()

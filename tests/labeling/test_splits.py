"""Drawing splits: exact totals, near shares, stable and without regard to order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labeling.queries.files import read_queries
from labeling.queries.splits import assign_splits

pytestmark = pytest.mark.pure

CATEGORIES = ["Species ID", "Human Impact", "Collected Specimens", "Sex identification"]

queries_of = st.dictionaries(
    st.integers(0, 10_000), st.sampled_from(CATEGORIES), min_size=1, max_size=120
)
shares = st.integers(0, 100).map(lambda hundredths: hundredths / 100)
seeds = st.integers(0, 2**31)


def draw(queries: Mapping[int, str], share: float, seed: int = 7, **options: Any) -> dict[int, str]:
    options = {"stratify": True, "fixed": {}} | options
    return assign_splits(queries, val_share=share, seed=seed, **options)


def half_up(number: Fraction) -> int:
    return math.floor(number + Fraction(1, 2))


def vals(splits: Mapping[int, str], queries: Mapping[int, str]) -> Counter[str]:
    """How many are for validation, by category."""
    return Counter(queries[query_id] for query_id, split in splits.items() if split == "val")


def sizes(queries: Mapping[int, str]) -> Counter[str]:
    return Counter(queries.values())


@given(queries_of, shares, seeds)
def test_each_category_gets_its_share_rounded_up_or_down(queries, share, seed):
    found = vals(draw(queries, share, seed), queries)
    ideals = {name: Fraction(str(share)) * size for name, size in sizes(queries).items()}
    for category, ideal in ideals.items():
        assert math.floor(ideal) <= found[category] <= math.ceil(ideal)
    # Those that are rounded up have the larger remainders.
    up = [ideal % 1 for name, ideal in ideals.items() if found[name] > ideal]
    down = [ideal % 1 for name, ideal in ideals.items() if found[name] < ideal]
    assert not up or not down or min(up) >= max(down)


@given(queries_of, shares, seeds, st.booleans(), st.randoms())
def test_the_order_in_which_queries_come_says_nothing(queries, share, seed, stratify, random):
    items = list(queries.items())
    random.shuffle(items)
    again = draw(dict(items), share, seed, stratify=stratify)
    assert again == draw(queries, share, seed, stratify=stratify)


@given(queries_of, queries_of, shares, seeds, st.booleans())
@settings(max_examples=200)
def test_what_is_drawn_stays_when_others_are_added(first, added, share, seed, stratify):
    before = draw(first, share, seed, stratify=stratify)
    everything = added | first
    after = draw(everything, share, seed, stratify=stratify, fixed=before)
    assert {query_id: after[query_id] for query_id in first} == before
    # The new ones bring the whole to the share: a total that grew can always be met.
    total = half_up(Fraction(str(share)) * len(everything))
    assert sum(split == "val" for split in after.values()) == total


@given(queries_of, st.data(), shares, seeds, st.booleans())
def test_the_new_ones_steer_towards_the_share_whatever_is_fixed(
    queries, data, share, seed, stratify
):
    fixed = data.draw(
        st.dictionaries(st.sampled_from(sorted(queries)), st.sampled_from(["val", "test"]))
    )
    after = draw(queries, share, seed, stratify=stratify, fixed=fixed)
    assert {query_id: after[query_id] for query_id in fixed} == fixed
    total = half_up(Fraction(str(share)) * len(queries))
    least = sum(split == "val" for split in fixed.values())
    most = least + len(queries) - len(fixed)
    assert sum(split == "val" for split in after.values()) == min(max(total, least), most)


@given(queries_of, shares, seeds)
def test_no_exchange_between_two_categories_comes_nearer(queries, share, seed):
    fixed = dict.fromkeys(sorted(queries)[::3], "val")
    after = draw(queries, share, seed, fixed=fixed)
    found, held = vals(after, queries), vals(fixed, queries)
    size, free = sizes(queries), sizes({i: c for i, c in queries.items() if i not in fixed})

    def far(category: str, change: int) -> Fraction:
        return (Fraction(str(share)) * size[category] - found[category] - change) ** 2

    for giver in size:
        for taker in size:
            can_give = found[giver] > held[giver]
            can_take = found[taker] < held[taker] + free[taker]
            if giver != taker and can_give and can_take:
                assert far(giver, -1) + far(taker, 1) >= far(giver, 0) + far(taker, 0)


def test_another_seed_draws_others():
    queries = dict.fromkeys(range(200), "Species ID")
    drawn = {tuple(draw(queries, 0.2, seed).items()) for seed in range(5)}
    assert len(drawn) == 5


def test_each_query_is_as_likely_as_any_other():
    queries = dict.fromkeys(range(20), "Species ID")
    times = Counter(
        i for seed in range(2000) for i, s in draw(queries, 0.5, seed).items() if s == "val"
    )
    # 2,000 draws at 0.5: the standard deviation is 22.4, so this is five of them.
    assert all(abs(times[query_id] - 1000) < 112 for query_id in queries)


def test_inquires_own_queries_at_its_own_share(shared_dir):
    queries = {}
    for split in ("val", "test"):
        path = shared_dir / "inquire" / f"inquire_queries_{split}.csv"
        with path.open("rb") as file:
            queries |= {row.query_id: row.category for row in read_queries(file, name=path.name)[0]}
    assert len(queries) == 250
    for seed in range(20):
        for stratify in (False, True):
            found = Counter(draw(queries, 0.2, seed, stratify=stratify).values())
            assert found == {"val": 50, "test": 200}
        by_category = vals(draw(queries, 0.2, seed), queries)
        for category, size in sizes(queries).items():
            assert by_category[category] in (size // 5, -(-size // 5))


def test_what_makes_no_sense_is_refused():
    for share, fixed, words in (
        (1.01, {}, "from 0 to 1, not 1.01"),
        (float("nan"), {}, "from 0 to 1"),
        (0.5, {1: "train"}, "unknown split 'train'"),
        (0.5, {9: "val"}, "Query 9 is fixed"),
    ):
        with pytest.raises(ValueError, match=words):
            draw({1: "Species ID"}, share, fixed=fixed)

"""What changed between two versions, on snapshots of a few rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from releases.difference.difference import (
    JudgmentChanges,
    QueryChange,
    UnsharedQuery,
    compare,
    without_test_labels,
)
from releases.difference.text import NO_SNAPSHOT, NOTHING, markdown, sentences
from releases.snapshot.snapshot import Header, Pair, Snapshot, SnapshotQuery
from tests.releases.snapshots import pair, query, write_snapshot

pytestmark = pytest.mark.pure

HEADER = Header(
    name="Birds",
    version=1,
    made_at="2026-05-01T10:00:00+00:00",
    made_by="ada",
    software="toy 1",
    origin="made",
    corpus_images=100,
    corpus_species=10,
    corpus_fingerprint="aa",
    rerank_model="toy",
)
QUERY = query(
    1, "a stork", category="Species ID", split="val", model="toy", list_depth=500, list_size=500
)


def snapshot(
    directory: Path,
    queries: Iterable[SnapshotQuery],
    pairs: Iterable[Pair],
    header: Header = HEADER,
) -> Snapshot:
    return write_snapshot(directory, header=header, queries=queries, pairs=pairs)


@pytest.fixture
def old(tmp_path: Path) -> Snapshot:
    queries = [replace(QUERY, query_id=number, text=f"query {number}") for number in (1, 2, 3, 5)]
    pairs = [
        pair(1, 10, True), pair(1, 11, False), pair(1, 12, True), pair(1, 13, True),
        pair(2, 10, True),
        pair(5, 10, True), pair(5, 11, False), pair(5, 12, False),
    ]  # fmt: skip
    return snapshot(tmp_path / "old", queries, pairs)


@pytest.fixture
def new(tmp_path: Path) -> Snapshot:
    queries = [
        replace(QUERY, query_id=1, text="query one", split="test"),
        replace(QUERY, query_id=2, text="query 2", category="Behavior", species=["Ardea alba"]),
        replace(QUERY, query_id=3, text="query 3", model="other", list_depth=900),
        replace(QUERY, query_id=4, text="query 4"),
    ]
    pairs = [
        # 10 turned, 11 turned, 12 is gone, 13 stays, 14 and 15 are new.
        pair(1, 10, False), pair(1, 11, True), pair(1, 13, True), pair(1, 14, True),
        pair(1, 15, False),
        pair(2, 10, True),
        pair(4, 10, True), pair(4, 11, False),
    ]  # fmt: skip
    header = replace(
        HEADER, version=2, corpus_images=1200, corpus_fingerprint="bb", rerank_model=""
    )
    return snapshot(tmp_path / "new", queries, pairs, header)


def test_queries_added_dropped_and_changed(old: Snapshot, new: Snapshot) -> None:
    found = compare(old, new)
    assert found.previous == {
        "name": "Birds", "version": 1, "made_at": "2026-05-01T10:00:00+00:00",
    }  # fmt: skip
    assert found.added == [UnsharedQuery(4, "query 4", "val", "Species ID", judged=2, relevant=1)]
    assert found.dropped == [UnsharedQuery(5, "query 5", "val", "Species ID", judged=3, relevant=1)]
    assert found.reworded == [QueryChange(1, "query one", "query 1", "query one")]
    assert found.moved == [QueryChange(1, "query one", "val", "test")]
    assert found.category == [QueryChange(2, "query 2", "Species ID", "Behavior")]
    assert found.species == [QueryChange(2, "query 2", [], ["Ardea alba"])]
    was, now = {"model": "toy", "depth": 500}, {"model": "other", "depth": 900}
    assert found.lists == [QueryChange(3, "query 3", was, now)]
    assert found.corpus == {
        "changed": True, "images": [100, 1200], "species": [10, 10], "fingerprint": ["aa", "bb"],
    }  # fmt: skip
    assert found.rerank_model == ["toy", ""]


def test_judged_pairs_are_counted_in_queries_that_both_have(old: Snapshot, new: Snapshot) -> None:
    found = compare(old, new)
    first = JudgmentChanges(
        became_relevant=1,
        became_not_relevant=1,
        newly_judged=2,
        newly_relevant=1,
        no_longer_judged=1,
        no_longer_relevant=1,
        unchanged=1,
    )
    # One more stays the same in query 2; those of queries 4 and 5 are told with the queries.
    assert found.judgments == replace(first, unchanged=2)
    assert [one["query_id"] for one in found.judgments_by_query] == [1]
    assert found.judgments_by_query[0]["newly_judged"] == 2


def test_the_same_again_is_no_difference(old: Snapshot) -> None:
    found = compare(old, old)
    assert not found.judgments.any
    assert found.judgments.unchanged == 8
    assert sentences(asdict(found)) == [NOTHING]


def test_nothing_against_something(tmp_path: Path, old: Snapshot) -> None:
    empty = snapshot(tmp_path / "empty", [], [])
    assert [one.judged for one in compare(empty, old).added] == [4, 1, 0, 3]
    assert [one.relevant for one in compare(old, empty).dropped] == [3, 1, 0, 1]
    assert sentences(asdict(compare(old, empty))) == ["4 queries dropped."]


def test_sentences_say_what_changed(old: Snapshot, new: Snapshot) -> None:
    said = sentences(asdict(compare(old, new)))
    assert len(said) == 10
    assert {
        "1 query added.",
        "Judged pairs in 1 query that both versions have: 1 became relevant, "
        "1 became not relevant, 2 newly judged, 1 no longer judged.",
        "The corpus changed: from 100 to 1,200 images.",
        "The fixed lists for re-ranking are of no model; they were of toy.",
    } <= set(said)
    # The document has a table for each change.
    shown = markdown(asdict(compare(old, new)), title="Birds v2", previous="Birds v1")
    assert shown.startswith(
        "# Birds v2: what changed\n\n"
        "Compared with Birds v1, made 2026-05-01T10:00:00+00:00.\n\n- 1 query added.\n"
    )
    for row in (
        "| 4 | query 4 | val | Species ID | 2 | 1 |",
        "| 1 | query 1 | query one |",
        "| 2 | whole corpus | Ardea alba |",
        "| 3 | toy, 500 deep | other, 900 deep |",
        "| 1 | query one | 1 | 1 | 2 | 1 |",
        "| images | 100 | 1,200 |",
    ):
        assert f"\n{row}\n" in shown


def test_names_and_texts_are_no_markup(tmp_path: Path, old: Snapshot) -> None:
    named = snapshot(tmp_path / "named", [replace(QUERY, query_id=9, text="<b> *x*|\nc")], [])
    shown = markdown(asdict(compare(old, named)), title="a*b v2", previous="a*b v1")
    assert "# a\\*b v2" in shown
    assert "| 9 | \\<b\\> \\*x\\*\\| c | val |" in shown


def test_where_nothing_can_be_compared() -> None:
    for previous, expected in (("", "This is the first version."), ("Birds v1", NO_SNAPSHOT)):
        assert expected in markdown({}, title="Birds v2", previous=previous)


def test_without_labels_of_the_test_split_no_change_of_them_is_reported(
    old: Snapshot, new: Snapshot, tmp_path: Path
) -> None:
    whole = asdict(compare(old, new))
    bare = without_test_labels(whole)
    assert (bare["judgments_by_query"], bare["withheld"]) == ([], True)
    assert set(bare["judgments"].values()) == {0} != set(whole["judgments"].values())
    assert [one for one in sentences(whole) if one not in sentences(bare)] == [
        one for one in sentences(whole) if one.startswith("Judged pairs")
    ]
    assert bare["added"] == whole["added"]
    shown = markdown(bare, title="Birds v2", previous="Birds v1")
    assert "## Judged pairs" not in shown
    assert "Which labels of the test split changed is withheld." in shown
    assert without_test_labels({}) == {}
    # So are the counts of test queries that come or go.
    queries = [replace(QUERY, query_id=7, split="test"), replace(QUERY, query_id=8)]
    more = snapshot(tmp_path / "more", queries, [pair(7, 1, True), pair(8, 1, False)],
                    replace(HEADER, corpus_fingerprint="cc"))  # fmt: skip
    bare = without_test_labels(asdict(compare(old, more)))
    assert [(one["judged"], one["relevant"]) for one in bare["added"]] == [(None, None), (1, 0)]
    assert sentences(bare)[-1] == "The corpus changed: 100 images as before, but not the same."

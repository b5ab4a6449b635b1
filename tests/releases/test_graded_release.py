"""A release of a query with grades: pairs, files, and what comes back when it is imported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from labeling.queries.models import Query
from releases.importing.services import benchmark_import
from releases.making.services import release_export, release_verify
from releases.making.take_snapshot import GRADES_RULE
from releases.snapshot.snapshot import Snapshot
from tests.releases.toy import make_query


def pairs_of(directory: Path) -> dict[tuple[int, int], tuple[bool, int | None]]:
    snapshot = Snapshot(directory / "snapshot")
    return {(one.query_id, one.image_id): (one.relevant, one.grade) for one in snapshot.pairs()}


def test_a_graded_release(
    query: Query, judge: Any, annotator: Any, other_annotator: Any, reviewer: Any, var_dir: Path,
    tmp_path: Path,
) -> None:  # fmt: skip
    Query.objects.filter(pk=query.pk).update(grades="partly")
    plain = make_query(31, "a plain stork", split="val")
    judge(plain, 1, annotator, "relevant")
    for image, user, relevance, grade in (
        (1, annotator, "relevant", 3), (1, other_annotator, "relevant", 2),
        (2, annotator, "not_relevant", 1), (2, other_annotator, "relevant", 2),
        (3, annotator, "not_relevant", 0), (3, reviewer, "relevant", 3),
        (4, annotator, "relevant", None),
    ):  # fmt: skip
        reason = "blurred, far" if grade == 1 else ""
        judge(query, image, user, relevance, grade=grade, reason=reason)
    out = tmp_path / "graded"
    release_export(name="graded", directory=out, new=True)
    pairs = pairs_of(out)
    assert pairs == {
        (30, 1): (True, 2), (30, 2): (False, 1), (30, 3): (True, 3), (30, 4): (True, 3),
        (31, 1): (True, None),
    }  # fmt: skip
    snapshot = Snapshot(out / "snapshot")
    assert snapshot.header.consensus.endswith(GRADES_RULE)
    qrels = snapshot.qrels()
    assert qrels.gains is not None
    assert qrels.gains.tolist() == [2, 1, 3, 3, 1]
    assert (out / "trec/qrels_test.txt").read_text() == "30 0 1 1\n30 0 2 0\n30 0 3 1\n30 0 4 1\n"
    graded = "30 0 1 2\n30 0 2 1\n30 0 3 3\n30 0 4 3\n"
    assert (out / "trec/qrels_graded_test.txt").read_text() == graded
    beir = (out / "beir/qrels_graded/test.tsv").read_text()
    assert beir == "query-id\tcorpus-id\tscore\n" + graded.replace(" 0 ", "\t").replace(" ", "\t")
    [parquet] = (out / "huggingface/qrels").rglob("*test*.parquet")
    assert pq.read_table(parquet)["grade"].to_pylist() == [2, 1, 3, 3]
    lines = (out / "judgments.csv").read_text().splitlines()
    assert lines[0].endswith(",source,grade,reason")
    assert lines[3].endswith(',1,"blurred, far"')

    release = benchmark_import(directory=out, name="again").release
    assert release_verify(release=release) == []
    assert pairs_of(release.directory) == pairs
    assert (release.directory / "judgments.csv").read_bytes() == (
        out / "judgments.csv"
    ).read_bytes()
    hidden = benchmark_import(directory=out, name="hidden", test_labels="hidden").release
    seen = Snapshot(hidden.directory / "snapshot").open
    assert [one.query_id for one in seen.pairs()] == [31]
    assert seen.qrels().gains.tolist() == [1]  # type: ignore[union-attr]

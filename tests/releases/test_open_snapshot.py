"""What researchers may have of a release that hides its test labels has nothing of these."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from core.registries import SnapshotTable
from releases.snapshot.open_snapshot import OpenSnapshot, write_open_snapshot
from releases.snapshot.snapshot import (
    TABLES,
    AuditedImage,
    DrawnRound,
    FieldValue,
    FixedImage,
    ModelRank,
    PoolImage,
    QueryVector,
    ReleasedAudit,
    Seed,
    Snapshot,
    SnapshotWriter,
)
from tests.releases.snapshots import (
    header,
    image,
    judgment,
    pair,
    query,
    write_snapshot,
)

pytestmark = pytest.mark.pure

VAL, TEST = 3, 8
SPLITS = {VAL: "val", TEST: "test"}


@pytest.fixture
def whole(tmp_path: Path) -> Snapshot:
    """Each table has a row of a query of each split, whose images are 3 and 8; the fixed lists have
    image 5.
    """
    both = list(SPLITS)
    return write_snapshot(
        tmp_path / "snapshot",
        header=header(test_labels="hidden"),
        queries=[query(one, split=SPLITS[one], rule="streak", left_open="1") for one in both],
        pairs=[pair(one, one, True, row=one) for one in both],
        judgments=[judgment(one, one) for one in both],
        images=[image(one) for one in (*both, 5)],
        custom_fields=[FieldValue(one, "habitat", "text", "bog") for one in (*both, 5)],
        fixed=[FixedImage(one, 1, 5, 0.5) for one in both],
        vectors=[QueryVector(one, "toy", "a stork", [1.0]) for one in both],
        model_ranks=[ModelRank(one, one, "toy", 1, 0.5) for one in both],
        rounds=[DrawnRound(one, 1, "ab", True) for one in both],
        pools=[PoolImage(one, 1, one, "relevant", False, 0, 0, 0) for one in both],
        release_audits=[ReleasedAudit(one, 1, SPLITS[one], "ab", 0.5, True, 1, 1) for one in both],
        audited=[AuditedImage(one, one, 1, True, "relevant", False) for one in both],
        seeds=[Seed(one, one, "relevant") for one in both],
    )


def test_it_has_nothing_of_the_labels_of_the_test_split(whole: Snapshot) -> None:
    write_open_snapshot(OpenSnapshot(whole))
    seen = {
        name: set(pq.read_table(whole.open.path(name))["query_id"].to_pylist())
        for name in TABLES
        if name not in ("images", "custom_fields")
    }
    of_all = {"queries", "fixed", "vectors"}
    assert seen == {name: {VAL, TEST} if name in of_all else {VAL} for name in seen}
    assert len(seen) == len(TABLES) - 2
    for images in (whole.open.images(), whole.open.custom_fields()):
        assert [one.image_id for one in images] == [VAL, 5]
    # How many pairs are left out is not to be seen, nor what the work on the query was.
    assert [one.row for one in whole.open.pairs()] == [0]
    known, withheld = (whole.open.queries[one] for one in (VAL, TEST))
    assert (known.annotators, known.seconds, known.rule, known.left_open) == (
        1,
        12.5,
        "streak",
        "1",
    )
    assert (withheld.annotators, withheld.seconds, withheld.rule) == (0, 0.0, "")
    assert withheld.left_open == ""
    assert whole.open.header.test_labels == "withheld"


def test_a_table_of_an_extra_is_one_of_labels(
    whole: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = SnapshotTable("marks", Seed, lambda benchmark: ())
    with monkeypatch.context() as installed:
        installed.setattr("releases.snapshot.snapshot.SNAPSHOT_TABLES", [table])
        rows = [Seed(one, one, "relevant") for one in SPLITS]
        SnapshotWriter(whole.directory).table("marks", rows)
        assert OpenSnapshot(whole).dataset("marks").to_table().num_rows == 1
    # Without the extra too.
    write_open_snapshot(OpenSnapshot(whole))
    assert [row[0] for row in whole.open.rows("marks")] == [VAL]

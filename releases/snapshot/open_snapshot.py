"""The snapshot that researchers may have of a release whose test labels are hidden."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from releases.snapshot.snapshot import ROWS_AT_A_TIME, Snapshot, write_header

#: The columns about the work on a query, and their values where it is withheld.
_WORK: Final = {
    "annotators": 0,
    "seconds": 0.0,
    "left_open": "",
    "completion_reason": "",
    "rule": "",
    "rounds": None,
    "release_audits": None,
}


def write_open_snapshot(snapshot: Snapshot) -> None:
    """Write `snapshot.open`: of the test split no pair, no judgment, no audit, nothing of the work
    on it, and no image that only those name. Columns are those of the snapshot, whichever version
    wrote it.
    """
    there = snapshot.open
    there.directory.mkdir()
    header = snapshot.header_data | {"test_labels": "withheld"}
    write_header(there.directory, header)
    labeled = pa.array(list(snapshot.queries_of("val")), type=pa.int64())

    owners = pq.read_table(snapshot.path("pairs"), columns=["query_id"])["query_id"]
    rows = snapshot.imported_rows()[np.isin(owners, labeled)]
    imported = np.sort(rows[rows >= 0])

    def copy(table: str, chosen: Callable[[pa.RecordBatch], pa.RecordBatch]) -> None:
        with (
            pq.ParquetFile(snapshot.path(table)) as source,
            pq.ParquetWriter(there.path(table), source.schema_arrow, compression="zstd") as target,
        ):
            for batch in source.iter_batches(batch_size=ROWS_AT_A_TIME):
                target.write_batch(chosen(batch))

    def of_labeled(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.filter(pc.is_in(batch["query_id"], value_set=labeled))

    def numbered(batch: pa.RecordBatch) -> pa.RecordBatch:
        """Without gaps in the rows' numbers, which would tell how many pairs are left out."""
        batch = of_labeled(batch)
        if "row" not in batch.schema.names:
            return batch
        rows = batch["row"].to_numpy()
        places = np.where(rows < 0, -1, np.searchsorted(imported, rows))
        place = batch.schema.get_field_index("row")
        return batch.set_column(place, batch.schema.field(place), pa.array(places))

    def without_work(batch: pa.RecordBatch) -> pa.RecordBatch:
        known = pc.is_in(batch["query_id"], value_set=labeled)
        for name, nothing in _WORK.items():
            if name in batch.schema.names:
                place = batch.schema.get_field_index(name)
                field = batch.schema.field(place)
                left = pc.if_else(known, batch[name], pa.scalar(nothing, field.type))
                batch = batch.set_column(place, field, left)
        return batch

    copy("queries", without_work)
    copy("pairs", numbered)
    copy("judgments", of_labeled)
    copy("fixed", lambda batch: batch)
    if snapshot.path("vectors").exists():
        copy("vectors", lambda batch: batch)
    for judged in ("model_ranks", "rounds", "pools", "boxes"):
        if snapshot.path(judged).exists():
            copy(judged, of_labeled)
    if snapshot.path("release_audits").exists():
        # Also of queries of that split that aren't released.
        val = {one.query_id for one in snapshot.release_audits() if one.split == "val"}
        chosen = pa.array(sorted(val), type=pa.int64())
        for audited in ("release_audits", "audited", "seeds"):
            copy(audited, lambda batch: batch.filter(pc.is_in(batch["query_id"], chosen)))
    columns = (pq.read_table(there.path(one), columns=["image_id"]) for one in ("pairs", "fixed"))
    named = pa.concat_tables(columns)["image_id"]
    copy("images", lambda batch: batch.filter(pc.is_in(batch["image_id"], value_set=named)))

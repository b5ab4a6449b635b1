"""The open snapshot: what everybody may have of a release whose test labels are hidden."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from releases.snapshot.snapshot import OPEN_FOLDER, Snapshot, all_tables, schema_of, write_header

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset

#: Tables whose every row is open.
_OPEN: Final = ("queries", "fixed", "vectors")
#: Tables whose rows of validation queries are open, also of audited queries that aren't released.
_AUDITS: Final = ("release_audits", "audited", "seeds")
#: Tables whose rows are of images, with no query.
_OF_IMAGES: Final = ("images", "custom_fields")
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


class OpenSnapshot(Snapshot):
    """A view of a snapshot without anything that reveals labels of its test split. What is open is
    decided here alone:

        header            the whole's, with the test labels as withheld
        queries           all; those of the test split without the columns in _WORK, which are about
                          the work on them
        fixed, vectors    all: a model made them, no person
        pairs, judgments, model_ranks, rounds, pools
                          those of validation queries. The places of imported pairs are numbered
                          without gaps, which would tell how many are left out
        release_audits, audited, seeds
                          those of validation queries, released or not
        images, custom_fields
                          those that open pairs or fixed lists name: which images were judged for a
                          query reveals how far down its list the relevant ones lie

    Certificates and figures are computed from these, and so of validation queries alone. Of any
    other table, as of extras, installed or not, the rows of validation queries are open; one
    without the column `query_id` is refused (KeyError). Only `rerankable_queries` is the whole's:
    everybody may know which test queries have a list that is fit for re-ranking, since methods are
    to re-rank it.
    """

    def __init__(self, whole: Snapshot) -> None:
        super().__init__(whole.directory.with_name(OPEN_FOLDER))
        self.whole = whole
        self._datasets: dict[str, Dataset] = {}

    @cached_property
    def header_data(self) -> dict[str, Any]:
        """The whole's, with the test labels as withheld."""
        return self.whole.header_data | {"test_labels": "withheld"}

    @cached_property
    def rerankable_queries(self) -> frozenset[int]:
        """The whole's, of both splits."""
        return self.whole.rerankable_queries

    def has_table(self, name: str) -> bool:
        """Whether the whole has it."""
        return self.whole.has_table(name)

    def schema(self, name: str) -> pa.Schema:
        """The whole's, whichever version wrote it."""
        return self.whole.schema(name)

    def count(self, name: str) -> int:
        """How many rows are open."""
        return int(self.table(name, [_key(name)]).num_rows)

    def withholds(self, name: str) -> bool:
        """Whether the whole has rows of a table that aren't open."""
        return self.count(name) < self.whole.count(name)

    def batches(self, name: str, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """What is open of a table."""
        wanted = None if columns is None else list(dict.fromkeys([*columns, _key(name)]))
        ids = None if name in _OPEN else self._open_ids(name)
        for batch in self.whole.batches(name, wanted):
            if ids is not None:
                batch = batch.filter(_contained(batch[_key(name)], ids))
            if name == "queries":
                batch = self._without_work(batch)
            elif name == "pairs" and "row" in batch.schema.names:
                rows = batch["row"].to_numpy()
                places = np.where(rows < 0, -1, np.searchsorted(self._imported, rows))
                batch = _replaced(batch, "row", pa.array(places))
            yield batch if columns is None else batch.select(columns)

    def dataset(self, name: str) -> Dataset:
        """The open rows of a table, filtered once and then kept in memory."""
        from pyarrow.dataset import dataset  # imports pandas where it is installed

        if name not in self._datasets:
            rows = pa.Table.from_batches(self.batches(name), schema=self.schema(name))
            columns = schema_of(all_tables()[name]).empty_table()
            table = pa.concat_tables([columns, rows], promote_options="default")
            self._datasets[name] = dataset(table)
        return self._datasets[name]

    def _open_ids(self, name: str) -> npt.NDArray[np.int64]:
        """The ids of the queries, or images, whose rows are open; ascending."""
        if name in _AUDITS:
            audits = self.whole.release_audits()
            query_ids = {audit.query_id for audit in audits if audit.split == "val"}
            return np.array(sorted(query_ids), np.int64)
        return self._open_images if name in _OF_IMAGES else self._labeled

    @cached_property
    def _labeled(self) -> npt.NDArray[np.int64]:
        return np.array(list(self.whole.queries_of("val")), dtype=np.int64)

    @cached_property
    def _open_images(self) -> npt.NDArray[np.int64]:
        tables = (self.table(name, ["image_id"])["image_id"] for name in ("pairs", "fixed"))
        return np.unique(np.concatenate([ids.to_numpy() for ids in tables]))

    @cached_property
    def _imported(self) -> npt.NDArray[np.int64]:
        """The places of the open pairs that have one, ascending."""
        owners = self.whole.table("pairs", ["query_id"])["query_id"].to_numpy()
        rows = self.whole.imported_rows()[np.isin(owners, self._labeled)]
        return np.sort(rows[rows >= 0])

    def _without_work(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        known = _contained(batch["query_id"], self._labeled)
        for name in _WORK.keys() & set(batch.schema.names):
            nothing = pa.scalar(_WORK[name], batch.schema.field(name).type)
            batch = _replaced(batch, name, pc.if_else(known, batch[name], nothing))
        return batch


def write_open_snapshot(snapshot: OpenSnapshot) -> None:
    """Write an open snapshot beside the whole one, where `Snapshot.open` finds it."""
    snapshot.directory.mkdir()
    write_header(snapshot.directory, snapshot.header_data)
    for path in snapshot.whole.directory.glob("*.parquet"):
        name = path.stem
        schema = snapshot.schema(name)
        with pq.ParquetWriter(snapshot.path(name), schema, compression="zstd") as file:
            for batch in snapshot.batches(name):
                file.write_batch(batch)


def _key(name: str) -> str:
    """The column whose ids decide which rows of a table are open."""
    return "image_id" if name in _OF_IMAGES else "query_id"


def _contained(values: pa.Array, ids: npt.NDArray[np.int64]) -> pa.Array:
    """Which of the values are among the ascending ids."""
    array = values.to_numpy()
    return pa.array(np.searchsorted(ids, array, side="right") > np.searchsorted(ids, array))


def _replaced(batch: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    place = batch.schema.get_field_index(name)
    return batch.set_column(place, batch.schema.field(place), values)

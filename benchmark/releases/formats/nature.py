"""nature.csv: when, where and of which species each query's relevant images are, beside all that
were judged for it; nature_val.csv: the same of the validation queries.

query_id,what,value,relevant,judged
3,month,5,12,40
3,year,2021,20,51
3,place,51 -3,2,7
3,species,Rana temporaria,18,30

A place is the south-west corner of a cell of CELL degrees; months and years are those in UTC.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import floor
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmark.releases.formats.base import Access, Format, ImageFiles, WrittenFile
from benchmark.releases.formats.writing import (
    PairColumns,
    pair_columns,
    rows,
    spreadsheet_text,
    write_csv,
)
from benchmark.releases.snapshot.snapshot import Snapshot
from core.cells import CELL

COLUMNS: Final = ("query_id", "what", "value", "relevant", "judged")
WHAT: Final = ("month", "year", "place", "species")


def write(snapshot: Snapshot, directory: Path, image_files: ImageFiles) -> list[WrittenFile]:
    """Write both files; none of a split without relevant images that have a date, place or
    species.
    """
    pairs = pair_columns(snapshot)
    files = []
    for name, access, chosen in (
        ("nature.csv", Access.LABELS, pairs),
        ("nature_val.csv", Access.OPEN, pairs.of_split(snapshot, "val")),
    ):
        if lines := list(_lines(snapshot, chosen)):
            files.append(write_csv(directory, name, access, COLUMNS, lines))
    return files


def _lines(snapshot: Snapshot, pairs: PairColumns) -> Iterator[tuple[Any, ...]]:
    """The rows, by query and kind, with the values that a relevant image has."""
    order = np.argsort(pairs.image_ids, kind="stable")
    image_ids = pairs.image_ids[order]
    judged: Counter[tuple[int, int, int | str]] = Counter()
    relevant: Counter[tuple[int, int, int | str]] = Counter()
    columns = ("image_id", "observed_at", "latitude", "longitude", "scientific_name")
    for image_id, moment, latitude, longitude, species in rows(snapshot, "images", columns):
        values: list[tuple[int, int | str]] = []
        if moment:
            values += [(0, int(moment[5:7])), (1, int(moment[:4]))]
        if latitude is not None and longitude is not None:
            south, west = (
                min(floor(one / CELL) * CELL, most - CELL)
                for one, most in ((latitude, 90), (longitude, 180))
            )
            values.append((2, f"{south} {west}"))
        if species:
            values.append((3, spreadsheet_text(species)))
        begin, end = np.searchsorted(image_ids, [image_id, image_id + 1])
        for at in order[begin:end].tolist():
            query_id = int(pairs.query_ids[at])
            keys = [(query_id, *value) for value in values]
            judged.update(keys)
            if pairs.relevant[at]:
                relevant.update(keys)
    for key in sorted(relevant, key=lambda key: (*key[:2], str(key[2]).rjust(5))):
        query_id, what, value = key
        yield query_id, WHAT[what], value, relevant[key], judged[key]


FORMAT = Format(
    key="nature",
    title="Nature",
    about="Months, years, places and species of each query's relevant images, beside all that were "
    "judged.",
    write=write,
    since=2,
)

"""nature.csv: when, where and of which species each query's relevant images are, beside all that
were judged for it; nature_val.csv: the same of the validation queries.

query_id,what,value,relevant,judged
3,month,5,12,40
3,year,2021,20,51
3,elevation,250,4,9
3,place,51 -3,2,7
3,species,Rana temporaria,18,30

A place is the south-west corner of a cell of CELL degrees, an elevation the lower end of a band of
BAND meters; months and years are those in UTC.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import floor
from pathlib import Path
from typing import Any, Final

import numpy as np

from core.geo_grid import BAND, CELL
from releases.formats.base import Access, Format, ImageFiles, WrittenFile
from releases.formats.writing import PairColumns, pair_columns, spreadsheet_text, write_csv
from releases.snapshot.snapshot import Snapshot

COLUMNS: Final = ("query_id", "what", "value", "relevant", "judged")
WHAT: Final = ("month", "year", "elevation", "place", "species")


def write(snapshot: Snapshot, directory: Path, image_files: ImageFiles) -> list[WrittenFile]:
    """Write both files; none of a split of whose relevant images nothing of it is known."""
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
    for image in snapshot.images():
        values: list[tuple[int, int | str]] = []
        if image.observed_at:
            values += [(0, int(image.observed_at[5:7])), (1, int(image.observed_at[:4]))]
        if image.elevation is not None:
            values.append((2, floor(image.elevation / BAND) * BAND))
        if image.latitude is not None and image.longitude is not None:
            south, west = (
                min(floor(one / CELL) * CELL, most - CELL)
                for one, most in ((image.latitude, 90), (image.longitude, 180))
            )
            values.append((3, f"{south} {west}"))
        if image.scientific_name:
            values.append((4, spreadsheet_text(image.scientific_name)))
        begin, end = np.searchsorted(image_ids, [image.image_id, image.image_id + 1])
        for at in order[begin:end].tolist():
            query_id = int(pairs.query_ids[at])
            keys = [(query_id, *value) for value in values]
            judged.update(keys)
            if pairs.relevant[at]:
                relevant.update(keys)

    def place(key: tuple[int, int, int | str]) -> tuple[Any, ...]:
        query_id, what, value = key
        return query_id, what, value if isinstance(value, int) else value.rjust(5)

    for key in sorted(relevant, key=place):
        query_id, what, value = key
        yield query_id, WHAT[what], value, relevant[key], judged[key]


FORMAT = Format(
    key="nature",
    title="Nature",
    about="Months, years, elevations, places and species of each query's relevant images, beside "
    "all that were judged.",
    write=write,
)

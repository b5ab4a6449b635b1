"""custom_fields.csv: further columns of the tables that images came with, as far as an admin put
them into releases. Where the labels of the test split are hidden, it has the images of the open
lists, and custom_fields_all.csv has all.

    image_id   an image of attribution.csv
    field      the column's name
    kind       number, date, text or yes_no
    value      the image's: 3, 2.5, 2024-09-27, yes

A CSV that people open as a spreadsheet: names and texts that would be taken for a formula have an
apostrophe before them; as they are they stand in the snapshot. Rows go by image id, then field.
"""

from __future__ import annotations

from typing import Final

from core.csv_rows import spreadsheet_text
from releases.formats.base import Files
from releases.snapshot.snapshot import FieldValue, Snapshot

COLUMNS: Final = ("image_id", "field", "kind", "value")


def write(snapshot: Snapshot, files: Files) -> None:
    """Write a row for each value; nothing where the snapshot has none."""
    if snapshot.has_table("custom_fields") and snapshot.count("custom_fields"):
        rows = map(_row, snapshot.custom_fields())
        files.csv(f"custom_fields{files.images}.csv", COLUMNS, rows)


def _row(one: FieldValue) -> tuple[int | str, ...]:
    value = one.value if one.kind == "number" else spreadsheet_text(one.value)
    return (one.image_id, spreadsheet_text(one.field), one.kind, value)

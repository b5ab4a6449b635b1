"""Who holds the rights in each image, under which license, and where it comes from.

A CSV that people open as a spreadsheet, so a text that would be taken for a formula has an
apostrophe before it; the texts as they are stand in coco/images.json. Where the labels of the test
split are hidden, it has the images of the open lists, and attribution_all.csv has all.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.csv_rows import spreadsheet_text
from core.licenses import license_of
from releases.formats.base import Files
from releases.snapshot.snapshot import Snapshot

COLUMNS = (
    "image_id",
    "rights_holder",
    "license",
    "license_url",
    "recognised_as",
    "obligations",
    "source",
    "source_id",
    "file_name",
)


def write(snapshot: Snapshot, files: Files) -> None:
    """Write one row for each image, by id."""
    files.csv(f"attribution{files.images}.csv", COLUMNS, _rows(snapshot))


def _rows(snapshot: Snapshot) -> Iterator[tuple[int | str, ...]]:
    columns = ("rights_holder", "license", "license_url", "dataset", "source_id", "file_name")
    for image_id, holder, license, url, *source in snapshot.rows("images", ("image_id", *columns)):
        known = license_of(license, url)
        texts = (holder, license, url or known.url, known.name, "; ".join(known.obligations))
        yield (image_id, *map(spreadsheet_text, (*texts, *source)))

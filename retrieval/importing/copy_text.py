"""Images as lines of PostgreSQL's COPY in text format (PostgreSQL's documentation, "COPY")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from retrieval.importing.records import ImageRecord

COLUMNS: Final = (
    "source_id", "file_name", "license", "license_url", "rights_holder", "sha256", "format",
    "width", "height", "size_bytes", "species_id", "root_id", "observed_at", "latitude",
    "longitude", "location_uncertainty",
)  # fmt: skip
"""What `image_line` writes, in this order."""

NULL: Final = "\\N"

_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def image_line(
    record: ImageRecord, facts: Sequence[Any], species_id: int | None, root_id: int | None
) -> str:
    """Return an image's line without its end.

    `facts` are the file's SHA-256, format, width, height and size in bytes.
    """
    texts = (
        f"{record.source_id}\t{record.file_name}\t{record.license}\t{record.license_url}\t"
        f"{record.rights_holder}"
    )
    if "\\" in texts or "\n" in texts or "\r" in texts or texts.count("\t") != 4:
        texts = "\t".join(
            escaped(text)
            for text in (
                record.source_id, record.file_name, record.license, record.license_url,
                record.rights_holder,
            )
        )  # fmt: skip
    sha256, kind, width, height, size_bytes = facts
    species = NULL if species_id is None else species_id
    root = NULL if root_id is None else root_id
    observed = NULL if record.observed_at is None else record.observed_at
    latitude = NULL if record.latitude is None else record.latitude
    longitude = NULL if record.longitude is None else record.longitude
    uncertainty = NULL if record.location_uncertainty is None else record.location_uncertainty
    return (
        f"{texts}\t{sha256}\t{kind}\t{width}\t{height}\t{size_bytes}\t{species}\t{root}\t"
        f"{observed}\t{latitude}\t{longitude}\t{uncertainty}"
    )


def escaped(text: str) -> str:
    """Return a text as a field of such a line."""
    return text.translate(_ESCAPES)

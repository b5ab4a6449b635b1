"""manifest.json: what a release is, and every file of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from releases.snapshot.snapshot import Snapshot

MANIFEST_FILE: Final = "manifest.json"
#: The manifest for those who don't see the test split's labels: open files and their counts.
OPEN_MANIFEST_FILE: Final = "manifest_open.json"


@dataclass(frozen=True, slots=True)
class Counts:
    """What a release holds."""

    val_queries: int
    test_queries: int
    pairs: int | None
    """Judged pairs; None where it isn't known which images were judged."""
    positives: int
    """Relevant pairs."""
    judgments: int | None
    """Single judgments; None where an imported benchmark has none."""
    images: int
    """In the snapshot."""


def counts_of(snapshot: Snapshot) -> Counts:
    """Count what a snapshot holds."""
    header = snapshot.header
    [(val, test, pairs, positives, judgments)] = snapshot.sql(
        """
        SELECT (SELECT count(*) FROM queries WHERE split = 'val'),
               (SELECT count(*) FROM queries WHERE split = 'test'),
               (SELECT count(*) FROM pairs), (SELECT count(*) FROM pairs WHERE relevant),
               (SELECT count(*) FROM judgments)
        """
    ).fetchall()
    return Counts(
        val_queries=val,
        test_queries=test,
        pairs=pairs if header.negatives_known else None,
        positives=positives,
        judgments=None if header.annotators is None else judgments,
        images=snapshot.image_count,
    )


def write_manifest(
    path: Path,
    *,
    header: Mapping[str, Any],
    counts: Counts,
    options: Mapping[str, Any],
    files: Sequence[Mapping[str, Any]],
    takedowns: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Write a manifest; `header` is the snapshot's `header_data`, `files` are entries of a
    release's `file_list` without the manifest itself, and `takedowns` are those of
    `Release.takedowns_shown`."""
    content = {
        "release": header,
        "options": {key: options[key] for key in sorted(options)},
        "counts": asdict(counts),
        "files": [
            {key: entry[key] for key in ("name", "size", "sha256", "access", "format")}
            for entry in files
        ],
    }
    if takedowns:
        content["takedowns"] = list(takedowns)
    text = json.dumps(content, ensure_ascii=False, indent=2) + "\n"
    path.write_text(text, encoding="utf-8")


def listed_names(directory: Path) -> set[str]:
    """The manifest of a directory and the files that it names; empty where there is no readable
    manifest."""
    try:
        content = json.loads((directory / MANIFEST_FILE).read_text(encoding="utf-8"))
        return {str(entry["name"]) for entry in content["files"]} | {MANIFEST_FILE}
    except (OSError, ValueError, KeyError, TypeError):
        return set()

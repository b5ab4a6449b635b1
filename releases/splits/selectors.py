"""Which queries releases have, since their files don't follow a later draw of the splits."""

from __future__ import annotations

import pyarrow.parquet as pq

from releases.models import Release
from releases.snapshot.snapshot import Snapshot


def released_queries_by_id() -> dict[int, str]:
    """Query id -> the title of the newest release made here that has it.

    A release whose files are missing is passed over.
    """
    found: dict[int, str] = {}
    made = Release.objects.made().filter(origin=Release.Origin.MADE)
    for release in made.order_by("made_at"):
        found |= dict.fromkeys(_query_ids(release), str(release))
    return found


def _query_ids(release: Release) -> list[int]:
    path = Snapshot(release.snapshot_directory).path("queries")
    if not path.is_file():
        return []
    ids: list[int] = pq.read_table(path, columns=["query_id"])["query_id"].to_pylist()
    return ids

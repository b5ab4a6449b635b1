"""Which queries releases have, since their files don't follow a later draw of the splits."""

from __future__ import annotations

import pyarrow.parquet as pq

from benchmark.releases.models import Release
from benchmark.releases.snapshot.release_files import QUERY_FILES
from benchmark.releases.snapshot.snapshot import Snapshot
from labeling.queries.files import read_queries


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
    if path.is_file():
        ids: list[int] = pq.read_table(path, columns=["query_id"])["query_id"].to_pylist()
        return ids
    # Releases of older versions have no snapshot.
    ids = []
    for split, name in QUERY_FILES.items():
        file = release.directory / name
        if file.is_file():
            with file.open("rb") as lines:
                rows, _ = read_queries(lines, name=name, default_split=split)
            ids += [row.query_id for row in rows]
    return ids

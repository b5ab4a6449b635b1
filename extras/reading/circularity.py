"""What a reader may do to a leaderboard: runs of its own family may rank what it found high."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evaluation.leaderboard.marks import Mark
from evaluation.leaderboard.selectors import cached
from evaluation.runs.models import Run
from evaluation.scoring.bias import Tops
from extras.reading.models import ReaderPick
from extras.reading.release_file import TABLE
from releases.models import Release
from releases.snapshot.snapshot import Snapshot

_FAMILIES = f"SELECT DISTINCT family FROM {TABLE} WHERE family <> '' ORDER BY family"
# What people had labeled before is no find of the reader's.
_FINDS = f"""
SELECT 'reader ' || reader, query_id, list(DISTINCT image_id) FROM {TABLE} WHERE how <> $opinions
 GROUP BY ALL ORDER BY ALL
"""


def mark_of_release(release: Release) -> Callable[[Run], Mark | None]:
    """What marks the runs of a family whose reader brought images of a release to people."""
    snapshot = Snapshot(release.snapshot_directory)

    def read() -> list[str]:
        if not snapshot.has_table(TABLE):
            return []
        return [family for (family,) in snapshot.sql(_FAMILIES).fetchall()]

    families = cached(read, "reader families", release.pk, str(release.made_at))

    def mark(run: Run) -> Mark | None:
        model = run.embedding_model.name if run.embedding_model else ""
        names = f"{run.name} {model} {run.endpoint.get('model', '')}".casefold()
        if not any(family.casefold() in names for family in families):
            return None
        return Mark(
            "Reader’s family",
            "A reader of this model’s family chose images that people judged for this release, so "
            "what it finds is likelier to be labeled: its score may profit.",
        )

    return mark


def finds(snapshot: Snapshot) -> Tops:
    """The judged images that came to people through each reader, by its name and query id."""
    found: dict[str, dict[int, np.ndarray[tuple[int], np.dtype[np.int64]]]] = {}
    if snapshot.has_table(TABLE):
        for reader, query_id, images in snapshot.sql(
            _FINDS, opinions=str(ReaderPick.How.OPINIONS)
        ).fetchall():
            found.setdefault(reader, {})[query_id] = np.array(sorted(images), np.int64)
    return found

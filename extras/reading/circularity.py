"""What a reader may do to a leaderboard: runs of its own family may rank what it found high."""

from __future__ import annotations

from collections.abc import Callable

from evaluation.leaderboard.marks import Mark
from evaluation.leaderboard.selectors import cached
from evaluation.runs.models import Run
from extras.reading.release_file import TABLE
from releases.models import Release
from releases.snapshot.snapshot import Snapshot

_FAMILIES = f"SELECT DISTINCT family FROM {TABLE} WHERE family <> '' ORDER BY family"


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

"""Reads of backups."""

from __future__ import annotations

from annotator.models import Backup


def last_backups() -> dict[str, Backup | None]:
    """`finished`, the last whole backup, and `failed`, one that was begun after it."""
    finished = Backup.objects.exclude(finished_at=None).first()
    failed = Backup.objects.filter(finished_at=None, pk__gt=finished.pk if finished else 0).first()
    return {"finished": finished, "failed": failed}

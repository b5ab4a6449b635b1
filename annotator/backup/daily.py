"""One backup a day, of which the last few are kept."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now

from annotator.backup.services import DAILY, Contents, backup_write, file_name, prune
from annotator.models import Backup

EVERY: Final = timedelta(days=1)
#: After one that failed or was killed.
RETRY: Final = timedelta(hours=1)


def backup_is_due() -> bool:
    """Whether BACKUP_DIR is set and no daily backup was made within a day, or tried just now."""
    if not settings.BACKUP_DIR:
        return False
    made = Q(finished_at__isnull=False, started_at__gt=Now() - EVERY)
    tried = Q(finished_at=None, started_at__gt=Now() - RETRY)
    return not Backup.objects.filter(made | tried, daily=True).exists()


def daily_backup() -> Contents | None:
    """Write the backup of today into BACKUP_DIR and delete old ones; None where none is due.

    Raises as `backup_write`.
    """
    if not backup_is_due():
        return None
    contents = backup_write(f"{settings.BACKUP_DIR}/{file_name(DAILY)}", daily=True)
    prune(settings.BACKUP_DIR, DAILY, keep=settings.BACKUP_KEEP)
    return contents

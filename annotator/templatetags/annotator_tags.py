"""The last backups, for the corpus page; the provider of log-ins, for the log-in page."""

from __future__ import annotations

from django import template

from annotator.models import Backup
from annotator.people.oidc import provider_host

register = template.Library()
register.simple_tag(provider_host)


@register.simple_tag
def last_backups() -> dict[str, Backup | None]:
    """`finished`, the last whole backup, and `failed`, one that was begun after it."""
    finished = Backup.objects.exclude(finished_at=None).first()
    failed = Backup.objects.filter(finished_at=None, pk__gt=finished.pk if finished else 0).first()
    return {"finished": finished, "failed": failed}

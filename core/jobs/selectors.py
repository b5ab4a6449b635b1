"""Reading of jobs."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from core.access import Role, at_least
from core.jobs.models import Job


def jobs_visible_to(user: Any) -> QuerySet[Job]:
    """Return the jobs that a user may see, newest first: admins all, others their own."""
    jobs = Job.objects.select_related("created_by").order_by("-pk")
    return jobs if at_least(user, Role.ADMIN) else jobs.filter(created_by=user.pk)

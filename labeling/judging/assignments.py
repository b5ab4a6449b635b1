"""Who takes part in a query, and who still labels."""

from __future__ import annotations

from django.contrib.auth import get_user_model

from core.access import Role
from labeling.judging.models import Judgment, JudgmentSource
from labeling.queries.models import Assignment, Query


def still_labeling(query: Query) -> list[str]:
    """The names of those who take part in an open query and haven't handed in, in their order; of
    no other query anybody.

    An annotator takes part while a judgment of theirs stands that they made here; an imported one
    doesn't count, and neither does a reviewer's.
    """
    if query.state != Query.State.OPEN:
        return []
    judged = Judgment.objects.filter(query=query).exclude(source=JudgmentSource.IMPORT)
    users = get_user_model().objects.filter(
        role=Role.ANNOTATOR, is_active=True, pk__in=judged.values("annotator")
    )
    done = Assignment.objects.filter(query=query).values("annotator")
    return [user.get_username() for user in users.exclude(pk__in=done).order_by("username")]

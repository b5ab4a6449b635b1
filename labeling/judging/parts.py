"""Who labels a query, and whether there is room for another person."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet

from core.access import Role
from core.sql import fetch_all
from labeling.judging.models import Judgment
from labeling.judging.sources import NOT_LABELING
from labeling.queries.models import Assignment, Query


def people_labeling(query: Query) -> QuerySet[Any]:
    """Annotators who have a part in the query, by name, that is neither handed in nor paused: they
    are assigned, or a judgment of theirs stands that they made while labeling it.
    """
    judged = Judgment.objects.filter(query=query).exclude(source__in=NOT_LABELING)
    parts = Assignment.objects.filter(query=query)
    ended = parts.exclude(handed_in_at=None, paused_at=None)
    return (
        get_user_model()
        .objects.filter(role=Role.ANNOTATOR, is_active=True)
        .filter(
            Q(pk__in=judged.values("annotator"))
            | Q(pk__in=parts.exclude(assigned_at=None).values("annotator"))
        )
        .exclude(pk__in=ended.values("annotator"))
        .order_by("username")
    )


def hand_ins_missing(query: Query) -> int:
    """How many more people must hand the query in before it is submitted; 0 where it asks for no
    number.
    """
    if not query.annotators_wanted:
        return 0
    done = query.assignments.filter(handed_in_at__isnull=False, annotator__role=Role.ANNOTATOR)
    return max(query.annotators_wanted - done.count(), 0)


_CLOSED: Final = f"""
SELECT q.id FROM {Query._meta.db_table} q
 WHERE q.id = ANY(%(queries)s)
   AND NOT EXISTS (SELECT FROM {Judgment._meta.db_table} j WHERE j.query_id = q.id
                      AND j.annotator_id = %(user)s AND j.source <> ALL(%(elsewhere)s))
   AND (q.assigned_only OR q.annotators_wanted <= (
       SELECT count(*) FROM {get_user_model()._meta.db_table} person
         LEFT JOIN {Assignment._meta.db_table} part
                ON part.query_id = q.id AND part.annotator_id = person.id
        WHERE person.role = 'annotator'
          AND (part.handed_in_at IS NOT NULL
               OR part.paused_at IS NULL AND person.is_active
              AND (part.assigned_at IS NOT NULL
                   OR EXISTS (SELECT FROM {Judgment._meta.db_table} j WHERE j.query_id = q.id
                                 AND j.annotator_id = person.id
                                 AND j.source <> ALL(%(elsewhere)s))))))
"""


def closed_to(user: Any, queries: Collection[Query]) -> set[int]:
    """Those of the queries, by primary key, that an annotator without a row of `Assignment` may not
    label: only those assigned may, or as many as are wanted have begun, and the annotator hasn't.
    One SQL query, none where all are open to everybody.
    """
    limited = [query.pk for query in queries if query.assigned_only or query.annotators_wanted]
    if not limited:
        return set()
    values = {"queries": limited, "user": user.pk, "elsewhere": list(NOT_LABELING)}
    return {pk for (pk,) in fetch_all(_CLOSED, values)}

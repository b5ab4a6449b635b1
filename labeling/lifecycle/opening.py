"""Opening many drafts at once, so that one pass over the corpus ranks their candidates."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction

from core.errors import QueryGone
from labeling.candidates.services import lock_query
from labeling.lifecycle.services import query_transition
from labeling.queries.models import Query
from labeling.queries.transitions import TransitionForbidden, TransitionRefused

#: How many one request may open; each holds a lock until all are open.
MOST_AT_ONCE: Final = 1000


@dataclass(frozen=True, slots=True)
class OpeningRefusal:
    """A query that stays as it is, and why, in words for people."""

    query_id: int
    """The number that the CSV files carry."""
    detail: str


@dataclass(frozen=True, slots=True)
class OpeningReport:
    """The outcome for the queries that were to be opened."""

    opened: int
    unchanged: int
    """Open already."""
    refused: list[OpeningRefusal]


@transaction.atomic
def queries_open(*, pks: Collection[int], by: Any) -> OpeningReport:
    """Open the drafts of these primary keys.

    A query that is neither a draft nor open is refused and doesn't keep the others from being
    opened. One that doesn't exist is ignored. All become open in one transaction, so that the first
    job finds all lists waiting and ranks them in one pass. Raises
    TransitionForbidden where `by` may not open queries, ValueError for more than MOST_AT_ONCE.
    """
    if len(pks) > MOST_AT_ONCE:
        raise ValueError(f"At most {MOST_AT_ONCE:,} queries are opened at once: {len(pks):,}")
    opened = unchanged = 0
    refused = []
    # In one order, so that two requests don't deadlock.
    for requested in Query.objects.filter(pk__in=pks).order_by("pk"):
        try:
            query = lock_query(requested)
            if query.state == Query.State.DRAFT:
                query_transition(query=query, to_state=Query.State.OPEN, by=by)
                opened += 1
            elif query.state == Query.State.OPEN:
                unchanged += 1
            else:
                state = query.get_state_display().lower()
                refused.append(OpeningRefusal(query.query_id, f"It is {state}, not a draft."))
        except QueryGone:
            continue
        except TransitionForbidden:
            raise
        except TransitionRefused as error:
            refused.append(OpeningRefusal(requested.query_id, str(error)))
    return OpeningReport(opened, unchanged, refused)

"""In which order a person labels a query."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from core.access import Role, at_least
from labeling.queries.models import Query


def orders_open_to(user: Any, query: Query) -> list[str]:
    """The orders that a person may choose for a query, its own first: both, except for annotators
    where settings.ANNOTATORS_CHOOSE_ORDER says that they take the query's.
    """
    if not (settings.ANNOTATORS_CHOOSE_ORDER or at_least(user, Role.REVIEWER)):
        return [query.order]
    return sorted(Query.Order.values, key=lambda order: order != query.order)

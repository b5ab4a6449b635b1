"""Rows for tests of this app."""

from typing import Any

from labeling.models import Query


def make_query(query_id: int, text: str, **values: Any) -> Query:
    """A completed query."""
    defaults = {
        "category": "Mating, Courtship, Reproduction",
        "iconic_group": "Birds",
        "split": "test",
        "state": Query.State.COMPLETE,
    }
    return Query.objects.create(query_id=query_id, text=text, **{**defaults, **values})

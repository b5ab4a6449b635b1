"""The demo corpus's queries, ready to be labeled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction

from demo.queries import QUERIES, DemoQuery
from labeling.candidates.services import lists_refresh_stale
from labeling.lifecycle.services import lock_query_ids, query_create, query_transition
from labeling.queries.models import Query
from retrieval.importing.species_names import iconic_group
from retrieval.species.selectors import species_resolve


class DemoSpeciesMissing(LookupError):
    """The demo corpus isn't imported, or not all of it."""


def demo_queries_load(*, by: Any, demo_queries: Sequence[DemoQuery] = QUERIES) -> list[Query]:
    """Create and open demo queries, the 24 unless told, `by` an admin; returns them in their order.

    A demo query that exists is left as people have made it, so running it again only adds what is
    missing and asks again for lists that failed. Raises DemoSpeciesMissing before the demo corpus
    is imported.
    """
    loaded = [_load(demo, by) for demo in demo_queries]
    lists_refresh_stale(by=by)
    return loaded


@transaction.atomic
def _load(demo: DemoQuery, by: Any) -> Query:
    lock_query_ids()
    known = Query.objects.filter(text=demo.query_text).first()
    if known is not None:
        return known
    species, missing = species_resolve(demo.species)
    if missing:
        raise DemoSpeciesMissing(
            f"The corpus lacks {', '.join(map(str, missing))}, which the species filter of "
            f"“{demo.query_text}” names. Import the demo corpus first."
        )
    taken = Query.objects.filter(query_id=demo.query_id).exists()
    query = query_create(
        query_id=None if taken else demo.query_id,
        text=demo.query_text,
        category=demo.category,
        iconic_group=iconic_group(supercategory=demo.iconic_group),
        scientific_terms=demo.scientific_terms,
        split=demo.split,
        guidelines=demo.guidelines,
        species=species,
        created_by=by,
    )
    return query_transition(query=query, to_state=Query.State.OPEN, by=by)

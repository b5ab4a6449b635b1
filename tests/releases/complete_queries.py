"""Completed queries over the toy corpus."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from labeling.lifecycle.services import query_create, query_transition
from labeling.queries.models import Query
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from tests.labeling.conftest import make_images, run_jobs
from tests.labeling.judging import judge
from tests.toy_model import toy_model

IMAGES = 40
RELEVANT = (0, 4, 9, 19)


def make_corpus(settings: Any) -> None:
    """IMAGES images of the toy corpus, number 0 the nearest to every text of several words."""
    settings.EMBEDDING_MODEL = toy_model()
    embedding_model_get_or_create(name=settings.EMBEDDING_MODEL)
    make_images(IMAGES)


def open_query(number: int, by: Any) -> Query:
    """An open query with its list of the whole corpus."""
    query = query_create(
        text=f"a toad, number {number}",
        category="Species ID",
        split="test",
        query_id=number,
        created_by=by,
    )
    query = query_transition(query=query, to_state="open", by=by)
    run_jobs()
    query.refresh_from_db()
    return query


def complete_query(
    number: int,
    *,
    by: Any,
    annotator: Any,
    judged: int = IMAGES,
    relevant: Collection[int] = RELEVANT,
) -> Query:
    """A completed query of which the first `judged` images were judged."""
    query = open_query(number, by)
    judge(query, annotator, sorted(relevant), "relevant")
    judge(query, annotator, sorted(set(range(judged)) - set(relevant)), "not_relevant")
    return query_transition(query=query, to_state="complete", by=by, note="for the test")

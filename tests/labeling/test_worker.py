"""A candidate list whose worker is killed in the middle."""

from __future__ import annotations

import numpy as np
import pytest
from django.db import transaction
from django.utils import timezone

from annotator.people.services import user_create
from core.access import Role
from core.locks import transaction_lock
from labeling.candidates.models import Candidate
from labeling.candidates.selectors import list_verify
from labeling.lifecycle.services import query_create, query_transition
from labeling.queries.models import Query
from retrieval.embedding.embedding_models import embedding_model_get_or_create, embedding_model_lock
from retrieval.embedding.models import Embedding
from retrieval.encoding.model_specs import describe
from tests.labeling.conftest import make_images
from tests.processes import wait_for
from tests.threads import waiting

pytestmark = [pytest.mark.faults, pytest.mark.django_db(transaction=True)]
COUNT = 40


def opened_query() -> Query:
    """A query just opened over images of random vectors."""
    admin = user_create(username="ada", role=Role.ADMIN, password="tawny-owl-at-dusk-7")
    model = embedding_model_get_or_create(name="demo")
    vectors = np.random.default_rng(3).normal(size=(COUNT, describe("demo").dimension))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for image, vector in zip(make_images(COUNT, embedded=False), vectors, strict=True):
        Embedding.objects.create(
            model=model, image=image, vector=vector.tolist(), created_at=timezone.now()
        )
    query = query_create(text="a toad", category="Species ID", created_by=admin)
    return query_transition(query=query, to_state="open", by=admin)


def ready(query: Query) -> bool:
    query.refresh_from_db()
    return query.current_list is not None and query.current_list.ready


def test_a_worker_killed_while_it_ranks_leaves_nothing_and_the_next_one_does_it(
    demo_encoder, start_worker
):
    query = opened_query()
    model = embedding_model_get_or_create(name="demo")
    first = start_worker(concurrency=1)
    with transaction.atomic():
        # As an insert of embeddings does, this holds the freezing up.
        transaction_lock(embedding_model_lock(model), shared=True)
        wait_for(waiting, what="the worker to rank")
        first.kill()
        assert not ready(query)
        assert not Candidate.objects.exists()
    start_worker(concurrency=1)
    wait_for(lambda: ready(query), what="the list")
    assert query.current_list is not None
    assert query.current_list.size == COUNT
    assert query.lists.count() == 1
    assert Candidate.objects.count() == COUNT
    # What the worker's process ranked, this one ranks the same bit for bit.
    assert list_verify(query.current_list)

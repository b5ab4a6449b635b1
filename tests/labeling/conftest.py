"""A toy corpus whose order is known: image n (from 0) has the score 1 - n/2048, exactly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from django.utils import timezone

from core.jobs.models import Job
from core.jobs.services import job_slice_run
from labeling.lifecycle.services import query_create, query_transition
from labeling.queries.models import Query
from retrieval.corpus.models import Image, Species, SpeciesName
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.models import Embedding, EmbeddingModel
from tests.retrieval.making import new_image
from tests.toy_model import toy_model as toy_spec

FIRST_ID = 1001
MakeQuery = Callable[..., Query]


def make_species(name: str, **fields: Any) -> Species:
    genus, _, epithet = name.partition(" ")
    species = Species.objects.create(
        scientific_name=name, genus=genus, specific_epithet=epithet, **fields
    )
    SpeciesName.objects.create(species=species, name=name, search_text=name.lower())
    return species


def make_images(
    count: int, *, first: int = 0, species: Species | None = None, embedded: bool = True
) -> list[Image]:
    """Images number `first`.. of the toy corpus; image number n has the id FIRST_ID + n."""
    images = Image.objects.bulk_create(
        new_image(
            n,
            id=FIRST_ID + n,
            file_name=f"toy/{n}.jpg",
            species=species,
            latitude=1.5,
            longitude=-2.5,
        )
        for n in range(first, first + count)
    )
    if embedded:
        embed(images)
    return images


def embed(images: Sequence[Image], scores: Sequence[float] | None = None) -> None:
    """Give images their vectors: by default the score that their number means."""
    model = EmbeddingModel.objects.get(name=toy_spec())
    Embedding.objects.bulk_create(
        Embedding(
            model=model,
            image=image,
            vector=[score, float(np.sqrt(1 - score * score))],
            created_at=timezone.now(),
        )
        for image, score in zip(
            images, scores or [1 - (image.pk - FIRST_ID) / 2048 for image in images], strict=True
        )
    )


def run_jobs() -> list[Job]:
    """Do all unfinished jobs in this process, as a worker would; returns them."""
    jobs = list(Job.objects.filter(state__in=Job.UNFINISHED).order_by("pk"))
    for job in jobs:
        job_slice_run(job_id=job.pk)
        job.refresh_from_db()
    return jobs


def fields(answer: Any) -> list[str]:
    """The fields that a problem document names."""
    assert answer["Content-Type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == answer.status_code
    return [error["field"] for error in body["errors"]]


@pytest.fixture
def toy_model(db: None, settings: Any) -> EmbeddingModel:
    """The toy model in use: real, of two dimensions, its text vectors known."""
    settings.EMBEDDING_MODEL = toy_spec()
    return embedding_model_get_or_create(name=toy_spec())


@pytest.fixture
def new_query(admin: Any) -> Callable[..., Query]:
    """Makes draft queries."""

    def make(text: str = "a toad", **fields: Any) -> Query:
        fields = {"category": "Species ID", "split": "val", "created_by": admin} | fields
        return query_create(text=text, **fields)

    return make


@pytest.fixture
def open_query(
    toy_model: EmbeddingModel, admin: Any, new_query: Callable[..., Query]
) -> Callable[..., Query]:
    """Makes open queries with a ready list over the images that there are."""

    def make(text: str = "a toad", **fields: Any) -> Query:
        query = query_transition(query=new_query(text, **fields), to_state="open", by=admin)
        run_jobs()
        query.refresh_from_db()
        assert query.current_list is not None
        assert query.current_list.ready
        return query

    return make

"""Rows for tests of this app."""

from collections.abc import Sequence
from typing import Any

from django.utils import timezone

from labeling.candidates.models import Candidate, CandidateList
from labeling.queries.models import Query
from retrieval.embedding.models import EmbeddingModel

# Of the tiny model's vectors.
WIDTH = 16
TINY_MODEL = {
    "embed_dim": WIDTH,
    "vision_cfg": {
        "image_size": 32,
        "layers": 1,
        "width": WIDTH,
        "head_width": 8,
        "patch_size": 16,
    },
    "text_cfg": {"context_length": 16, "width": WIDTH, "heads": 2, "layers": 1},
}


def make_query(query_id: int, text: str, **values: Any) -> Query:
    """A completed query."""
    defaults = {
        "category": "Mating, Courtship, Reproduction",
        "iconic_group": "Birds",
        "split": "test",
        "state": Query.State.COMPLETE,
    }
    return Query.objects.create(query_id=query_id, text=text, **{**defaults, **values})


def make_list(query: Query, image_ids: Sequence[int]) -> CandidateList:
    """A finished list of these images in this order, now the query's current one."""
    model, _ = EmbeddingModel.objects.get_or_create(name="toy", defaults={"dimension": 2})
    made = CandidateList.objects.create(
        query=query,
        model_name=model.name,
        embedding_model=model,
        text=query.text,
        depth=len(image_ids),
        size=len(image_ids),
        total=len(image_ids),
        text_vector=[1, 0],
        frozen_at=timezone.now(),
        checksum="0" * 64,
    )
    Candidate.objects.bulk_create(
        Candidate(list=made, rank=rank, image_id=image_id, score=1 - rank / 100)
        for rank, image_id in enumerate(image_ids, start=1)
    )
    query.current_list = made
    query.save(update_fields=["current_list"])
    return made

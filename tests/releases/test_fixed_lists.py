"""The fixed lists for re-ranking: exact, of the whole corpus, from candidate lists where they are
the same."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from core.jobs.kinds import JobFailed
from labeling.candidates.models import CandidateList
from labeling.queries.models import Query
from releases.making import fixed_lists, services
from releases.snapshot.snapshot import FixedImage, Snapshot
from retrieval.corpus.models import Image, Species
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.models import Embedding, EmbeddingModel
from retrieval.embedding.text_vectors import text_vector
from retrieval.encoding.model_specs import ModelSpecError
from retrieval.flags.services import image_restore, image_withdraw
from retrieval.ranking.selectors import rank_images
from tests.releases.snapshots import header, write_snapshot
from tests.releases.toy import WIDTH, make_list, make_query
from tests.retrieval.making import new_image

COUNT = 130


@pytest.fixture
def model(db: None, tiny_model: str, settings: Any) -> EmbeddingModel:
    """The tiny model with COUNT embedded images in any direction, some of them twice."""
    settings.EMBEDDING_MODEL = tiny_model
    model = embedding_model_get_or_create(name=tiny_model)
    assert model.dimension == WIDTH
    images = Image.objects.bulk_create(new_image(number) for number in range(1, COUNT + 1))
    vectors = np.random.default_rng(5).normal(size=(COUNT, WIDTH))
    vectors[1::13] = vectors[0]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    stored = timezone.now() - timedelta(days=1)
    Embedding.objects.bulk_create(
        Embedding(model=model, image=image, vector=vector.tolist(), created_at=stored)
        for image, vector in zip(images, vectors, strict=True)
    )
    return model


def frozen(query: Query, model: EmbeddingModel, **values: Any) -> CandidateList:
    """The query's candidate list, with all images in their exact order."""
    vector = text_vector(model, query.text)
    ranked = rank_images(model=model, text_vector=vector, limit=None)
    made = make_list(query, [image_id for image_id, _ in ranked])
    for candidate, (_, score) in zip(made.candidates.order_by("rank"), ranked, strict=True):
        candidate.score = score
        candidate.save(update_fields=["score"])
    fields = {
        "embedding_model": model,
        "model_name": model.name,
        "text_vector": vector,
        **values,
    }
    CandidateList.objects.filter(pk=made.pk).update(**fields)
    made.refresh_from_db()
    return made


def exact(query: Query, model: EmbeddingModel) -> list[FixedImage]:
    """The best hundred of the corpus by an exact scan."""
    ranked = rank_images(model=model, text_vector=text_vector(model, query.text), limit=100)
    return [
        FixedImage(query.query_id, rank, image_id, score)
        for rank, (image_id, score) in enumerate(ranked, start=1)
    ]


def made_with_scans(model: EmbeddingModel) -> tuple[list[list[FixedImage]], int]:
    """The fixed lists, and how many scans of the corpus they took."""
    with CaptureQueriesContext(connection) as captured:
        lists = list(fixed_lists.released_fixed_lists(model))
    return lists, sum("<#>" in entry["sql"] for entry in captured.captured_queries)


def test_a_query_without_a_list_is_ranked_over_the_whole_corpus(
    query: Query, model: EmbeddingModel
) -> None:
    make_query(7, "a fox", state=Query.State.OPEN)
    other = make_query(40, "a snail on a leaf", split="val")
    lists, scans = made_with_scans(model)
    assert lists == [exact(query, model), exact(other, model)]
    assert [len(one) for one in lists] == [100, 100]
    assert scans == 2


def test_through_the_matrix_the_lists_are_the_same_without_a_scan(
    query: Query, model: EmbeddingModel
) -> None:
    others = [make_query(40 + number, f"a snail on leaf {number}") for number in range(3)]
    taken = make_query(50, "a snail whose list is known")
    frozen(taken, model)
    expected = [exact(one, model) for one in (query, *others, taken)]
    call_command("pack_embeddings", model=model.name, verbosity=0)
    assert made_with_scans(model) == (expected, 0)
    texts = [(one.query_id, one.text) for one in (taken, query)]
    assert list(fixed_lists.fixed_lists(model, texts)) == [expected[-1], expected[0]]


def test_withdrawn_images_are_left_out_of_a_list_taken_over(
    query: Query, model: EmbeddingModel, reviewer: Any
) -> None:
    frozen(query, model)
    before = exact(query, model)
    # The first ranks of the query's own list are taken.
    assert made_with_scans(model) == ([before], 0)
    image_withdraw(image=Image(pk=before[4].image_id), by=reviewer)
    lists, scans = made_with_scans(model)
    assert lists == [exact(query, model)]
    assert before[4].image_id not in {row.image_id for row in lists[0]}
    assert (lists[0][4].rank, lists[0][4].image_id) == (5, before[5].image_id)
    assert scans == 0


def test_a_list_that_is_not_the_same_is_not_taken(query: Query, model: EmbeddingModel) -> None:
    made = frozen(query, model)
    # Were it taken, it would be seen.
    made.candidates.filter(rank__lte=50).delete()
    rows = CandidateList.objects.filter(pk=made.pk)
    changes: list[dict[str, Any]] = [
        {"species_ids": [1]},
        {"text": "an earlier text"},
        {"size": 99},
        {"frozen_at": timezone.now() - timedelta(days=2)},
        {"embedding_model": EmbeddingModel.objects.create(name="other", dimension=WIDTH)},
    ]
    for change in changes:
        before = rows.values(*change).get()
        rows.update(**change)
        assert made_with_scans(model) == ([exact(query, model)], 1), change
        rows.update(**before)


def test_an_image_that_came_back_is_not_missed(
    query: Query, model: EmbeddingModel, reviewer: Any
) -> None:
    best = exact(query, model)[0].image_id
    image_withdraw(image=Image(pk=best), by=reviewer)
    frozen(query, model)
    assert made_with_scans(model)[1] == 0
    image_restore(image=Image(pk=best), by=reviewer)
    lists, scans = made_with_scans(model)
    assert lists[0][0].image_id == best
    assert lists == [exact(query, model)]
    assert scans == 1


def test_a_filtered_list_lends_its_texts_vector(
    query: Query, model: EmbeddingModel, settings: Any
) -> None:
    species = Species.objects.create(scientific_name="Ciconia ciconia")
    frozen(query, model, species_ids=[species.pk])
    expected = exact(query, model)
    # A model that can't be loaded any more: its stored vectors are enough.
    EmbeddingModel.objects.filter(pk=model.pk).update(name="/nowhere/at/all")
    model.refresh_from_db()
    assert list(fixed_lists.released_fixed_lists(model)) == [expected]


def test_a_release_holds_them_with_their_images(
    query: Query, model: EmbeddingModel, var_dir: Any
) -> None:
    release = services.release_make(release=services.release_claim(name="v1", created_by=None))
    snapshot = Snapshot(release.snapshot_directory)
    assert list(snapshot.fixed()) == exact(query, model)
    images = {row.image_id for row in snapshot.fixed()}
    assert [image.image_id for image in snapshot.images()] == sorted(images)
    assert release.header["rerank_model"] == model.name
    # None are made unless requested.
    claimed = services.release_claim(name="v2", created_by=None, options={"rerank_model": ""})
    release = services.release_make(release=claimed)
    assert list(Snapshot(release.snapshot_directory).fixed()) == []
    assert release.header["rerank_model"] == ""


def test_a_model_that_cant_be_loaded_is_reported(
    query: Query, model: EmbeddingModel, var_dir: Any
) -> None:
    claimed = services.release_claim(name="v1", created_by=None)
    EmbeddingModel.objects.filter(pk=model.pk).update(name="/nowhere/at/all")
    claimed.options["rerank_model"] = "/nowhere/at/all"
    claimed.save()
    with pytest.raises(JobFailed, match="fixed lists for re-ranking can't be made") as caught:
        services.release_make(release=claimed)
    assert isinstance(caught.value.__cause__, ModelSpecError)
    claimed.refresh_from_db()
    assert (claimed.files_ready, claimed.directory.exists()) == (False, False)


def test_a_release_holds_the_vectors_that_order_its_images_again(
    query: Query, model: EmbeddingModel, tmp_path: Path
) -> None:
    listed = list(frozen(query, model).candidates.order_by("rank").values_list("image_id", "score"))
    other = make_query(query.query_id + 1, "a text of another query")
    rows = list(fixed_lists.released_vectors(model))
    assert [(row.query_id, row.text) for row in rows] == [
        (query.query_id, query.text),
        (other.query_id, other.text),
    ]
    write_snapshot(tmp_path, header=header(), vectors=rows)
    kept = next(Snapshot(tmp_path).vectors())
    assert kept == rows[0]
    stored = dict(Embedding.objects.values_list("image_id", "vector"))
    embeddings = np.array(list(stored.values()), np.float16).astype(float)
    scores = dict(zip(stored, (embeddings @ kept.vector).tolist(), strict=True))
    order = sorted(scores, key=lambda image_id: (-scores[image_id], image_id))
    assert [(image_id, scores[image_id]) for image_id in order] == listed
    # Without a model of fixed lists the lists' own vectors are released.
    [row] = fixed_lists.released_vectors(None)
    assert (row.query_id, row.model, row.text) == (query.query_id, model.name, query.text)
    Embedding.objects.all().delete()
    assert list(fixed_lists.released_fixed_lists(model)) == [[], []]

"""What a withdrawn image is left out of, and since when."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from retrieval.corpus.models import Image, ImageWithdrawal
from retrieval.corpus.selectors import corpus_counts as corpus_size
from retrieval.embedding.counts import corpus_coverage
from retrieval.embedding.embedding_models import (
    embedding_model_freeze,
    embedding_model_get_or_create,
)
from retrieval.embedding.models import EmbeddingModel
from retrieval.flags.selectors import images_in_corpus
from retrieval.flags.services import image_restore, image_withdraw, withdrawals_freeze
from retrieval.importing.services import import_images
from retrieval.ranking.selectors import corpus_counts, rank_images
from retrieval.search.selectors import search_images
from tests.conftest import token_of
from tests.retrieval.making import coco, embed_rows, image_row
from tests.threads import at_once
from tests.toy_model import toy_model as toy_spec

pytestmark = pytest.mark.django_db

TICK = timedelta(microseconds=1)


@pytest.fixture
def bears(toy_model: EmbeddingModel, animals: Any) -> dict[int, Image]:
    """Images 1 to 6 in the order of their scores; 2, 4 and 6 are bears; 6 has no embedding."""
    images = {
        number: image_row(number, animals["Ursus arctos"] if number % 2 == 0 else None)
        for number in range(1, 7)
    }
    embed_rows(toy_model, {number: [10 - number, number, 0] for number in range(1, 6)})
    return images


def order(model: EmbeddingModel, **options: Any) -> list[int]:
    ranked = rank_images(model=model, text_vector=[1.0, 0, 0], **{"limit": None, **options})
    return [image_id for image_id, _ in ranked]


def counts(model: EmbeddingModel, **options: Any) -> tuple[int, int]:
    found = corpus_counts(model=model, **options)
    return found.embedded, found.unembedded


def freeze(model: EmbeddingModel) -> datetime:
    """The moment as a list takes it."""
    with transaction.atomic():
        withdrawals_freeze()
        return embedding_model_freeze(model=model)


def test_ranking_of_a_moment_is_the_same_whatever_is_decided_later(
    toy_model: EmbeddingModel, animals: Any, bears: dict[int, Image], reviewer: Any
) -> None:
    moments = [freeze(toy_model)]
    for act, number in [
        (image_withdraw, 2),
        (image_withdraw, 4),
        (image_restore, 2),
        (image_withdraw, 6),
        (image_withdraw, 2),
        (image_restore, 4),
    ]:
        act(image=bears[number], by=reviewer)
        moments.append(freeze(toy_model))
    within = {"species_ids": [animals["Ursus arctos"].pk]}
    assert [
        (
            order(toy_model, created_before=moment),
            order(toy_model, created_before=moment, **within),
            counts(toy_model, created_before=moment),
            counts(toy_model, created_before=moment, **within),
        )
        for moment in moments
    ] == [
        ([1, 2, 3, 4, 5], [2, 4], (5, 1), (2, 1)),
        ([1, 3, 4, 5], [4], (4, 1), (1, 1)),
        ([1, 3, 5], [], (3, 1), (0, 1)),
        ([1, 2, 3, 5], [2], (4, 1), (1, 1)),
        ([1, 2, 3, 5], [2], (4, 0), (1, 0)),
        ([1, 3, 5], [], (3, 0), (0, 0)),
        ([1, 3, 4, 5], [4], (4, 0), (1, 0)),
    ]


def test_a_withdrawal_counts_from_its_very_moment_to_before_its_end(
    toy_model: EmbeddingModel, bears: dict[int, Image], reviewer: Any
) -> None:
    image_withdraw(image=bears[1], by=reviewer)
    image_restore(image=bears[1], by=reviewer)
    interval = ImageWithdrawal.objects.get()
    assert interval.restored_at is not None

    def has_it(moment: datetime) -> bool:
        return 1 in order(toy_model, created_before=moment)

    assert has_it(interval.withdrawn_at - TICK)
    assert not has_it(interval.withdrawn_at)
    assert not has_it(interval.restored_at - TICK)
    assert has_it(interval.restored_at)


def test_the_scan_asks_a_hash_of_withdrawn_ids_and_reads_no_other_way(
    toy_model: EmbeddingModel, bears: dict[int, Image], reviewer: Any
) -> None:
    """However stale the statistics, vectors are never put into a hash or sorted to be joined."""
    with CaptureQueriesContext(connection) as captured:
        order(toy_model)
        order(toy_model, created_before=freeze(toy_model))
    rankings = [one["sql"] for one in captured if "<#>" in one["sql"]]
    scans = [sql.partition("FROM (")[2].rpartition(") best JOIN")[0] for sql in rankings]
    assert len(scans) == 2
    for sql in scans:
        with connection.cursor() as cursor:
            cursor.execute("EXPLAIN " + sql.replace("%", "%%"))
            plan = "\n".join(row[0] for row in cursor.fetchall())
        assert "hashed SubPlan" in plan
        assert "Join" not in plan


def test_search_and_the_counts_of_the_corpus_leave_it_out(
    settings: Any, reviewer: Any, animals: Any
) -> None:
    settings.EMBEDDING_MODEL = toy_spec()
    model = embedding_model_get_or_create(name=toy_spec())
    images = {number: image_row(number) for number in (1, 2, 3, 4)}
    embed_rows(model, {1: [1, 0], 2: [4, 3], 3: [0, 1]})
    image_withdraw(image=images[1], by=reviewer)
    image_withdraw(image=images[4], by=reviewer)
    found = search_images(text="a bear", limit=10)
    assert [(hit.rank, hit.image.pk) for hit in found.hits] == [(1, 2), (2, 3)]
    assert found.total == 2
    assert corpus_size().images == 2
    assert [(one.model.name, one.embedded) for one in corpus_coverage()] == [(toy_spec(), 2)]
    assert sorted(image.pk for image in images_in_corpus()) == [2, 3]
    image_restore(image=images[1], by=reviewer)
    assert [hit.image.pk for hit in search_images(text="a bear", limit=10).hits] == [1, 2, 3]


def test_its_image_is_for_reviewers_only(
    clients: dict[str, Client], reviewer: Any, annotator: Any, store: Any, tmp_path: Any
) -> None:
    (tmp_path / "data").mkdir()
    import_images(path=coco(tmp_path / "data"))
    image = Image.objects.get(pk=1)
    image_withdraw(image=image, by=reviewer)
    for address in (image.url, image.thumbnail_url):
        assert clients["annotator"].get(address).status_code == 404
        assert clients["reviewer"].get(address).status_code == 200
        assert clients["admin"].get(address).status_code == 200
        assert clients["anonymous"].get(address).status_code == 401
        token = {"Authorization": f"Token {token_of(annotator)}"}
        assert Client().get(address, headers=token).status_code == 404
    image_restore(image=image, by=reviewer)
    assert clients["annotator"].get(image.url).status_code == 200


@pytest.mark.django_db(transaction=True)
class TestRaces:
    def test_a_frozen_moment_parts_what_is_withdrawn_from_what_is_not_yet(
        self, transactional_db: None, toy_model: EmbeddingModel, reviewer: Any
    ) -> None:
        """What an order shows at once, with the others still under way, is what it shows ever
        after.
        """
        images = [image_row(number) for number in range(12)]
        embed_rows(toy_model, {number: [20 - number, number, 0] for number in range(12)})
        for image in images[6:]:
            image_withdraw(image=image, by=reviewer)

        def frozen() -> tuple[datetime, list[int], tuple[int, int]]:
            moment = freeze(toy_model)
            return (
                moment,
                order(toy_model, created_before=moment),
                counts(toy_model, created_before=moment),
            )

        results = at_once(
            *[lambda one=one: image_withdraw(image=one, by=reviewer) for one in images[:6]],
            *[lambda one=one: image_restore(image=one, by=reviewer) for one in images[6:]],
            *[frozen] * 6,
        )
        seen = results[12:]
        assert all(isinstance(one, tuple) for one in seen)
        for moment, shown, counted in seen:
            assert order(toy_model, created_before=moment) == shown
            assert counted == (len(shown), 0)
        assert order(toy_model) == list(range(6, 12))

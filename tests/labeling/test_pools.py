"""Lists that several models order: exact, frozen, verified, extended, and renewed by a model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from django.utils import timezone

from core.errors import Conflict
from labeling.candidates.models import PoolRanking
from labeling.candidates.pools import ModelRank, model_ranks
from labeling.candidates.selectors import list_verify
from labeling.candidates.services import list_extend, list_refresh, lists_refresh_stale
from labeling.judging.progress import progress
from labeling.learning.revisions import revision_queue
from labeling.queries.models import Query
from labeling.queries.transitions import TransitionRefused
from retrieval.corpus.models import Image
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.models import Embedding, EmbeddingModel
from retrieval.flags.services import image_withdraw
from retrieval.takedown.services import image_take_down
from tests.labeling.conftest import FIRST_ID, make_images, make_species, run_jobs
from tests.labeling.judging import current_list, item, judge, ranked, record
from tests.toy_model import toy_model as toy_spec

COUNT = 160


def embed_by(name: str, order: Sequence[int]) -> EmbeddingModel:
    """Embed toy images under another toy model so that it ranks them in this order."""
    model = embedding_model_get_or_create(name=toy_spec(name))
    for place, number in enumerate(order):
        score = 1 - place / 2048
        Embedding.objects.create(
            model=model,
            image_id=FIRST_ID + number,
            vector=[score, float(np.sqrt(1 - score * score))],
            created_at=timezone.now(),
        )
    return model


def fused_by_hand(*orders: Sequence[int]) -> list[int]:
    """Toy images by 1 / (60 + rank), in whole numbers."""
    scale = int(np.prod([60 + rank for rank in range(1, 9)], dtype=object)) ** 40
    sums = {one: 0 for order in orders for one in order}
    for order in orders:
        for rank, one in enumerate(order, start=1):
            sums[one] += scale // (60 + rank)
    return sorted(sums, key=lambda one: (-sums[one], one))


@pytest.fixture
def images(toy_model) -> list[Image]:
    return make_images(COUNT)


@pytest.fixture
def orders(images, settings) -> dict[str, list[int]]:
    """The rankings of the toy model and two others, by name; the first two are in use."""
    shuffled = np.random.default_rng(3).permutation(COUNT).tolist()
    found = {"toy": list(range(COUNT)), "second": shuffled, "third": list(range(COUNT))[::-1]}
    for name in ("second", "third"):
        embed_by(name, found[name])
    settings.POOL_MODELS = [toy_spec(), toy_spec("second"), toy_spec()]
    return found


def test_a_pooled_list_is_the_fusion_with_every_models_ranks(
    orders, open_query, settings, admin, annotator_api
):
    settings.CANDIDATE_DEPTH = 100
    query = open_query()
    frozen = current_list(query)
    assert frozen.pool_models == [toy_spec(), toy_spec("second")]
    assert frozen.model_name == frozen.embedding_model.name == toy_spec()  # type: ignore[union-attr]
    # Each model ranks 100 deep, and the list ends behind both models' first fifty.
    own, other = orders["toy"][:100], orders["second"][:100]
    by_hand = fused_by_hand(own, other)
    assert ranked(frozen) == by_hand[: frozen.size]
    assert {*own[:50], *other[:50]} <= set(ranked(frozen))
    assert (frozen.depth, frozen.total, frozen.complete) == (100, COUNT, False)
    number = next(one for one in ranked(frozen) if one in own and one in other)
    assert model_ranks(frozen, [FIRST_ID + number]) == [
        ModelRank(FIRST_ID + number, name, place + 1, 1 - place / 2048)
        for name, place in (
            (toy_spec(), own.index(number)),
            (toy_spec("second"), other.index(number)),
        )
    ]
    score = frozen.candidates.get(image=FIRST_ID + number).score
    ranks = [own.index(number) + 1, other.index(number) + 1]
    assert score == pytest.approx(sum(1 / (60 + rank) for rank in ranks), abs=1e-17)
    assert list_verify(frozen)

    shown = annotator_api.get(f"/api/queries/{query.pk}/candidates/?limit=3").json()
    assert shown["list"]["models"] == frozen.pool_models
    assert "model_ranks" not in shown["results"][0]

    # It goes on within the rankings, and no further.
    more = len(by_hand) - frozen.size
    assert list_extend(candidate_list=frozen, by_count=1000) == more
    frozen.refresh_from_db()
    assert ranked(frozen) == by_hand
    assert list_verify(frozen)
    if frozen.size < COUNT:
        with pytest.raises(Conflict, match="greater CANDIDATE_DEPTH"):
            list_extend(candidate_list=frozen, by_count=1)


def test_a_filter_takes_all_that_either_model_embedded(images, open_query, settings):
    toad = make_species("Bufo bufo")
    make_images(4, first=200, species=toad)
    make_images(1, first=204, species=toad, embedded=False)
    embed_by("second", [203, 202, 201, 200, 204])
    settings.POOL_MODELS, settings.CANDIDATE_DEPTH = [toy_spec(), toy_spec("second")], 2
    frozen = current_list(open_query(species=[toad]))
    assert ranked(frozen) == fused_by_hand([200, 201, 202, 203], [203, 202, 201, 200, 204])
    assert (frozen.size, frozen.total, frozen.unembedded, frozen.complete) == (5, 5, 0, True)
    assert [one.rank for one in model_ranks(frozen, [FIRST_ID + 204])] == [5]
    assert list_verify(frozen)


def test_verifying_finds_what_was_changed_but_allows_a_takedown(
    orders, open_query, settings, admin
):
    settings.CANDIDATE_DEPTH = 60
    frozen = current_list(open_query())
    call_command("verify_lists")
    # An image that the second model alone ranked, behind the list's end or near it.
    image_id = FIRST_ID + next(one for one in orders["second"][50:60] if one >= 60)
    second = PoolRanking.objects.get(list=frozen, place=2)
    second.scores[5] += 2**-30
    of_second = Embedding.objects.filter(image=image_id, model__name=toy_spec("second"))
    for change in (
        of_second.delete,
        lambda: frozen.candidates.filter(rank=2).update(score=0.25),
        second.save,
    ):
        with transaction.atomic():
            change()
            with pytest.raises(CommandError, match="1 of 1 lists differ"):
                call_command("verify_lists")
            transaction.set_rollback(True)
    image_take_down(image=Image.objects.get(pk=image_id), reason="A face", by=admin)
    image_take_down(image=Image.objects.get(pk=FIRST_ID), reason="A face", by=admin)
    call_command("verify_lists")
    before = ranked(frozen)
    list_extend(candidate_list=frozen, by_count=1000)
    assert ranked(frozen)[: len(before)] == before
    call_command("verify_lists")


def test_an_added_models_unjudged_images_come_first_and_judgments_stay(
    orders, open_query, settings, admin, annotator, other_annotator
):
    settings.STOP_STREAK = 20
    settings.POOL_MODELS = [toy_spec()]
    query = open_query()
    assert current_list(query).pool_models == []
    judge(query, annotator, range(40), "not_relevant")
    # Judged by another, and taken back by a third's second thought.
    judge(query, other_annotator, [157], "relevant")
    record(query, other_annotator, item(158, "relevant"))
    record(query, other_annotator, item(158, None))
    assert progress(query, annotator).stop.streak_met

    settings.POOL_MODELS = [toy_spec(), toy_spec("third"), toy_spec("second")]
    assert lists_refresh_stale(by=admin) == 1
    run_jobs()
    frozen = current_list(query)
    assert frozen.added_models == [toy_spec("third"), toy_spec("second")]
    first_fifty = {*orders["third"][:50], *orders["second"][:50]}
    first = first_fifty - {157, *range(40)}
    by_hand = fused_by_hand(*(orders[name] for name in ("toy", "third", "second")))
    expected = [one for one in by_hand if one in first]
    expected += [one for one in by_hand if one not in first]
    assert ranked(frozen) == expected
    assert 158 in expected[: len(first)]
    assert list_verify(frozen)

    # The streak begins anew: the added images come before what was judged.
    stop = progress(Query.objects.get(pk=query.pk), annotator).stop
    assert (stop.judged, stop.prefix, stop.streak_met, stop.next_rank) == (40, 0, False, 1)

    # Another renewal puts first what is still unjudged; the order that learns works on.
    judge(query, annotator, expected[: len(first) - 2], "relevant")
    list_refresh(query=query, by=admin)
    run_jobs()
    renewed = current_list(query)
    assert ranked(renewed)[:2] == expected[len(first) - 2 : len(first)]
    assert renewed.added_models == frozen.added_models
    assert revision_queue(query=query, user=annotator).revision.relevant == len(first) - 2
    call_command("verify_lists")


def test_no_query_opens_before_each_model_has_embedded(images, open_query, settings, reviewer):
    settings.POOL_MODELS = [toy_spec(), toy_spec("second")]
    with pytest.raises(TransitionRefused, match="second-model to label"):
        open_query()
    embed_by("second", [3, 4])
    image_withdraw(image=images[4], by=reviewer)
    frozen = current_list(open_query())
    assert ranked(frozen)[0] == 3
    assert 4 not in ranked(frozen)
    assert len(model_ranks(frozen, [FIRST_ID + 3, FIRST_ID + 5])) == 3

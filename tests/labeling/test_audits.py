"""A query's audits: drawn once, stored before they are shown, counted by the labels that stand."""

from __future__ import annotations

import random
from typing import Any

import pytest

from labeling.audits.draws import draw_order
from labeling.audits.models import Draw, DrawKey, DrawRound
from labeling.audits.selectors import Aim, AuditState, audit_state, certificate, pool_words
from labeling.audits.services import audit_draw
from labeling.candidates.services import list_extend
from labeling.certificates.bounds import AuditRound
from labeling.judging.models import JudgmentEvent
from labeling.lifecycle.services import query_transition
from labeling.queries.models import Query
from retrieval.corpus.models import Image
from retrieval.flags.services import image_restore, image_withdraw
from tests.labeling.conftest import FIRST_ID, make_images, run_jobs
from tests.labeling.judging import item, judge, record

IMAGES = 60
JUDGED = 10
"""The images of the ranked pass: the first two are relevant."""


@pytest.fixture
def query(toy_model, open_query, annotator) -> Query:
    """A query whose ranked pass is over."""
    make_images(IMAGES)
    query = open_query()
    judge(query, annotator, range(2), "relevant")
    judge(query, annotator, range(2, JUDGED), "not_relevant")
    return query


def state(query: Query, annotator: Any = None) -> AuditState:
    found = Query.objects.select_related("current_list").get(pk=query.pk)
    return audit_state(found, annotator)


def rounds(query: Query) -> list[tuple[int, int, int, int]]:
    """(found, unjudged, drawn, hits) of each round, with the one to come."""
    return [(one.found, one.unjudged, one.drawn, one.hits) for one in state(query).rounds]


def draw(query: Query, annotator: Any, count: int) -> list[int]:
    """The toy images that wait to be judged then."""
    found = audit_draw(query=query, annotator=annotator, count=count)
    return [image_id - FIRST_ID for image_id in found.to_judge]


def drawn(query: Query, annotator: Any, *relevance: str) -> list[int]:
    """Draw images and judge them so."""
    numbers = draw(query, annotator, len(relevance))
    items = [
        item(number, one, source="audit") for number, one in zip(numbers, relevance, strict=True)
    ]
    assert {one.status for one in record(query, annotator, *items)} == {"stored"}
    return numbers


NO = "not_relevant"


class TestDrawing:
    def test_follows_the_key_among_the_unjudged_and_draws_once(
        self, query, annotator, other_annotator
    ):
        numbers = draw(query, annotator, 4)
        key = bytes(DrawKey.objects.get(query=query).key)
        left = [FIRST_ID + n for n in range(JUDGED, IMAGES)]
        order = [one - FIRST_ID for one in draw_order(key, query.query_id, left)]
        assert numbers == order[:4]
        # Sent again, and by somebody else: nothing is skipped.
        assert draw(query, annotator, 4) == draw(query, other_annotator, 2) == numbers
        record(query, other_annotator, item(numbers[1], NO, source="audit"))
        assert draw(query, annotator, 4) == [numbers[0], *order[2:5]]
        assert rounds(query) == [(2, 50, 5, 4)]
        assert [one.displayed_to for one in Draw.objects.filter(query=query)] == [annotator] * 5

    def test_ends_with_the_pool(self, query, annotator):
        assert len(drawn(query, annotator, *[NO] * 50)) == 50
        assert draw(query, annotator, 5) == []
        assert rounds(query) == [(2, 50, 50, 0)]
        assert state(query).now.sentence.endswith("complete.")

    def test_is_refused_to_who_may_not_judge(self, query, annotator_api, reviewer):
        query_transition(query=query, to_state="submitted", by=reviewer)
        for answer in (
            annotator_api.get(f"/api/queries/{query.pk}/audit/"),
            annotator_api.post(f"/api/queries/{query.pk}/audit/draws/"),
        ):
            assert answer.status_code == 403
        assert not DrawRound.objects.exists()

    def test_only_drawn_images_are_judged_in_an_audit(self, query, annotator):
        [one] = draw(query, annotator, 1)
        other = 20 if one != 20 else 21
        outcomes = record(query, annotator, *(item(n, NO, source="audit") for n in (one, other)))
        assert [outcome.code for outcome in outcomes] == ["", "not_drawn"]
        assert JudgmentEvent.objects.last().source == "audit"  # type: ignore[union-attr]


class TestCounting:
    def test_what_is_displayed_is_a_hit_until_somebody_judges_it_wherever(
        self, query, annotator, other_annotator
    ):
        first, second, third = draw(query, annotator, 3)
        assert rounds(query) == [(2, 50, 3, 3)]
        judge(query, other_annotator, [first], NO)
        record(query, annotator, item(second, NO, source="search"))
        record(query, annotator, item(third, "unsure", source="audit"))
        assert rounds(query) == [(2, 50, 3, 1)]
        record(query, annotator, item(first, "relevant"))
        assert rounds(query) == [(2, 50, 3, 2)], "disputed"
        assert state(query).found == 2

    def test_by_ones_own_labels_what_others_alone_judged_counts_as_not_judged(
        self, query, annotator, other_annotator
    ):
        first, second, third = draw(query, annotator, 3)
        ranked = next(n for n in range(JUDGED, IMAGES) if n not in (first, second, third))
        record(query, annotator, item(first, NO, source="audit"))
        judge(query, other_annotator, [second, ranked, 0], NO)
        own, every = state(query, annotator), state(query)
        assert [(one.found, one.unjudged, one.drawn, one.hits) for one in own.rounds] == [
            (2, 50, 3, 2)
        ]
        assert rounds(query) == [(1, 50, 3, 1), (2, 46, 0, 0)]
        assert (own.found, every.found) == (2, 1)
        assert own.to_judge == every.to_judge == [FIRST_ID + third]
        assert (own.unjudged, every.unjudged) == (47, 46)
        assert own.now.missing_at_most > every.now.missing_at_most
        # The draw goes by everybody's judgments.
        [_, another] = draw(query, annotator, 2)
        assert another != ranked
        own = state(query, annotator)
        assert [(one.found, one.unjudged, one.drawn, one.hits) for one in own.rounds] == [
            (2, 50, 3, 2),
            (4, 47, 1, 1),
        ]
        assert [one[1:3] for one in rounds(query)] == [(50, 3), (46, 1)]
        assert own.now.missing_at_most > state(query).now.missing_at_most

    @pytest.mark.parametrize("seed", range(3))
    def test_ones_own_labels_never_certify_more_than_all(
        self, query, annotator, other_annotator, seed
    ):
        """Two people who agree judge in the list and draw, in turns that chance decides."""
        chance = random.Random(seed)
        relevant = {0, 1, *chance.sample(range(JUDGED, IMAGES), 8)}
        for _ in range(25):
            person = chance.choice((annotator, other_annotator))
            drawing = chance.random() < 0.5
            numbers = draw(query, person, 2) if drawing else chance.sample(range(IMAGES), 3)
            for number in numbers[: chance.randint(0, 3)]:
                judge(query, person, [number], "relevant" if number in relevant else NO)
            every = state(query).now
            for one in (annotator, other_annotator):
                own = state(query, one).now
                assert own.missing_at_most >= every.missing_at_most
                assert (own.recall_at_least or 0) <= (every.recall_at_least or 0)
                assert every.met or not own.met

    def test_changed_labels_count_in_all_rounds(self, query, annotator, reviewer):
        first = drawn(query, annotator, "relevant", NO)
        judge(query, annotator, [n for n in range(JUDGED, IMAGES) if n not in first][:1], NO)
        drawn(query, annotator, NO, NO)
        assert rounds(query) == [(2, 50, 2, 1), (3, 47, 2, 0)]
        judge(query, reviewer, [0, first[0]], NO)
        assert rounds(query) == [(1, 50, 2, 0), (1, 47, 2, 0)]
        judge(query, annotator, [JUDGED - 1], "relevant")
        assert rounds(query) == [(2, 50, 2, 0), (2, 47, 2, 0)]

    def test_a_label_taken_back_counts_as_relevant_until_it_is_there_again(self, query, annotator):
        [one] = drawn(query, annotator, NO)
        record(query, annotator, item(one, None), item(5, None))
        assert rounds(query) == [(3, 50, 1, 1)]
        assert draw(query, annotator, 1) == [one]
        record(query, annotator, item(one, NO), item(5, NO))
        assert rounds(query) == [(2, 50, 1, 0)]

    def test_a_label_elsewhere_ends_the_round(self, query, annotator):
        numbers = drawn(query, annotator, NO, NO)
        other = next(n for n in range(JUDGED, IMAGES) if n not in numbers)
        judge(query, annotator, [other], "relevant")
        assert rounds(query) == [(2, 50, 2, 0), (3, 47, 0, 0)]
        draw(query, annotator, 1)
        assert rounds(query) == [(2, 50, 2, 0), (3, 47, 1, 1)]
        assert DrawRound.objects.filter(closed_at=None).count() == 1
        # What was judged before, or drawn, ends nothing.
        judge(query, annotator, [0, *numbers], "relevant")
        assert len(rounds(query)) == 2

    def test_leaving_at_each_hit_gains_nothing(self, query, annotator):
        """Relevant draws are left and judged in the list: the count is the same as judged there."""
        relevant = range(JUDGED, IMAGES, 5)
        for _ in range(20):
            [one] = draw(query, annotator, 1)
            hit = one in relevant
            record(
                query,
                annotator,
                item(one, "relevant" if hit else NO, source="list" if hit else "audit"),
            )
        [found] = state(query).rounds
        hits = sum(
            one - FIRST_ID in relevant for one in query.draws.values_list("image", flat=True)
        )
        assert found == AuditRound(2, 50, 20, hits)
        assert hits
        assert state(query).now.missing_at_most >= len(relevant) - hits

    def test_a_withdrawal_ends_the_round_and_a_displayed_image_stays(self, query, annotator, admin):
        one, other = draw(query, annotator, 2)
        image_withdraw(image=Image(pk=FIRST_ID + one), by=admin)
        assert rounds(query) == [(2, 50, 2, 2)]
        assert draw(query, annotator, 1) == [other]
        unseen = next(n for n in range(JUDGED, IMAGES) if n not in (one, other))
        image_withdraw(image=Image(pk=FIRST_ID + unseen), by=admin)
        image_withdraw(image=Image(pk=FIRST_ID), by=admin)
        record(query, annotator, item(other, NO))
        assert rounds(query) == [(1, 50, 2, 1), (2, 47, 0, 0)]
        draw(query, annotator, 50)
        assert unseen not in draw(query, annotator, 50)
        # Back in the corpus it belongs to no round, so it could be relevant.
        image_restore(image=Image(pk=FIRST_ID + unseen), by=admin)
        assert rounds(query)[1][0] == 3
        judge(query, annotator, [unseen], NO)
        assert rounds(query)[1][0] == 2

    def test_the_first_of_a_list_are_the_pool_and_a_longer_list_another(
        self, settings, open_query, toy_model, annotator
    ):
        settings.CANDIDATE_DEPTH = 20
        make_images(IMAGES)
        query = open_query()
        judge(query, annotator, range(JUDGED), "relevant")
        kept, _ = draw(query, annotator, 2)
        record(query, annotator, item(_, NO))
        assert pool_words(state(query).pool) == (
            "the first 20 of the list, out of 60 images of the corpus"
        )
        list_extend(candidate_list=state(query).pool, by_count=5)
        # What was displayed is known: it isn't drawn again, and is a possible find until judged.
        assert rounds(query) == [(11, 13, 0, 0)]
        assert draw(query, annotator, 2)[0] == kept
        record(query, annotator, item(kept, NO))
        assert rounds(query) == [(10, 13, 1, 1)]


def test_a_certificate_is_out_of_reach_where_it_takes_thousands():
    """45 of 50 found is within reach in a small pool; 30 of 5,000 takes 2,438 draws."""
    wide, small = AuditRound(30, 4500, 0, 0), AuditRound(30, 200, 0, 0)
    aim = Aim(target=0.9, confidence=0.95)
    far = certificate([wide], 30, aim)
    assert (far.more_without_hit, far.out_of_reach) == (2438, True)
    assert not certificate([small], 30, aim).out_of_reach


class TestApi:
    def test_gives_what_is_drawn_without_rank_and_score(self, query, annotator_api):
        address = f"/api/queries/{query.pk}/audit/"
        assert annotator_api.get(address).json()["results"] == []
        answer = annotator_api.post(f"{address}draws/", {"count": 3}, format="json").json()
        assert [one["to_judge"] for one in answer["results"]] == [True] * 3
        assert not {"rank", "score"} & answer["results"][0].keys()
        assert (answer["found"], answer["drawn"], answer["hits"]) == (2, 3, 3)
        assert answer["pool"] == "all 60 images of the corpus"
        assert answer["then"]["missing_at_most"] < answer["now"]["missing_at_most"]
        image = answer["results"][0]["image"]
        judged = {"image": image, "relevance": NO, "client_id": "a", "source": "audit"}
        sent = annotator_api.post(f"/api/queries/{query.pk}/judgments/", [judged], format="json")
        assert sent.json()["results"][0]["status"] == "stored"
        again = annotator_api.get(address).json()
        assert (again["to_judge"], again["hits"]) == (2, 2)
        shown = [(one["relevance"], one["to_judge"]) for one in again["results"]]
        assert shown == [(NO, False), (None, True), (None, True)]

    def test_needs_a_list(self, query, annotator_api, new_query, admin):
        without = query_transition(query=new_query("a frog"), to_state="open", by=admin)
        for answer in (
            annotator_api.get(f"/api/queries/{without.pk}/audit/"),
            annotator_api.post(f"/api/queries/{without.pk}/audit/draws/"),
        ):
            assert answer.status_code == 409
        run_jobs()
        assert annotator_api.get(f"/api/queries/{without.pk}/audit/").status_code == 200


def test_the_key_is_made_when_a_query_opens_and_kept(query, admin):
    key = bytes(DrawKey.objects.get(query=query).key)
    assert len(set(key)) > 1
    query_transition(query=query, to_state="draft", by=admin)
    query_transition(query=query, to_state="open", by=admin)
    assert bytes(DrawKey.objects.get(query=query).key) == key

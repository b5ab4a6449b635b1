"""A release's audits: drawn at the first hand-in, judged blindly, and never again."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from core.access import Role
from labeling.audits.draws import selected
from labeling.audits.models import ReleaseAudit, ReleaseKey
from labeling.audits.selectors import audit_state
from labeling.blind.items import PLACES
from labeling.blind.release_audits import populations, release_keys_end
from labeling.blind.selectors import queries_waiting
from labeling.blind.services import blind_show
from labeling.candidates.services import list_extend
from labeling.judging.blind import RELEASE_AUDIT
from labeling.judging.models import BlindItem, Judgment
from labeling.lifecycle.assignments import still_labeling
from labeling.lifecycle.services import query_transition
from labeling.queries.models import Query, QueryExample
from labeling.review.selectors import images_to_review, left_open
from retrieval.corpus.models import Image
from retrieval.flags.services import image_withdraw
from tests.conftest import api_of, client_of, person
from tests.labeling.conftest import FIRST_ID, make_images
from tests.labeling.judging import item, judge, record

IMAGES = 80
JUDGED = 20
"""The images of the ranked pass: the first ten are relevant."""
NO = "not_relevant"
NOTE = "enough"


@pytest.fixture(autouse=True)
def shares(settings) -> None:
    settings.RELEASE_AUDIT_SHARE = 0.3
    settings.RELEASE_AUDIT_SEEDS = 3


@pytest.fixture
def query(toy_model, open_query, annotator) -> Query:
    """A query whose ranked pass is over."""
    make_images(IMAGES)
    query = open_query()
    judge(query, annotator, range(JUDGED // 2), "relevant")
    judge(query, annotator, range(JUDGED // 2, JUDGED), NO)
    return query


def hand_in(query: Query, by: Any, **fields: Any) -> Query:
    return query_transition(query=query, to_state="submitted", by=by, note=NOTE, **fields)


def reopen(query: Query, by: Any) -> Query:
    return query_transition(query=query, to_state="open", by=by)


def draws(query: Query) -> list[int]:
    found = BlindItem.objects.filter(query=query, kind="release-audit", only_for=None)
    return [image_id - FIRST_ID for image_id in found.values_list("image", flat=True)]


def seeds(query: Query) -> list[int]:
    found = BlindItem.objects.filter(query=query, kind="release-audit", only_for__isnull=False)
    return [image_id - FIRST_ID for image_id in found.values_list("image", flat=True)]


def by_key(query: Query, numbers: Any) -> set[int]:
    key = ReleaseKey.objects.get(ended_at=None)
    return {n for n in numbers if selected(bytes(key.key), query.query_id, FIRST_ID + n, key.share)}


def shown(query: Query, person: Any, count: int = 100) -> list[int]:
    queue = blind_show(kind=RELEASE_AUDIT, query=query, annotator=person, count=count)
    return [image_id - FIRST_ID for image_id in queue.to_judge]


class TestDrawing:
    def test_takes_what_nobody_judged_by_the_hash(self, query, annotator):
        assert ReleaseAudit.objects.count() == 0
        hand_in(query, annotator)
        audit = ReleaseAudit.objects.get()
        assert (audit.found, audit.unjudged, audit.number) == (10, 60, 1)
        assert audit.release_key.share == 0.3
        [(_, images)] = populations(query)
        assert sorted(images) == [FIRST_ID + n for n in range(JUDGED, IMAGES)]
        assert set(draws(query)) == by_key(query, range(JUDGED, IMAGES)) != set()

    def test_is_drawn_once_whatever_comes_after(self, query, annotator, other_annotator, admin):
        judge(query, other_annotator, [0], "relevant")
        hand_in(query, annotator)
        before = set(draws(query))
        # While others label on, what they find isn't in another audit.
        judge(query, other_annotator, range(JUDGED, 40), "relevant")
        hand_in(query, other_annotator)
        reopen(query, admin)
        judge(query, annotator, range(40, 50), NO)
        hand_in(query, annotator)
        assert ReleaseAudit.objects.count() == 1
        assert set(draws(query)) == before

    def test_takes_besides_what_is_new(self, toy_model, open_query, annotator, admin, settings):
        make_images(IMAGES)
        settings.CANDIDATE_DEPTH = 50
        query = open_query()
        judge(query, annotator, range(10), "relevant")
        hand_in(query, annotator)
        reopen(query, admin)
        query.refresh_from_db()
        assert query.current_list is not None
        list_extend(candidate_list=query.current_list, by_count=10)
        record(query, annotator, item(3, None))
        hand_in(query, annotator)
        one, two = populations(query)
        assert (one[0].size, two[0].size) == (50, 60)
        assert sorted(two[1]) == [FIRST_ID + n for n in (3, *range(50, 60))]
        assert set(draws(query)) == by_key(query, [3, *range(10, 60)])

    def test_not_for_a_query_that_is_given_up(self, query, annotator):
        hand_in(query, annotator, give_up="too_easy")
        assert ReleaseAudit.objects.count() == 0

    def test_not_without_a_share(self, query, annotator, settings):
        settings.RELEASE_AUDIT_SHARE = 0.0
        hand_in(query, annotator)
        assert ReleaseKey.objects.count() == ReleaseAudit.objects.count() == 0
        assert "for the release" not in audit_state(query).now.sentence

    def test_a_published_key_is_not_used_again(self, query, open_query, annotator, settings):
        other = open_query("another")
        judge(other, annotator, range(5), "relevant")
        hand_in(query, annotator)
        settings.RELEASE_AUDIT_SHARE = 0.5
        first = ReleaseKey.objects.get()
        release_keys_end(keys={bytes(first.key)})
        assert not BlindItem.objects.filter(displayed_at=None).exists()
        hand_in(other, annotator)
        used = ReleaseAudit.objects.get(query=other).release_key
        assert (used.share, ReleaseKey.objects.count()) == (0.5, 2)
        assert bytes(used.key) != bytes(first.key)


class TestQueue:
    def test_goes_on_after_the_hand_in_until_the_query_is_decided_on(
        self, query, annotator, other_annotator, reviewer
    ):
        hand_in(query, annotator)
        count = len(draws(query))
        assert queries_waiting(RELEASE_AUDIT, annotator) == [(query, count)]
        assert queries_waiting(RELEASE_AUDIT, other_annotator) == [(query, count)]
        first, *_ = shown(query, annotator, 2)
        # Not displayed, not drawn, not in an audit.
        hidden = next(n for n in draws(query) if n not in shown(query, annotator, 2))
        refused = [
            record(query, annotator, item(number, NO, source=source))[0]
            for number, source in ((hidden, "audit"), (0, "audit"), (first, "list"))
        ]
        assert {one.status for one in refused} == {"refused"}
        [stored] = record(query, annotator, item(first, NO, source="audit"))
        assert stored.status == "stored"
        assert first not in shown(query, other_annotator)
        assert [point.count for point in left_open(query) if point.kind == "audit"] == [count - 1]
        query_transition(query=query, to_state="complete", by=reviewer, note=NOTE)
        [refused_now] = record(query, annotator, item(first, "relevant", source="audit"))
        assert refused_now.code == "closed"
        assert queries_waiting(RELEASE_AUDIT, annotator) == []

    def test_mixes_in_seeds_that_others_found_and_nothing_tells_them(
        self, query, annotator, other_annotator, reviewer
    ):
        judge(query, other_annotator, [0], "relevant")
        judge(query, other_annotator, [1], NO)
        QueryExample.objects.create(query=query, image_id=FIRST_ID + 2, relevant=True)
        hand_in(query, annotator)
        hand_in(query, other_annotator)
        # Who found them all gets none, nor do reviewers.
        assert sorted(shown(query, reviewer)) == sorted(draws(query))
        BlindItem.objects.update(displayed_at=None)
        assert set(shown(query, annotator, 1)) <= set(draws(query))
        assert seeds(query) == []
        waiting = shown(query, other_annotator)
        assert len(seeds(query)) == 3
        assert set(seeds(query)) <= set(range(3, 10))
        assert sorted(waiting) == sorted([*draws(query), *seeds(query)])
        assert shown(query, other_annotator) == waiting
        assert not set(seeds(query)) & set(shown(query, annotator))
        body = api_of(other_annotator).get(f"/api/queries/{query.pk}/release-audit/").json()
        assert body["left"] == body["to_judge"] == len(waiting)
        assert len({tuple(one) for one in body["results"]}) == 1
        told = {
            tuple((name, str(one[name])) for name in ("to_judge", "relevance", "flags"))
            for one in body["results"]
        }
        assert len(told) == 1
        assert not {"rank", "score", "only_for"} & body["results"][0].keys()

    def test_seeds_come_after_what_is_displayed_already(self, query, annotator, other_annotator):
        """Else who has seen the queue before would know the new images in its midst."""
        hand_in(query, annotator)
        shown(query, annotator, 2)
        displayed = BlindItem.objects.filter(displayed_at__isnull=False)
        displayed.filter(pk=displayed.earliest("place").pk).update(place=PLACES - 1000)
        shown(query, other_annotator)
        mixed = BlindItem.objects.filter(only_for=other_annotator)
        assert mixed.count() == 3
        assert not mixed.filter(place__lte=PLACES - 1000).exists()

    def test_a_seed_judged_otherwise_goes_to_review(self, query, annotator, other_annotator):
        hand_in(query, annotator)
        shown(query, other_annotator)
        one, other, _ = seeds(query)
        for number, relevance in ((one, NO), (other, "relevant")):
            record(query, other_annotator, item(number, relevance, source="audit"))
        assert [found.image.pk for found in images_to_review(query)] == [FIRST_ID + one]
        assert "disputed" in [point.kind for point in left_open(query)]
        assert Judgment.objects.filter(query=query, annotator=annotator).count() == JUDGED
        assert not {one, other} & set(shown(query, other_annotator))

    def test_auditors_do_not_keep_a_query_open(self, query, annotator, other_annotator):
        judge(query, other_annotator, [0], "relevant")
        hand_in(query, annotator)
        auditor = person("an-auditor", Role.ANNOTATOR)
        number, *_ = shown(query, auditor)
        record(query, auditor, item(number, NO, source="audit"))
        assert still_labeling(query) == [other_annotator.get_username()]
        assert hand_in(query, other_annotator).state == "submitted"

    def test_withdrawn_images_are_not_asked_for(self, query, annotator, reviewer):
        hand_in(query, annotator)
        number = draws(query)[0]
        image_withdraw(image=Image(pk=FIRST_ID + number), by=reviewer)
        assert number not in shown(query, annotator)


class TestPages:
    def test_lead_from_the_dashboard_through_the_queries(self, query, annotator, other_annotator):
        hand_in(query, annotator)
        client, count = client_of(other_annotator), len(draws(query))
        text = client.get("/").content.decode()
        assert f"{count} images left to audit in 1 query" in text
        page = f"/queries/{query.pk}/release-audit/"
        assert client.get("/release-audit/").headers["Location"] == page
        assert '"judged_as": "audit"' in client.get(page).content.decode()
        api: APIClient = api_of(other_annotator)
        answer = api.post(f"/api{page}draws/", {"count": 3}, format="json")
        assert len(answer.json()["results"]) == 3
        for number in shown(query, other_annotator):
            record(query, other_annotator, item(number, NO, source="audit"))
        assert client.get("/release-audit/").headers["Location"] == "/"
        assert "left to audit" not in client.get("/").content.decode()

    def test_are_for_those_who_label(self, query, annotator, researcher):
        hand_in(query, annotator)
        for client in (client_of(researcher), Client()):
            assert client.get(f"/queries/{query.pk}/release-audit/").status_code in (302, 404)
        answer = api_of(researcher).get(f"/api/queries/{query.pk}/release-audit/")
        assert answer.status_code == 403

    def test_the_query_s_certificate_names_the_price_of_the_release_s(self, query):
        sentence = audit_state(query).now.sentence
        assert "18 are enough for the release" in sentence

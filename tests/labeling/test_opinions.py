"""Second opinions and checks: what is chosen, blindly judged, and told of people."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from core.access import Role
from labeling.audits.draws import selected
from labeling.blind.models import OpinionKey
from labeling.blind.selectors import queries_waiting
from labeling.blind.services import blind_show
from labeling.judging.agreement import (
    agreement_by_query,
    agreement_rows,
    diagnoses,
    patterns,
    standing_of,
)
from labeling.judging.blind import SECOND_OPINIONS
from labeling.judging.models import BlindItem, Judgment, JudgmentEvent
from labeling.lifecycle.assignments import still_labeling
from labeling.lifecycle.batches import parts_failing_checks
from labeling.lifecycle.services import query_transition
from labeling.lifecycle.team import part_send_back
from labeling.queries.models import Query
from labeling.review.people import fast_pages_of, months_of, pace_of
from labeling.review.selectors import images_to_review, left_open
from retrieval.corpus.models import Image
from retrieval.flags.services import image_flag_raise
from tests.conftest import api_of, client_of, person
from tests.labeling.conftest import FIRST_ID, make_images, make_species
from tests.labeling.judging import item, judge, record

IMAGES, JUDGED, FOUND = 120, 100, 20
BOUNDARY = 6
NO, YES = "not_relevant", "relevant"


@pytest.fixture(autouse=True)
def shares(settings) -> None:
    settings.SECOND_OPINION_POSITIVE, settings.SECOND_OPINION_NEGATIVE = 0.75, 0.25
    settings.SECOND_OPINION_BOUNDARY, settings.GOLD_EVERY = BOUNDARY, 4
    settings.SECOND_OPINION_LEAST, settings.SECOND_OPINION_MOST = 0, 1.0


@pytest.fixture
def query(toy_model, open_query, annotator) -> Query:
    """A query that one person has labeled; every other of the first images is relevant."""
    make_images(IMAGES)
    query = open_query()
    judge(query, annotator, range(0, 2 * FOUND, 2), YES)
    judge(query, annotator, [*range(1, 2 * FOUND, 2), *range(2 * FOUND, JUDGED)], NO)
    return query


def submit(query: Query, by: Any) -> Query:
    return query_transition(query=query, to_state="submitted", by=by, note="enough")


def numbers(query: Query, **fields: Any) -> set[int]:
    found = BlindItem.objects.filter(query=query, kind="second-opinions", **fields).values_list(
        "image", flat=True
    )
    return {image_id - FIRST_ID for image_id in found}


def shown(query: Query, one: Any, count: int = 100) -> list[int]:
    queue = blind_show(kind=SECOND_OPINIONS, query=query, annotator=one, count=count)
    return [image_id - FIRST_ID for image_id in queue.to_judge]


def second(query: Query, one: Any, number: int, relevance: str) -> str:
    [outcome] = record(query, one, item(number, relevance, source="second"))
    return str(outcome.status)


def adjudicated(query: Query, reviewer: Any, *people: Any) -> list[int]:
    """Images beyond the labeled ones about which people differ and a reviewer has decided."""
    decided = list(range(JUDGED, JUDGED + 15))
    for one, relevance in zip(people, (YES, NO), strict=True):
        judge(query, one, decided, relevance)
    judge(query, reviewer, decided, YES)
    return decided


def test_more_of_look_alikes_where_the_query_is_about_species(query, annotator, settings):
    settings.SECOND_OPINION_LOOKALIKE = 1.0
    settings.SECOND_OPINION_BOUNDARY = 0
    alike = make_species("Bufo bufo", lookalike_group="toads")
    Image.objects.filter(pk__in=[FIRST_ID + n for n in range(JUDGED // 2)]).update(species=alike)
    Query.objects.filter(pk=query.pk).update(category="Species ID")
    query.refresh_from_db()
    submit(query, annotator)
    assert numbers(query, probability=1.0) == set(range(JUDGED // 2))
    assert numbers(query) > numbers(query, probability=1.0)


def test_a_submission_chooses_once_and_only_what_one_annotator_has_judged(
    query, annotator, other_annotator, reviewer, admin
):
    judge(query, other_annotator, [0, 1], YES)
    judge(query, reviewer, [2, 3], YES)
    record(query, annotator, item(4, "unsure"))
    assert OpinionKey.objects.filter(query=query).count() == 1
    submit(query, reviewer)
    key = bytes(OpinionKey.objects.get(query=query).key)

    def by_hash(of: Any, share: float) -> set[int]:
        return {n for n in of if selected(key, query.query_id, FIRST_ID + n, share)}

    positives = set(range(6, 2 * FOUND, 2))
    negatives = set(range(JUDGED)) - positives - {0, 1, 2, 3, 4}
    assert numbers(query, probability=0.75) == by_hash(positives, 0.75) != set()
    assert numbers(query, probability=0.25) == by_hash(negatives, 0.25) != set()
    # 17 of what counts are relevant, so its 17th image, number 21, is the boundary.
    near = numbers(query, boundary=True)
    assert near == {15, 17, 19, 21, 23, 25}
    assert numbers(query, probability=None) == near - by_hash(negatives, 0.25)
    before = numbers(query)
    assert left_open(query)[-1].kind == "second"
    query_transition(query=query, to_state="open", by=admin)
    judge(query, annotator, range(JUDGED, IMAGES), YES)
    submit(query, admin)
    new = set(range(JUDGED, IMAGES))
    assert numbers(query) == before | by_hash(new, 0.75)


def test_a_small_query_asks_for_few_and_a_grown_one_for_no_more_than_its_share(
    query, annotator, admin, settings
):
    settings.SECOND_OPINION_LEAST, settings.SECOND_OPINION_MOST = 5, 0.12
    settings.SECOND_OPINION_BOUNDARY = 50
    submit(query, annotator)
    before = numbers(query)
    assert len(before) == 12 == int(0.12 * JUDGED)
    drawn = numbers(query, probability__isnull=False)
    ratios = {
        one.probability / (0.75 if one.relevance == YES else 0.25)
        for one in BlindItem.objects.filter(probability__isnull=False)
    }
    assert len(drawn) == 12
    assert len({round(ratio, 9) for ratio in ratios}) == 1
    assert max(ratios) < 1
    assert left_open(query)[-1].text == "12 images wait for a second opinion."
    query_transition(query=query, to_state="open", by=admin)
    judge(query, annotator, range(JUDGED, IMAGES), YES)
    submit(query, admin)
    later = numbers(query) - before
    assert later <= set(range(JUDGED, IMAGES))
    assert len(before | later) <= int(0.12 * IMAGES)


def test_another_person_judges_and_what_differs_goes_to_review(
    query, annotator, other_annotator, reviewer
):
    assert queries_waiting(SECOND_OPINIONS, other_annotator) == []
    submit(query, annotator)
    count = len(numbers(query))
    assert queries_waiting(SECOND_OPINIONS, annotator) == []
    assert queries_waiting(SECOND_OPINIONS, other_annotator) == [(query, count)]
    assert shown(query, annotator) == []
    first, *_ = shown(query, other_annotator, 3)
    hidden = next(iter(numbers(query, displayed_at=None)))
    refused = (
        (annotator, first), (other_annotator, hidden), (other_annotator, JUDGED + 1),
    )  # fmt: skip
    assert {second(query, *one, NO) for one in refused} == {"refused"}
    positive, negative = (next(iter(numbers(query, relevance=one))) for one in (YES, NO))
    shown(query, other_annotator)
    assert second(query, other_annotator, positive, NO) == "stored"
    assert second(query, other_annotator, negative, NO) == "stored"
    assert [one.image.pk for one in images_to_review(query)] == [FIRST_ID + positive]
    assert queries_waiting(SECOND_OPINIONS, reviewer) == [(query, count - 2)]
    # A correction in the list stays a second opinion.
    query_transition(query=query, to_state="open", by=reviewer)
    assert still_labeling(query) == ["ann"]
    record(query, other_annotator, item(positive, YES))
    assert Judgment.objects.get(image=FIRST_ID + positive, annotator=other_annotator).source == (
        "second"
    )
    assert second(query, other_annotator, hidden, NO) == "stored"
    answer = api_of(other_annotator).get(f"/api/queries/{query.pk}/second-opinions/")
    assert answer.status_code == 403


def test_nothing_tells_what_is_what(query, annotator, other_annotator, reviewer):
    third = person("tom", Role.ANNOTATOR)
    api = api_of(third)
    reads = ("outline/", "candidates/?limit=200", "matching/", "judgments/", "changes/?cursor=0")
    decided = adjudicated(query, reviewer, annotator, other_annotator)

    def ordinary() -> list[Any]:
        return [api.get(f"/api/queries/{query.pk}/{path}").json() for path in reads]

    # In the list they look like their neighbors: every byte is as it is without any.
    judge(query, third, [3, 5], NO)
    with_none = ordinary()
    submit(query, reviewer)
    Query.objects.filter(pk=query.pk).update(state="open")
    assert BlindItem.objects.count() > 10
    assert ordinary() == with_none
    Query.objects.filter(pk=query.pk).update(state="submitted")
    # What tells a rank can't be read while opinions wait, by who is asked for them.
    image_flag_raise(image=Image.objects.get(pk=FIRST_ID + 3), kind="duplicate", by=reviewer)
    base, similar = f"/api/queries/{query.pk}/", f"similar/?image={FIRST_ID + JUDGED - 1}"
    assert {api.get(f"{base}{path}").status_code for path in (*reads[:3], similar)} == {403}
    assert api.get(f"{base}changes/?cursor=0").json()["flagged"] == []
    assert api_of(reviewer).get(f"{base}outline/").status_code == 200
    # In the queue second opinions, of whatever label, and checks look like each other.
    address = f"/api/queries/{query.pk}/second-opinions/"
    body = api.post(f"{address}draws/", {"count": 100}, format="json").json()
    checks = numbers(query, only_for=third)
    assert 3 <= len(checks) <= 30
    assert checks <= set(decided)
    assert len(body["results"]) == body["left"] == body["to_judge"] > len(checks) * 3
    own = {"image", "url", "thumbnail_url", "width", "height", "observed_at"}
    told = {
        json.dumps({k: v for k, v in one.items() if k not in own}, sort_keys=True)
        for one in body["results"]
    }
    assert len(told) == 1, told
    assert not {"rank", "score", "votes", "probability", "boundary"} & body["results"][0].keys()
    files = {one["url"].replace(str(one["image"]), "") for one in body["results"]}
    assert len({len(one) for one in files}) <= 2
    # Their order depends on neither label, rank nor kind, but on numbers drawn for each alone.
    kind = {image: name for name, found in (
        ("check", checks),
        ("positive", numbers(query, relevance=YES, only_for=None)),
        ("negative", numbers(query, relevance=NO, only_for=None)),
    ) for image in found}  # fmt: skip
    order = [one["image"] - FIRST_ID for one in body["results"]]
    places = BlindItem.objects.filter(
        query=query, kind="second-opinions", image__in=[FIRST_ID + n for n in order]
    )
    by_place = places.order_by("place").values_list("image", flat=True)
    assert [FIRST_ID + n for n in order] == list(by_place)
    assert order != sorted(order)
    kinds = [kind[number] for number in order]
    assert all(kinds != sorted(kinds, key=ordering.index) for ordering in (
        ["check", "positive", "negative"], ["negative", "positive", "check"],
        ["positive", "negative", "check"], ["check", "negative", "positive"],
    ))  # fmt: skip
    # So they do once they are judged, and so do the answers and the history.
    check, other = next(iter(checks)), next(n for n in order if n not in checks)
    answers = []
    for number in (check, other):
        sent = {"image": FIRST_ID + number, "relevance": NO, "source": "second", "seconds": 2}
        sent |= {"client_id": f"image {number}"}
        answer = api.post(f"/api/queries/{query.pk}/judgments/", [sent], format="json").json()
        result = answer["results"][0]
        history = api.get(f"/api/queries/{query.pk}/history/?image={FIRST_ID + number}").json()
        [event] = history["results"]
        both = [{k: v for k, v in one.items() if k not in ("image", "client_id", "rank", "at")}
                for one in (result, event)]  # fmt: skip
        answers.append(both)
    assert answers[0] == answers[1]
    assert api.get(address).json()["left"] == body["left"] - 2
    assert api.post(f"{address}draws/", {"count": 100}, format="json").json()["left"] == (
        body["left"] - 2
    )


def test_checks_are_kept_apart_and_told_when_nothing_can_be_told_from_it(
    query, annotator, other_annotator, reviewer, settings
):
    third = person("tom", Role.ANNOTATOR)
    adjudicated(query, reviewer, annotator, other_annotator)
    # Without any dispute, by a reviewer's mark.
    marks = f"/api/queries/{query.pk}/checks/"
    mark = {"image": FIRST_ID + 50, "marked": True}
    assert api_of(annotator).post(marks, mark, format="json").status_code == 403
    assert api_of(reviewer).post(marks, mark, format="json").status_code == 409
    judge(query, reviewer, [50], NO)
    assert api_of(reviewer).post(marks, mark, format="json").json() == mark
    submit(query, reviewer)
    settings.GOLD_EVERY = 0
    shown(query, third)
    assert numbers(query, only_for=third) == set()
    settings.GOLD_EVERY = 4
    BlindItem.objects.update(displayed_at=None)
    shown(query, third)
    checks = sorted(numbers(query, only_for=third, relevance=YES))
    assert second(query, third, checks[0], YES) == second(query, third, checks[1], NO) == "stored"
    # The first answer counts.
    assert second(query, third, checks[1], YES) == "stored"
    [month] = months_of(third, decided=False)
    assert (month.images, month.checks, month.right, month.seconds) == (2, 2, 1, 1.5)
    assert [one.checks for one in months_of(third, decided=True)] == [0]
    assert numbers(query, only_for=reviewer) == set(shown(query, reviewer)) & set(checks) == set()
    # A check is no second opinion, so it is in no agreement.
    assert all(third.pk not in one.says for one in patterns(query=query))
    query_transition(query=query, to_state="complete", by=reviewer, note="enough")
    assert [(one.checks, one.right) for one in months_of(third, decided=True)] == [(2, 1)]


def test_missed_checks_propose_to_send_a_part_back_and_are_shown_only_then(
    query, annotator, other_annotator, reviewer, settings
):
    settings.CHECKS_NEEDED, settings.CHECKS_AT_LEAST = 4, 0.5
    third = person("tom", Role.ANNOTATOR)
    adjudicated(query, reviewer, annotator, other_annotator)
    judge(query, third, [0], YES)
    for one in (annotator, other_annotator, third):
        query = submit(query, one)
    shown(query, third)
    checks = sorted(numbers(query, only_for=third))
    page, answers = f"/queries/{query.pk}/", f"/api/queries/{query.pk}/checks/"
    none = {"send_back": [], "missed": []}
    # Of two that they answered right one counts as missed, since they weren't sure at first.
    for number, says in zip(checks, (YES, "unsure", NO), strict=False):
        second(query, third, number, says)
    second(query, third, checks[1], YES)
    assert api_of(reviewer).get(answers).json() == none
    second(query, third, checks[3], NO)
    tom = {"annotator": third.pk, "name": "tom", "checks": 4, "right": 1}
    assert api_of(reviewer).get(answers).json() == none | {"send_back": [tom]}
    for address in (page, f"{page}review/"):
        shown_to_reviewer = client_of(reviewer).get(address).content.decode()
        assert "</bdi> answered 1 of 4 checks as known." in shown_to_reviewer
    settings.CHECKS_AT_LEAST = 0.25
    assert parts_failing_checks(query) == []
    settings.CHECKS_AT_LEAST = 0.5

    # Nothing is told before, nor where a part is sent back for something else.
    back = {"annotator": third.pk}
    part_send_back(query=query, person=third, note="Look at 3.", by=reviewer)
    assert api_of(third).get(answers).json() == none
    query = submit(Query.objects.get(pk=query.pk), third)
    for one in (third, other_annotator):
        assert api_of(one).get(answers).json() == none
        assert api_of(one).post(f"{answers}send-back/", back, format="json").status_code == 403
        assert "check" not in client_of(one).get(page).content.decode().partition("<main")[2]
    other = {"annotator": other_annotator.pk}
    assert api_of(reviewer).post(f"{answers}send-back/", other, format="json").status_code == 409

    action = {"action": "send back for checks", "person": third.pk}
    assert client_of(third).post(f"{page}team/", action).status_code == 403
    client_of(reviewer).post(f"{page}team/", action)
    again = api_of(reviewer).post(f"{answers}send-back/", back, format="json")
    assert (again.status_code, again.json()) == (200, none)
    query.refresh_from_db()
    part = query.assignments.get(annotator=third)
    assert (query.state, part.state) == ("open", "sent back")
    assert "you gave 1 the known label (25 %); at least 50 % are asked for" in part.sent_back_note
    missed = api_of(third).get(answers).json()["missed"]
    assert {(one["image"] - FIRST_ID, one["said"], one["known"]) for one in missed} == {
        (checks[1], "unsure", YES), (checks[2], NO, YES), (checks[3], NO, YES)
    }  # fmt: skip
    assert client_of(third).get(page).content.decode().count("<br>Known:") == 3
    for one in (other_annotator, reviewer):
        assert api_of(one).get(answers).json() == none

    # They are used up: neither asked again nor counted, though the first answers were given.
    record(query, third, item(checks[2], None))
    query = submit(query, third)
    assert checks[2] not in shown(query, third)
    for number in sorted(numbers(query, only_for=third, used_up_at=None))[:3]:
        second(query, third, number, NO)
    assert parts_failing_checks(query) == []
    assert len(api_of(third).get(answers).json()["missed"]) == 3
    [month] = months_of(third, decided=False)
    assert (month.checks, month.right) == (7, 1)


def test_agreement_weights_by_how_images_were_drawn(query, annotator, other_annotator, reviewer):
    submit(query, annotator)
    shown(query, other_annotator)
    flipped = next(iter(numbers(query, probability=0.75)))
    for number in sorted(numbers(query)):
        positive = number in numbers(query, relevance=YES) and number != flipped
        second(query, other_annotator, number, YES if positive else NO)
    found = patterns()
    drawn = {share: len(numbers(query, probability=share)) for share in (0.75, 0.25)}
    assert {one.weight for one in found if one.weight} == {1 / 0.75, 4.0}
    everything, category = agreement_rows(found)
    [own] = agreement_by_query(found, [query])
    assert (everything.of, category.of, own.of) == ("All queries", query.category, query)
    positives, negatives = drawn[0.75] / 0.75, drawn[0.25] / 0.25
    one = 1 / 0.75
    assert everything.all.items == sum(drawn.values())
    assert everything.all.raw == pytest.approx(1 - one / (positives + negatives))
    assert everything.all.positive == pytest.approx(2 * (positives - one) / (2 * positives - one))
    assert everything.all.low <= everything.all.alpha <= everything.all.high  # type: ignore[operator]
    assert (own.boundary.items, own.boundary.raw) == (BOUNDARY, 1.0)
    standing = standing_of(found, other_annotator.pk)
    assert standing is not None
    assert standing.images == sum(drawn.values())
    assert standing.positive == pytest.approx((positives - one) / (positives + negatives))
    assert standing.colleagues == pytest.approx(positives / (positives + negatives))
    # What a reviewer decides is no vote, and half of the second opinions stand for twice as many.
    judge(query, reviewer, [flipped], YES)
    assert patterns() == found
    left = sorted(numbers(query, probability__isnull=False))[::2]
    Judgment.objects.filter(
        query=query, annotator=other_annotator, image__in=[FIRST_ID + n for n in left]
    ).delete()
    share = sum(drawn.values()) / (sum(drawn.values()) - len(left))
    weights = sorted({one.weight for one in patterns() if one.weight})
    assert weights == pytest.approx([share / 0.75, share / 0.25])
    assert patterns(decided=True) == []
    assert diagnoses(found) == {}


def test_several_labelers_are_compared_as_they_are(query, annotator, other_annotator):
    third = person("tom", Role.ANNOTATOR)
    judge(query, other_annotator, range(0, 2 * FOUND, 2), YES)
    judge(query, other_annotator, range(1, 2 * FOUND, 2), NO)
    judge(query, third, range(FOUND), YES)
    found = patterns(query=query)
    assert {one.weight for one in found} == {1.0}
    assert sum(one.images for one in found) == 2 * FOUND
    by_person = diagnoses(found)
    assert by_person[annotator.pk].sensitivity == pytest.approx(1, abs=1e-3)
    assert by_person[annotator.pk].specificity == pytest.approx(1, abs=1e-3)
    assert by_person[third.pk].specificity == pytest.approx(0, abs=1e-3)
    assert np.isclose(standing_of(found, third.pk).positive, 1)  # type: ignore[union-attr]


def test_pages(query, annotator, other_annotator, reviewer, clients):
    fast = [item(n, NO, seconds=0.02, age=100) for n in range(JUDGED - 20, JUDGED)]
    record(query, other_annotator, *fast, item(1, NO, seconds=0.3), item(3, NO, seconds=4))
    [page] = fast_pages_of(other_annotator)
    assert (page.query, page.images, page.seconds) == (query, 20, pytest.approx(0.4))
    assert fast_pages_of(annotator) == []
    assert pace_of(other_annotator) == 0.02
    submit(query, reviewer)
    own = f"/people/{other_annotator.pk}/labeling/"
    other = client_of(other_annotator)
    assert other.get(f"/people/{annotator.pk}/labeling/").status_code == 403
    assert "data-fast-pages" not in other.get(own).content.decode()
    assert "data-fast-pages" in clients["reviewer"].get(own).content.decode()
    assert clients["annotator"].get("/agreement/").status_code == 403
    page = clients["reviewer"].get("/agreement/")
    assert [row.of for row in page.context["rows"]] == ["All queries", query.category, query]
    assert query.text in page.content.decode()
    assert clients["reviewer"].get("/agreement/?page=2").status_code == 404
    assert "for a second opinion in 1 query" in other.get("/").content.decode()
    address = f"/queries/{query.pk}/second-opinions/"
    assert other.get("/second-opinions/").headers["Location"] == address
    assert '"judged_as": "second"' in other.get(address).content.decode()
    assert clients["annotator"].get("/second-opinions/").headers["Location"] == "/"
    assert JudgmentEvent.objects.filter(source="second").count() == 0

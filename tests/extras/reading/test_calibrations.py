"""Calibration of readers whose probabilities follow from the labels, and their figures."""

from __future__ import annotations

from math import log
from typing import Any

import pytest

from extras.reading.calibration import TooFew
from extras.reading.calibrations import calibrate, judged_readings, latest, reader_figures
from extras.reading.models import Reader, Reading
from labeling.audits.models import Draw, DrawRound
from labeling.judging.agreement import agreement_of, patterns
from labeling.judging.models import BlindItem, Judgment
from retrieval.corpus.models import Image
from tests.conftest import api_of, client_of
from tests.releases.toy import make_list, make_query
from tests.retrieval.making import new_image

pytestmark = pytest.mark.django_db

YES, NO = "relevant", "not_relevant"
LOW, HIGH = 0.1, 0.6
CATEGORIES = (
    *("Life Cycle and Development", "Life Cycle and Development", "Human Impact"),
    *("Feeding and Hydration", "Defensive and Survival Behaviors"),
)
IMAGES = 60


def relevant(image: int) -> bool:
    """6 of the first 30 images, and 24 of the others."""
    return image <= 6 or image > 36


def said(image: int) -> float:
    """What the reader says: right of 4 in 5, and too low."""
    return LOW if image <= 30 else HIGH


def read(reader: Reader, query: Any, probabilities: dict[int, float], prompt: str = "a") -> None:
    Reading.objects.bulk_create(
        Reading(reader=reader, query=query, image_id=image, probability=p, prompt_sha256=prompt)
        for image, p in probabilities.items()
    )


def judge(query: Any, person: Any, labels: dict[int, bool], source: str = "list") -> None:
    Judgment.objects.bulk_create(
        Judgment(query=query, image_id=image, annotator=person, relevance=YES if yes else NO)
        for image, yes in labels.items()
    )
    query.judgments.filter(annotator=person, image__in=labels).update(source=source)


def blind(query: Any, image: int, kind: str, **fields: Any) -> None:
    BlindItem.objects.create(query=query, image_id=image, kind=kind, place=image, **fields)


@pytest.fixture
def queries() -> list[Any]:
    Image.objects.bulk_create(new_image(n, file_name=f"{n}.jpg") for n in range(1, IMAGES + 2))
    return [
        make_query(n, f"query {n}", category=category) for n, category in enumerate(CATEGORIES, 1)
    ]


@pytest.fixture
def reader(queries: list[Any], annotator: Any) -> Reader:
    """It has read all images of five queries but one, and what one person judged of each."""
    reader = Reader.objects.create(name="toy", entry_point="toy", max_side=100)
    for query in queries:
        read(reader, query, {image: 1 - said(image) for image in range(1, 11)}, "an older prompt")
        read(reader, query, {image: said(image) for image in range(1, IMAGES + 1)})
        judge(query, annotator, {n: relevant(n) for n in range(1, IMAGES + 1)})
        judge(query, annotator, {IMAGES + 1: True})
    return reader


def test_shares_by_hand_where_a_reader_is_right_of_four_in_five(reader):
    found = reader_figures(reader)
    judged = found.judged
    assert (judged.relevant, judged.not_relevant) == (150, 150)
    # By the four other queries: 24 of 120 are relevant, and one image of either kind is added.
    low = 25 / 122
    [first, second] = judged.bins
    assert (first.images, first.found, second.images, second.found) == (150, 0.2, 150, 0.8)
    assert (first.calibrated, second.calibrated) == (pytest.approx(low), pytest.approx(1 - low))
    # R: binom.test(30, 150).
    assert (first.low, first.high) == pytest.approx((0.1392, 0.2730), abs=1e-4)
    assert judged.auc == pytest.approx(0.8**2 + 0.8 * 0.2)
    assert judged.brier == pytest.approx(0.8 * low**2 + 0.2 * (1 - low) ** 2)
    assert judged.log_loss == pytest.approx(-0.8 * log(1 - low) - 0.2 * log(low))
    assert (judged.brier_constant, judged.log_loss_constant) == (0.25, pytest.approx(log(2)))


def test_a_reader_agrees_as_a_person_would_who_says_the_same(reader, queries, other_annotator):
    before = reader_figures(reader).agreement
    assert [(row.of, row.relevant) for row in before] == [
        ("All queries", 150),
        ("Appearance", 60),
        ("Life Cycle and Development", 60),
        ("Behavior", 60),
    ]
    assert {row.people for row in before} == {row.reader for row in before} == {None}
    assert {row.labels.raw for row in before} == {0.8}
    calls = {n: said(n) == HIGH for n in range(1, IMAGES + 1)}
    for query in queries:
        judge(query, other_annotator, calls)
    assert before[0].labels == agreement_of(patterns()).all
    behavior = [p for p in patterns() if p.query in {query.pk for query in queries[3:]}]
    assert before[3].labels == agreement_of(behavior).all
    # What it hasn't read takes no part in what people say either.
    for query in queries:
        judge(query, other_annotator, {IMAGES + 1: False})
    after = reader_figures(reader).agreement
    assert after[0].people == before[0].labels != agreement_of(patterns()).all
    # It is as near to the one as they to each other, and says what the other says.
    assert after[0].reader.raw == pytest.approx((0.8 + 1) / 2)
    # Where people agree with each other, it agrees with each as with both.
    Judgment.objects.filter(annotator=other_annotator).delete()
    for query in queries:
        judge(query, other_annotator, {n: relevant(n) for n in calls})
    [whole, *_] = reader_figures(reader).agreement
    assert (whole.people.alpha, whole.people.items) == (1, 300)
    assert (whole.reader.raw, whole.reader.positive) == (before[0].labels.raw, 0.8)


def test_what_a_reader_brought_or_doubted_or_an_audit_drew(
    reader, queries, annotator, other_annotator, reviewer
):
    before = reader_figures(reader)
    assert before.drawn is None
    query = queries[2]
    # Brought to people: of no account for agreement, and the same for calibration.
    query.judgments.update(source="reader")
    # It doubts what people say of images 1 to 6 and 31 to 36; others then say what it says.
    doubted = {n: n > 30 for n in (*range(1, 7), *range(31, 37))}
    for image in doubted:
        blind(queries[0], image, "second-opinions", relevance=NO, not_for=annotator)
    judge(queries[0], other_annotator, doubted, "second")
    judge(queries[0], reviewer, doubted, "correction")
    after = reader_figures(reader)
    assert after.judged == before.judged
    assert (after.agreement[0].relevant, after.agreement[0].labels.raw) == (120, 0.8)
    assert after.agreement[2] == before.agreement[2]
    # But where nobody's doubt brought it, a reviewer decides.
    judge(queries[1], reviewer, {1: False, 31: True}, "correction")
    labels = {(one.query, one.image): one.relevant for one in judged_readings(reader)}
    assert [labels[pk, n] for pk in (queries[0].pk, queries[1].pk) for n in (1, 31)] == [
        *(True, False),
        *(False, True),
    ]
    Judgment.objects.filter(annotator=reviewer).delete()
    for image in range(1, 50):
        blind(query, image, "release-audit")
    assert reader_figures(reader).drawn is None
    pool = make_list(queries[4], [60])
    of_query = {"query": queries[4]}
    draws = DrawRound.objects.create(
        **of_query, number=1, candidate_list=pool, size=1, key=b"0" * 32, drawn_from=b"1"
    )
    Draw.objects.create(**of_query, round=draws, place=1, image_id=60)
    drawn = reader_figures(reader).drawn
    assert [(at.images, at.found) for at in drawn.bins] == [(30, 6 / 30), (20, 14 / 20)]


def test_a_curve_is_stored_once_and_again_after_judgments_that_change_it(
    reader, queries, annotator
):
    first = calibrate(reader=reader)
    assert (first.relevant, first.not_relevant) == (150, 150)
    assert (first.said, first.found) == ([LOW, HIGH], [31 / 152, 121 / 152])
    assert calibrate(reader=reader) == first == latest(reader)
    read(reader, queries[0], {IMAGES + 1: HIGH})
    second = calibrate(reader=reader)
    assert second.pk != first.pk
    assert second == latest(reader)
    assert second.found == [31 / 152, 122 / 153]


def test_below_fifty_of_a_kind_nothing_is_said_and_annotators_see_nothing(
    reader, queries, annotator, researcher, reviewer
):
    path = f"/api/readers/{reader.pk}/calibration/"
    for person in (annotator, researcher):
        for method in ("get", "post"):
            assert getattr(api_of(person), method)(path).status_code == 403
        assert client_of(person).post(f"/readers/{reader.pk}/calibrate/").status_code == 403
    api = api_of(reviewer)
    assert api.get(path).json()["calibration"] is None
    made = api.post(path).json()
    assert made["calibration"]["id"] == latest(reader).pk
    assert made["figures"]["judged"]["bins"][1]["found"] == 0.8
    assert made["figures"]["agreement"][3]["of"] == "Behavior"
    browser, page = client_of(reviewer), f"/readers/{reader.pk}/"
    shown = browser.get(page).content.decode()
    assert shown.count('<tr><td class="numeric">') == 2
    assert "Calibrate again" in shown
    Judgment.objects.filter(query__in=queries[:4], relevance=YES).delete()
    extra = range(7, 16)
    Judgment.objects.filter(query=queries[4], image__in=extra).update(relevance=YES)
    Judgment.objects.filter(query=queries[3], image__in=range(7, 17)).update(relevance=YES)
    with pytest.raises(TooFew, match="49 relevant and"):
        calibrate(reader=reader)
    assert api.get(path).json()["figures"] is None
    assert api.post(path).status_code == 409
    assert browser.post(f"{page}calibrate/").status_code == 302
    hidden = browser.get(page).content.decode()
    assert "49 relevant and" in hidden
    assert "AUC" not in hidden

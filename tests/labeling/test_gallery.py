"""A query's gallery: what each role finds in it by which filter, and a reviewer's corrections."""

from __future__ import annotations

import random
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone

from labeling.candidates.stopping import NOT_RELEVANT, RELEVANCES, RELEVANT, UNSURE
from labeling.gallery.selectors import LABELS, GalleryFilter, GalleryImage, gallery, gallery_images
from labeling.judging.blind import SECOND_OPINIONS
from labeling.judging.consensus import consensus_by_key
from labeling.judging.models import BlindItem, Judgment, JudgmentEvent
from labeling.judging.progress import progress, votes_of
from labeling.lifecycle.services import query_transition
from labeling.queries.models import Query
from releases.making.labels import released_judgments
from retrieval.corpus.models import Image, ImageWithdrawal
from tests.conftest import api_of, client_of
from tests.labeling.conftest import FIRST_ID, make_images, make_species
from tests.labeling.judging import item, judge, record

IMAGES = 12


@pytest.fixture
def query(toy_model: Any, open_query: Any) -> Query:
    make_images(IMAGES)
    result: Query = open_query()
    return result


def found(query: Query, user: Any, **wanted: Any) -> list[int]:
    """The numbers of the toy images."""
    result = gallery(query=query, user=user, wanted=GalleryFilter(**wanted))
    assert result.counts[wanted.get("label", "")] == len(result.image_ids)
    return [image_id - FIRST_ID for image_id in result.image_ids]


def shown(query: Query, user: Any, number: int) -> GalleryImage:
    [image] = gallery_images(query=query, user=user, image_ids=[FIRST_ID + number])
    return image


def label(query: Query, annotator: Any, other: Any, reviewer: Any) -> None:
    """0, 1: relevant; 2: not; 3: unsure; 4: disputed; 5: a dispute that the reviewer settled."""
    judge(query, annotator, [0, 1, 4, 5], RELEVANT)
    judge(query, annotator, [2], NOT_RELEVANT)
    judge(query, annotator, [3], UNSURE)
    judge(query, other, [4, 5], NOT_RELEVANT)
    judge(query, reviewer, [5], RELEVANT)


def test_each_filter(query, annotator, other_annotator, reviewer, subtests):
    label(query, annotator, other_annotator, reviewer)
    record(query, annotator, item(7, RELEVANT, source="search"))
    toad = make_species("Bufo bufo")
    Image.objects.filter(pk__in=[FIRST_ID + 1, FIRST_ID + 2]).update(species=toad)
    make_images(1, first=IMAGES)
    record(query, annotator, item(IMAGES, RELEVANT, source="similar"))
    ann, otto = annotator.pk, other_annotator.pk
    cases: list[tuple[dict[str, Any], list[int]]] = [
        ({}, [0, 1, 2, 3, 4, 5, 7, IMAGES]),
        ({"label": RELEVANT}, [0, 1, 5, 7, IMAGES]),
        ({"label": NOT_RELEVANT}, [2, 4]),
        ({"label": UNSURE}, [3]),
        ({"label": "disputed"}, [4]),
        ({"label": "settled"}, [5]),
        ({"label": "several"}, [4, 5]),
        ({"person": ann, "also": otto}, [4, 5]),
        ({"person": ann, "also": reviewer.pk}, [5]),
        ({"person": otto}, [4, 5]),
        ({"person": otto, "label": NOT_RELEVANT}, [4, 5]),
        ({"person": ann, "label": RELEVANT}, [0, 1, 4, 5, 7, IMAGES]),
        ({"person": otto, "label": "settled"}, [5]),
        ({"source": "search"}, [7]),
        ({"source": "search", "person": otto}, []),
        ({"species": [toad.pk]}, [1, 2]),
        ({"species": [toad.pk], "label": RELEVANT}, [1]),
        ({"listed": True, "label": RELEVANT}, [0, 1, 5, 7]),
        ({"listed": False}, [IMAGES]),
        ({"image": FIRST_ID + 4}, [4]),
    ]
    for wanted, numbers in cases:
        with subtests.test(**wanted):
            assert found(query, reviewer, **wanted) == numbers
    counted = progress(query)
    assert len(found(query, reviewer, label=RELEVANT, listed=True)) == counted.stop.relevant
    assert len(found(query, reviewer, label=UNSURE, listed=True)) == counted.unsure
    assert len(found(query, reviewer, listed=True)) == counted.stop.judged
    ImageWithdrawal.objects.create(
        image_id=FIRST_ID, withdrawn_by=reviewer, withdrawn_at=timezone.now()
    )
    assert found(query, reviewer, label=RELEVANT) == [1, 5, 7, IMAGES]


def test_labels_and_grades_are_those_of_the_consensus(
    query, annotator, other_annotator, reviewer, admin
):
    """SQL filters by what `consensus` says, whoever judged in which order."""
    Query.objects.filter(pk=query.pk).update(grades="partly")
    query.refresh_from_db()
    chosen = random.Random(7)
    people = [annotator, other_annotator, reviewer, admin]
    for number in range(IMAGES):
        for person in chosen.sample(people, chosen.randint(1, 4)):
            relevance = chosen.choice(list(RELEVANCES))
            grade = {RELEVANT: chosen.choice([None, 2, 3]), NOT_RELEVANT: chosen.choice([0, 1])}
            record(query, person, item(number, relevance, grade=grade.get(relevance)))
    by_rule = {
        image_id: agreed
        for (_, image_id), agreed in consensus_by_key(votes_of(Judgment.objects.all()))
    }
    by_grade = {
        image_id: grade
        for grade in range(4)
        for image_id in gallery(
            query=query, user=reviewer, wanted=GalleryFilter(grade=grade)
        ).image_ids
    }
    assert by_grade == {
        image_id: agreed.grade
        for image_id, agreed in by_rule.items()
        if agreed.relevant or not agreed.unsure
    }
    by_label = {name: set(found(query, reviewer, label=name)) for name in LABELS}
    for number in range(IMAGES):
        agreed, image = by_rule[FIRST_ID + number], shown(query, reviewer, number)
        assert (number in by_label[RELEVANT]) == agreed.relevant
        assert (number in by_label[UNSURE]) == agreed.unsure
        assert image.grade == agreed.grade
        assert (number in by_label["several"]) == (agreed.votes > 1)
        assert {name for name in by_label if number in by_label[name]} - {"several"} == {
            image.label,
            *image.marks,
        }


def test_the_page_of_a_query_with_grades_says_what_a_person_said_otherwise(
    query, annotator, other_annotator, reviewer
):
    Query.objects.filter(pk=query.pk).update(grades="partly")
    query.refresh_from_db()
    for person, grade in ((annotator, 3), (other_annotator, 2)):
        record(query, person, item(0, RELEVANT, grade=grade))
    record(query, annotator, item(1, UNSURE))

    def page(parameters: str) -> str:
        address = f"/queries/{query.pk}/images/?{parameters}"
        return str(client_of(reviewer).get(address).content.decode())

    own = page(f"person={annotator.pk}&grade=3")
    assert own.count("<figure>") == 1
    assert '<span class="badge relevant">Partly</span>' in own
    assert "ann: Definitely" in own
    assert "otto: Partly" not in page(f"person={other_annotator.pk}")
    assert "<figure>" not in page("grade=0")
    assert ">Clear</a>" in page("grade=0")
    assert ">Clear</a>" not in page("label=unsure")


def test_annotators_see_their_own_labels_and_nothing_of_others(
    query, annotator, other_annotator, reviewer, researcher
):
    label(query, annotator, other_annotator, reviewer)
    assert found(query, annotator) == [0, 1, 2, 3, 4, 5]
    assert found(query, other_annotator, label=NOT_RELEVANT) == [4, 5]
    image = shown(query, other_annotator, 5)
    assert (image.label, image.marks, len(image.votes)) == (NOT_RELEVANT, (), 1)
    page, api = f"/queries/{query.pk}/images/", f"/api/queries/{query.pk}/images/"
    person = annotator.pk
    for of_others in (
        *("label=disputed", "label=settled", "label=several"),
        *(f"person={person}", f"also={person}"),
    ):
        assert client_of(other_annotator).get(f"{page}?{of_others}").status_code in (403, 404)
        assert api_of(other_annotator).get(f"{api}?{of_others}").status_code == 403
    assert client_of(other_annotator).get(page).status_code == 200
    assert client_of(researcher).get(page).status_code == 404
    assert api_of(researcher).get(api).status_code == 403
    toad = make_species("Bufo bufo")
    Image.objects.update(species=toad)
    with override_settings(HIDE_SPECIES_NAMES=True):
        assert shown(query, annotator, 0).species is None
        assert client_of(annotator).get(f"{page}?species={toad.pk}").status_code == 403
        assert b"bufo" not in client_of(annotator).get(page).content.lower()
    assert b"bufo" in client_of(annotator).get(page).content.lower()


@pytest.fixture
def submitted(query: Query, annotator: Any, admin: Any, settings: Any) -> Query:
    """With a second opinion on each of its images 0, 1 and 2."""
    settings.SECOND_OPINION_POSITIVE = settings.SECOND_OPINION_NEGATIVE = 1.0
    judge(query, annotator, [0, 1, 2], RELEVANT)
    result: Query = query_transition(query=query, to_state="submitted", by=admin, note="done")
    assert BlindItem.objects.filter(query=query, kind=SECOND_OPINIONS.name).count() == 3
    return result


def test_reviewers_see_no_label_that_waits_for_their_blind_judgment(
    submitted, annotator, other_annotator, reviewer
):
    assert found(submitted, reviewer) == []
    assert found(submitted, annotator) == [0, 1, 2]
    address = f"/queries/{submitted.pk}/images/"
    assert b"3 images that wait for your own blind judgment" in (
        client_of(reviewer).get(address).content
    )
    [outcome] = record(submitted, reviewer, item(0, NOT_RELEVANT, source="correction"))
    assert (outcome.status, outcome.code) == ("refused", "invalid")
    BlindItem.objects.filter(query=submitted).update(displayed_at=submitted.created_at)
    record(submitted, other_annotator, item(0, NOT_RELEVANT, source="second"))
    assert found(submitted, reviewer, label="disputed") == [0]


def test_a_correction_of_a_complete_query_is_an_event_and_goes_into_the_next_release(
    query, annotator, other_annotator, reviewer
):
    label(query, annotator, other_annotator, reviewer)
    query = query_transition(query=query, to_state="complete", by=reviewer, note="enough")
    api = api_of(reviewer)

    def send(number: int, relevance: str | None, client_id: str, by: Any = api) -> Any:
        body = {
            "image": FIRST_ID + number,
            "relevance": relevance,
            "client_id": client_id,
            "source": "correction",
        }
        answer = by.post(f"/api/queries/{query.pk}/judgments/", [body])
        assert answer.status_code == 200
        return answer.json()["results"][0]

    def is_relevant(number: int) -> bool:
        """By the release that would be made now."""
        votes = [(row.image_id, vote) for row, vote in released_judgments()]
        return dict(consensus_by_key(votes))[FIRST_ID + number].relevant

    assert is_relevant(0)
    assert send(0, NOT_RELEVANT, "first")["status"] == "stored"
    assert send(0, NOT_RELEVANT, "first")["status"] == "repeated"
    query.refresh_from_db()
    assert query.state == Query.State.COMPLETE
    assert not is_relevant(0)
    assert found(query, reviewer, label="settled") == [0, 5]
    assert found(query, reviewer, source="correction") == [0]
    event = JudgmentEvent.objects.get(annotator=reviewer, image=FIRST_ID)
    assert (event.previous, event.relevance, event.source) == ("", NOT_RELEVANT, "correction")
    # A reviewer's earlier label keeps how the image came up.
    assert send(5, NOT_RELEVANT, "second")["status"] == "stored"
    assert Judgment.objects.get(annotator=reviewer, image=FIRST_ID + 5).source == "list"
    # Taken back, the others' labels stand again; the last label of an image stays.
    assert send(0, None, "third")["status"] == "stored"
    assert is_relevant(0)
    Judgment.objects.filter(image=FIRST_ID + 5).exclude(annotator=reviewer).delete()
    for refused in (
        send(5, None, "fourth"),
        send(9, RELEVANT, "fifth"),
        send(0, UNSURE, "sixth", api_of(annotator)),
    ):
        assert refused["status"] == "refused"
    Query.objects.filter(pk=query.pk).update(state="draft", left_open="", completion_reason="")
    assert send(0, UNSURE, "seventh")["status"] == "refused"


def test_the_page_links_what_the_query_page_counts(query, annotator, other_annotator, reviewer):
    label(query, annotator, other_annotator, reviewer)
    page = client_of(reviewer).get(f"/queries/{query.pk}/").content.decode()
    images = f"/queries/{query.pk}/images/"
    for address in (
        f"{images}?label=relevant&amp;listed=yes",
        f"{images}?label=unsure&amp;listed=yes",
        f"{images}?person={annotator.pk}&amp;label=relevant&amp;listed=yes",
        f"{images}?person={annotator.pk}&amp;also={other_annotator.pk}",
        f"{images}?label=several",
        f"{images}?label=disputed",
    ):
        assert f'href="{address}"' in page
        assert client_of(reviewer).get(address.replace("&amp;", "&")).status_code == 200
    page = client_of(reviewer).get(f"{images}?label=relevant&listed=yes").content.decode()
    assert page.count("<figure>") == 3
    for nonsense in ("label=nice", "grade=9", "page=2", "listed=perhaps", "person=x"):
        assert client_of(reviewer).get(f"{images}?{nonsense}").status_code == 404

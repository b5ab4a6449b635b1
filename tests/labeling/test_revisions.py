"""The order that learns: a revision is a function of the judgments, and is verified."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from io import StringIO
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.db import transaction

from labeling.candidates.models import Candidate
from labeling.candidates.services import list_extend
from labeling.judging.models import Judgment, JudgmentEvent
from labeling.learning.features import Feature
from labeling.learning.models import Revision
from labeling.learning.revisions import Queue, revision_problem, revision_queue
from labeling.learning.ridge import odds_numbers
from labeling.queries.models import Query
from retrieval.corpus.models import Image
from retrieval.flags.services import image_withdraw
from retrieval.takedown.services import image_take_down
from tests.labeling.conftest import FIRST_ID, make_images
from tests.labeling.judging import current_list, item, judge, record

pytestmark = pytest.mark.django_db
OpenQuery = Callable[..., Query]


@pytest.fixture
def query(toy_model, open_query) -> Query:
    """An open query over 60 images, its list in the order of their numbers."""
    make_images(60)
    return open_query()


def queue_of(query: Query, user: Any) -> Queue:
    return revision_queue(query=Query.objects.get(pk=query.pk), user=user)


def numbers(queue: Queue) -> list[int]:
    return [one.image_id - FIRST_ID for one in queue.images]


def direction_of(revision: Revision) -> list[float]:
    return np.array(Revision.objects.get(pk=revision.pk).direction, np.float16).tolist()


def test_until_both_are_known_the_queue_is_the_frozen_order(query, annotator):
    first = queue_of(query, annotator)
    assert numbers(first) == list(range(60))
    assert (first.revision.number, first.revision.judged) == (1, 0)
    judge(query, annotator, [0, 1, 5], "not_relevant")
    second = queue_of(query, annotator)
    assert numbers(second) == [n for n in range(60) if n not in (0, 1, 5)]
    assert (second.revision.number, second.revision.judged) == (2, 3)
    assert not any(one.learned for one in second.images)


def test_the_queue_is_learned_and_every_fourth_image_frozen(query, annotator):
    # The relevant images are the last of the list.
    judge(query, annotator, range(5), "not_relevant")
    judge(query, annotator, [57, 58, 59], "relevant")
    found = queue_of(query, annotator)
    assert (found.revision.judged, found.revision.relevant) == (8, 3)
    assert numbers(found)[:8] == [56, 55, 54, 5, 53, 52, 51, 6]
    assert [one.learned for one in found.images][:8] == [True, True, True, False] * 2
    assert sorted(numbers(found)) == list(range(5, 57))
    assert {one.rank - 1 for one in found.images} == set(numbers(found))


def test_a_revision_is_a_function_of_the_judgments(query, annotator, other_annotator):
    """Whatever the order in which they were made, and whatever was undone and redone meanwhile."""
    acts = [(0, "not_relevant"), (30, "not_relevant"), (50, "relevant"), (59, "relevant")]
    record(query, annotator, *(item(*act) for act in acts))
    record(query, other_annotator, *(item(*act) for act in reversed(acts)))
    one, other = queue_of(query, annotator), queue_of(query, other_annotator)
    assert direction_of(one.revision) == direction_of(other.revision)
    assert (one.images, one.revision.checksum) == (other.images, other.revision.checksum)
    assert queue_of(query, annotator).revision == one.revision
    record(query, annotator, item(59, None), item(30, "relevant"))
    changed = queue_of(query, annotator)
    assert direction_of(changed.revision) != direction_of(one.revision)
    record(query, annotator, item(59, "relevant"), item(30, "not_relevant"))
    redone = queue_of(query, annotator)
    assert (redone.revision.number, redone.revision.checksum) == (3, one.revision.checksum)
    assert redone.images == one.images


def test_own_judgments_or_everyones(query, annotator, other_annotator, reviewer, settings):
    judge(query, annotator, [0, 1], "not_relevant")
    judge(query, other_annotator, [58, 59], "relevant")
    assert queue_of(query, annotator).revision.judged == 2
    settings.LEARN_FROM_EVERYONE = True
    everyones = queue_of(query, annotator)
    assert (everyones.revision.judged, everyones.revision.relevant) == (4, 2)
    # What others judged is still to be judged by this person, and first of all what they found.
    assert numbers(everyones)[0] == 59
    theirs = queue_of(query, other_annotator)
    assert theirs.revision == everyones.revision
    assert not {58, 59} & set(numbers(theirs))
    # A reviewer's word settles it.
    judge(query, reviewer, [59], "not_relevant")
    assert queue_of(query, annotator).revision.relevant == 1


def test_withdrawn_images_are_left_out(query, annotator, admin):
    judge(query, annotator, [0, 1], "not_relevant")
    judge(query, annotator, [58, 59], "relevant")
    before = queue_of(query, annotator)
    for number in (57, 59):
        image = Candidate.objects.get(list=query.current_list, image=FIRST_ID + number).image
        image_withdraw(image=image, by=admin)
    same = queue_of(query, annotator)
    assert same.revision == before.revision
    assert 57 not in numbers(same)
    judge(query, annotator, [2], "not_relevant")
    after = queue_of(query, annotator)
    assert (after.revision.judged, after.revision.relevant) == (4, 1)
    assert not {57, 59} & set(numbers(after))
    call_command("verify_lists", stdout=StringIO())


def test_a_revision_that_was_tampered_with_is_found(query, annotator):
    judge(query, annotator, [0, 1], "not_relevant")
    judge(query, annotator, [58, 59], "relevant")
    made = queue_of(query, annotator).revision
    judge(query, annotator, [30], "relevant")
    queue_of(query, annotator)
    output = StringIO()
    call_command("verify_lists", stdout=output)
    assert "2 revisions" in output.getvalue()
    for change, problem in (
        ({"direction": [0.5, 0.5]}, "order"),
        ({"checksum": "0" * 64}, "order"),
        ({"judged": 5}, "judgments"),
        ({"relevant": 1}, "judgments"),
        ({"last_event": 0}, "judgments"),
    ):
        with transaction.atomic():
            Revision.objects.filter(pk=made.pk).update(**change)
            assert problem in str(revision_problem(Revision.objects.get(pk=made.pk)))
            with pytest.raises(CommandError, match="0 of 1 lists differ, and 1 of 2 revisions"):
                call_command("verify_lists", stderr=StringIO())
            transaction.set_rollback(True)
    made.delete()
    with pytest.raises(CommandError, match="0 of 1 lists differ, and 1 of 2 revisions"):
        call_command("verify_lists", stderr=StringIO())


def test_another_direction_with_its_own_order_is_found(query, annotator):
    """What is wrong in itself alone: the direction gives the order, but no judgments give it."""
    judge(query, annotator, [0, 1], "not_relevant")
    judge(query, annotator, [58, 59], "relevant")
    made = queue_of(query, annotator).revision
    judge(query, annotator, range(2, 30), "not_relevant")
    other = queue_of(query, annotator).revision
    assert direction_of(other) != direction_of(made)
    Revision.objects.filter(pk=made.pk).update(
        direction=direction_of(other), checksum=other.checksum
    )
    assert "direction" in str(revision_problem(Revision.objects.get(pk=made.pk)))


def test_a_further_number_orders_the_queue_and_is_verified(query, annotator, monkeypatch):
    """The number is high for images 50 to 59, and image 55 is not offered."""
    given = {}

    def numbers_of(candidate_list, image_ids, key):
        if key is not None and key not in given:
            return None
        given[key or "first"] = True
        values = np.where(image_ids >= FIRST_ID + 50, 9.0, 0.0)
        return Feature("first", odds_numbers(values), image_ids != FIRST_ID + 55)

    monkeypatch.setattr("labeling.learning.features.FEATURES", [numbers_of])
    first = queue_of(query, annotator)
    assert numbers(first).index(50) < 20
    assert 55 not in numbers(first)
    assert len(numbers(first)) == 59
    judge(query, annotator, [50], "relevant")
    judge(query, annotator, [0, 1], "not_relevant")
    second = queue_of(query, annotator)
    assert second.revision.feature == "first"
    assert second.revision.weight > 0
    assert [revision_problem(one) for one in Revision.objects.all()] == ["", ""]
    Revision.objects.filter(pk=second.revision.pk).update(weight=0.5)
    assert "order" in str(revision_problem(Revision.objects.get(pk=second.revision.pk)))
    given.clear()
    assert "gone" in str(revision_problem(Revision.objects.get(pk=first.revision.pk)))
    monkeypatch.setattr("labeling.learning.features.FEATURES", [])
    plain = queue_of(query, annotator)
    assert plain.revision.feature == ""
    assert 55 in numbers(plain)


def test_a_revision_with_an_image_that_was_taken_down_is_left_out(query, annotator, admin):
    judge(query, annotator, [0, 1], "not_relevant")
    judge(query, annotator, [58, 59], "relevant")
    made = queue_of(query, annotator).revision
    image_take_down(image=Image.objects.get(pk=FIRST_ID + 20), reason="A face", by=admin)
    assert revision_problem(made) is None
    said = StringIO()
    call_command("verify_lists", stdout=said)
    assert "1 revisions can't be compared" in said.getvalue()


def test_a_list_that_grew_has_a_revision_of_its_own(toy_model, open_query, annotator, settings):
    settings.CANDIDATE_DEPTH = 20
    make_images(40)
    query = open_query()
    judge(query, annotator, [0, 1], "not_relevant")
    judge(query, annotator, [19], "relevant")
    short = queue_of(query, annotator)
    list_extend(candidate_list=current_list(query), by_count=20)
    long = queue_of(query, annotator)
    assert (short.revision.size, long.revision.size) == (20, 40)
    assert (max(numbers(short)), max(numbers(long))) == (18, 39)
    assert [revision_problem(one) for one in Revision.objects.all()] == ["", ""]


def sent(queue: Queue, place: int, relevance: str | None = "relevant") -> dict[str, Any]:
    """The judgment of an image of a queue as the page sends it."""
    one = queue.images[place - 1]
    return {
        "image": one.image_id,
        "relevance": relevance,
        "client_id": str(uuid.uuid4()),
        "source": "learned" if one.learned else "list",
        "revision": queue.revision.pk,
        "place": place,
    }


def post(api: Any, query: Query, items: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    answer = api.post(f"/api/queries/{query.pk}/judgments/", list(items), format="json")
    assert answer.status_code == 200
    return [(one["status"], one["detail"]) for one in answer.json()["results"]]


@pytest.fixture
def learning(query, annotator) -> Queue:
    """A queue in which images were learned."""
    judge(query, annotator, range(6), "not_relevant")
    judge(query, annotator, [58, 59], "relevant")
    return queue_of(query, annotator)


def test_judgments_keep_how_their_image_was_found(query, annotator, annotator_api, learning):
    acts = [sent(learning, 1), sent(learning, 4, "not_relevant")]
    assert post(annotator_api, query, [*acts, acts[0]]) == [
        ("stored", ""),
        ("stored", ""),
        ("repeated", ""),
    ]
    first, second = learning.images[0], learning.images[3]
    assert (first.learned, second.learned) == (True, False)
    kept = Judgment.objects.filter(revision=learning.revision).order_by("place")
    assert [(one.image_id, one.source, one.place, one.rank) for one in kept] == [
        (first.image_id, "learned", 1, first.rank),
        (second.image_id, "list", 4, second.rank),
    ]
    # A correction elsewhere keeps it, and so does its history.
    number = first.image_id - FIRST_ID
    record(query, annotator, item(number, "unsure"), item(number, "relevant", source="search"))
    one = Judgment.objects.get(image=first.image_id)
    assert (one.relevance, one.source, one.place) == ("relevant", "learned", 1)
    history = annotator_api.get(f"/api/queries/{query.pk}/history/?image={first.image_id}").json()
    assert [
        (event["source"], event["revision"], event["place"]) for event in history["results"]
    ] == [("learned", 1, 1), ("list", None, None), ("search", None, None)]
    record(query, annotator, item(number, None), item(number, "relevant"))
    one = Judgment.objects.get(image=first.image_id)
    assert (one.source, one.revision, one.place) == ("list", None, None)


def test_a_learned_judgment_counts_for_the_streak_at_its_frozen_rank(
    query, annotator_api, learning
):
    place = next(n for n, one in enumerate(learning.images, start=1) if one.rank == 7)
    assert post(annotator_api, query, [sent(learning, place, "not_relevant")]) == [("stored", "")]
    own = annotator_api.get(f"/api/queries/{query.pk}/outline/").json()
    assert (own["progress"]["prefix"], own["progress"]["streak"]) == (7, 7)
    assert post(annotator_api, query, [sent(learning, 1, "not_relevant")]) == [("stored", "")]
    own = annotator_api.get(f"/api/queries/{query.pk}/outline/").json()
    assert (own["progress"]["prefix"], own["progress"]["streak"]) == (7, 7)
    assert own["sources"][learning.images[0].rank - 1] == "o"


def test_what_names_no_queue_is_refused(
    query, open_query, annotator_api, other_annotator_api, learning
):
    before = JudgmentEvent.objects.count()
    for change, detail in (
        ({"revision": None}, "together"),
        ({"place": None}, "together"),
        ({"place": 0}, "place"),
        ({"source": "search"}, "Only images of the list"),
        ({"revision": None, "place": None}, "needs a revision"),
        ({"revision": 10**9}, "none of this query"),
    ):
        [(status, why)] = post(annotator_api, query, [sent(learning, 1) | change])
        assert (status, detail in why) == ("refused", True), change
    # Nor is one of somebody else or of another query.
    other = open_query("a newt")
    for api, one in ((other_annotator_api, query), (annotator_api, other)):
        [(status, why)] = post(api, one, [sent(learning, 1)])
        assert (status, "none of this query" in why) == ("refused", True)
    assert JudgmentEvent.objects.count() == before


def test_the_api_gives_the_queue_and_the_same_again(query, annotator_api, learning):
    address = f"/api/queries/{query.pk}/revisions/"
    found = annotator_api.post(address).json()
    assert found == annotator_api.post(address).json()
    assert (found["id"], found["number"]) == (learning.revision.pk, 1)
    assert (found["judged"], found["relevant"]) == (8, 2)
    assert [(one["image"], one["rank"], one["learned"]) for one in found["queue"]] == [
        (one.image_id, one.rank, one.learned) for one in learning.images
    ]
    assert Revision.objects.count() == 1


def test_who_may_label_in_the_order_that_learns(
    query, annotator_api, reviewer_api, researcher_api, settings
):
    address = f"/api/queries/{query.pk}/revisions/"
    assert annotator_api.post(address).status_code == 200
    assert researcher_api.post(address).status_code == 403
    settings.ANNOTATORS_CHOOSE_ORDER = False
    assert annotator_api.post(address).status_code == 403
    assert reviewer_api.post(address).status_code == 200
    Query.objects.filter(pk=query.pk).update(order="learned")
    assert annotator_api.post(address).status_code == 200
    Query.objects.filter(pk=query.pk).update(state="submitted")
    assert annotator_api.post(address).status_code in (403, 404)


def test_the_page_has_the_querys_order_or_the_chosen_one(query, clients, settings):
    def learns(name: str, order: str = "") -> bool | int:
        answer = clients[name].get(f"/queries/{query.pk}/label/{order}")
        return b'"kind": "learned"' in answer.content if answer.status_code == 200 else 404

    assert not learns("annotator")
    assert learns("annotator", "?order=learned")
    assert learns("annotator", "?order=best") == 404
    assert learns("annotator")  # as chosen before
    assert not learns("annotator", "?order=clip")
    assert not learns("annotator")
    settings.ANNOTATORS_CHOOSE_ORDER = False
    assert learns("annotator", "?order=learned") == 404
    assert learns("reviewer", "?order=learned")
    assert b"?order=" not in clients["annotator"].get(f"/queries/{query.pk}/label/").content


def test_an_admin_chooses_the_order_of_a_query(query, clients, admin_api):
    address = f"/api/queries/{query.pk}/"
    assert admin_api.get(address).json()["order"] == "clip"
    sent = {
        "text": query.text,
        "category": query.category,
        "split": "val",
        "query_id": query.query_id,
        "order": "learned",
    }
    assert clients["admin"].post(f"/queries/{query.pk}/edit/", sent).status_code == 302
    assert admin_api.get(address).json()["order"] == "learned"
    # A form that doesn't name the order keeps it.
    del sent["order"]
    assert clients["admin"].post(f"/queries/{query.pk}/edit/", sent).status_code == 302
    assert b'"kind": "learned"' in clients["annotator"].get(f"/queries/{query.pk}/label/").content
    assert admin_api.patch(address, {"order": "clip"}, format="json").json()["order"] == "clip"
    assert admin_api.patch(address, {"order": "best"}, format="json").status_code == 400

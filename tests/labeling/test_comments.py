"""Comments: written once, read only by those whom they can't steer, mentioned and resolved."""

from __future__ import annotations

import json
import uuid
from datetime import date
from typing import Any

import pytest
from django.utils import timezone

from annotator.models import User
from annotator.people.services import person_leave
from labeling.comments.models import Comment, Mention
from labeling.lifecycle.services import query_transition
from labeling.queries.models import Query, QueryTransition
from labeling.review.pace import team_progress
from tests.conftest import api_of, client_of
from tests.labeling.conftest import FIRST_ID, make_images
from tests.labeling.judging import item, judge, record

NO, YES = "not_relevant", "relevant"


@pytest.fixture
def query(toy_model, open_query) -> Query:
    make_images(12)
    return open_query()


def write(by: Any, query: Query, text: str, number: int | None = 0, **fields: Any) -> Any:
    image = None if number is None else FIRST_ID + number
    body = {"image": image, "text": text, "client_id": str(uuid.uuid4())} | fields
    return api_of(by).post(f"/api/queries/{query.pk}/comments/", body)


def thread(by: Any, query: Query, number: int | None = 0) -> dict[str, Any]:
    which = "" if number is None else f"?image={FIRST_ID + number}"
    answer = api_of(by).get(f"/api/queries/{query.pk}/comments/{which}")
    assert answer.status_code == 200
    return dict(answer.json())


def texts(by: Any, query: Query, number: int | None = 0) -> list[str]:
    return [one["text"] for one in thread(by, query, number)["results"]]


def counts(by: Any, query: Query) -> dict[int, int]:
    answer = api_of(by).get(f"/api/queries/{query.pk}/changes/?cursor=0").json()
    return {one["image"] - FIRST_ID: one["comments"] for one in answer["comments"]}


def resolve(by: Any, query: Query, resolved: bool, number: int | None = 0) -> Any:
    body = {"image": None if number is None else FIRST_ID + number, "resolved": resolved}
    return api_of(by).post(f"/api/queries/{query.pk}/comments/resolve/", body)


def test_a_thread_is_written_once_resolved_and_opened_again(
    query, annotator, other_annotator, reviewer, researcher
):
    sent = {"client_id": str(uuid.uuid4())}
    assert write(annotator, query, " two\nlines ", None, **sent).status_code == 201
    assert write(annotator, query, "two\nlines", None, **sent).status_code == 200
    assert write(other_annotator, query, "three", None).status_code == 201
    assert texts(annotator, query, None) == ["two\nlines", "three"]
    assert [one["own"] for one in thread(annotator, query, None)["results"]] == [True, False]
    for text, number, refused in (
        ("", None, "text"),
        ("x" * 5001, None, "text"),
        ("x", 99, "image"),
    ):
        answer = write(annotator, query, text, number)
        assert answer.status_code == 400
        assert [one["field"] for one in answer.json()["errors"]] == [refused]
    assert write(researcher, query, "hello", None).status_code == 403
    Query.objects.filter(pk=query.pk).update(state="draft")
    assert write(other_annotator, query, "hello", None).status_code == 404
    Query.objects.filter(pk=query.pk).update(state="open")
    assert resolve(reviewer, query, True, 3).status_code == 409
    assert resolve(other_annotator, query, True, None).json()["resolved_by"] == "otto"
    first = thread(annotator, query, None)["resolved_at"]
    assert resolve(reviewer, query, True, None).json()["resolved_at"] == first
    assert resolve(annotator, query, False, None).json()["resolved_at"] is None
    assert Comment.objects.count() == 2


def test_others_comments_on_an_image_come_after_ones_own_judgment(
    query, annotator, other_annotator, reviewer
):
    write(annotator, query, "a toad?")
    write(annotator, query, "a frog", 1)
    found = thread(other_annotator, query)
    assert (found["hidden"], found["results"]) == (True, [])
    assert thread(other_annotator, query, 5) == found | {"image": FIRST_ID + 5}
    assert counts(other_annotator, query) == {}
    assert resolve(other_annotator, query, True).status_code == 409
    resolve(reviewer, query, True)
    assert thread(other_annotator, query) == found
    resolve(reviewer, query, False)
    page = client_of(other_annotator).get(f"/queries/{query.pk}/").content.decode()
    assert "data-open-comments" not in page
    # One's own are there before, and no answer but these differs by what others wrote.
    write(other_annotator, query, "mine")
    assert texts(other_annotator, query) == ["mine"]
    assert counts(other_annotator, query) == {}
    reads = ("outline/", "candidates/", f"history/?image={FIRST_ID}")
    said = [api_of(other_annotator).get(f"/api/queries/{query.pk}/{one}").json() for one in reads]
    assert "comment" not in json.dumps(said)
    judge(query, other_annotator, [0], NO)
    assert texts(other_annotator, query) == ["a toad?", "mine"]
    assert counts(other_annotator, query) == {0: 2}
    record(query, other_annotator, item(0, None))
    assert texts(other_annotator, query) == ["mine"]
    # Reviewers read all of them.
    assert texts(reviewer, query, 1) == ["a frog"]
    assert counts(reviewer, query) == {0: 2, 1: 1}
    page = client_of(reviewer).get(f"/queries/{query.pk}/").content.decode()
    assert page.count("data-open-comments") == 2
    resolve(reviewer, query, True, 1)
    page = client_of(reviewer).get(f"/queries/{query.pk}/").content.decode()
    assert page.count("data-open-comments") == 1


def test_a_reviewer_who_is_to_judge_blindly_reads_them_afterwards(query, annotator, reviewer):
    judge(query, annotator, [0, 1, 2], YES)
    for number in (0, 1, 2, 5):
        write(annotator, query, "look at its eyes", number)
    query_transition(query=query, to_state="submitted", by=reviewer, note="enough")
    shown: dict[str, Any] = {"place": 1, "displayed_at": timezone.now()}
    second = shown | {"kind": "second-opinions", "relevance": YES}
    query.blind_items.create(image_id=FIRST_ID, not_for=annotator, **second)
    query.blind_items.create(image_id=FIRST_ID + 1, only_for=reviewer, **second)
    audit = query.release_audits.model
    key = audit._meta.get_field("release_key").related_model.objects.create(
        key=bytes(32), share=0.1
    )
    drawn = audit.objects.create(
        query=query, number=1, release_key=key, candidate_list=query.current_list, size=12,
        drawn_from=b"", unjudged=9, found=3, seeds=0,
    )  # fmt: skip
    query.blind_items.create(kind="release-audit", audit=drawn, image_id=FIRST_ID + 5, **shown)
    assert counts(reviewer, query) == {2: 1}
    assert [texts(reviewer, query, number) for number in (0, 1, 5)] == [[], [], []]
    page = client_of(reviewer).get(f"/queries/{query.pk}/").content.decode()
    assert page.count("data-open-comments") == 1
    judge(query, reviewer, [1], YES)
    [outcome] = record(query, reviewer, item(0, NO, source="second"))
    assert outcome.status == "stored"
    assert counts(reviewer, query) == {0: 1, 1: 1, 2: 1}
    assert texts(reviewer, query, 0) == ["look at its eyes"]
    # Once the query is decided, nobody judges it blindly any more.
    Query.objects.filter(pk=query.pk).update(state="complete")
    assert texts(reviewer, query, 5) == ["look at its eyes"]


def test_who_is_mentioned_has_it_waiting_until_it_is_read(
    query, annotator, other_annotator, reviewer, researcher, admin
):
    def waiting(one: Any) -> str:
        page = client_of(one).get("/").content.decode()
        return page.partition("data-mentions")[2].partition("</ul>")[0]

    judge(query, annotator, [0], YES)
    text = f"@{other_annotator.username}, @{reviewer.username}. @ann @{researcher.username} a@rita"
    write(annotator, query, text)
    assert set(Mention.objects.values_list("person__username", flat=True)) == {"otto", "rita"}
    assert waiting(annotator) == waiting(admin) == ""
    assert f"#comments-{FIRST_ID}" in waiting(other_annotator)
    assert "elevant" not in waiting(other_annotator)
    # It is named to who hasn't judged the image, and its text is not there.
    assert texts(other_annotator, query) == []
    page = client_of(other_annotator).get(f"/queries/{query.pk}/").content.decode()
    assert f"Image {FIRST_ID}: you are mentioned" in page
    assert waiting(other_annotator) != ""
    judge(query, other_annotator, [0], NO)
    assert texts(other_annotator, query) == [text]
    assert waiting(other_annotator) == ""
    assert waiting(reviewer) != ""
    # A name leaves comments, too.
    person_leave(user=User.objects.get(pk=other_annotator.pk), by=admin)
    left = User.objects.get(pk=other_annotator.pk).username
    assert texts(reviewer, query) == [text.replace("otto", left)]


def test_the_dashboard_of_reviewers_tells_how_far_all_are(
    query, new_query, annotator, reviewer, settings
):
    settings.DUE_DATE = date(2000, 1, 1)
    new_query("a draft")
    judge(query, annotator, range(7), NO)
    record(query, annotator, item(0, YES))
    done = new_query("a newt")
    old = new_query("an eft")
    Query.objects.filter(pk__in=[done.pk, old.pk]).update(state="complete")
    for one in (done, done, old):
        made = QueryTransition.objects.create(query=one, from_state="open", to_state="complete")
    QueryTransition.objects.filter(pk=made.pk).update(made_at=timezone.now().replace(year=2001))
    found = team_progress()
    states = {state: count for state, _, count in found.states}
    assert states == {"complete": 2, "submitted": 0, "open": 1, "draft": 1}
    assert found.completed_per_day == 1 / 14
    assert found.judgments_per_day == 8 / 14
    assert [bar.judgments for bar in found.bars] == [0] * 13 + [8]
    assert (found.bars[-1].y, found.bars[-1].height) == (0, 40)
    page = client_of(reviewer).get("/").content.decode()
    assert "2 queries still to complete take until" in page
    assert "after the date" in page
    assert "data-team-progress" not in client_of(annotator).get("/").content.decode()

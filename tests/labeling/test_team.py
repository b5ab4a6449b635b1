"""Who labels a query: places, assigned people, parts that are paused, handed over or sent back."""

from __future__ import annotations

from typing import Any

import pytest

from annotator.people.services import mails_set
from core.errors import Conflict
from labeling.judging.access import why_not
from labeling.lifecycle.assignments import still_labeling
from labeling.lifecycle.services import query_transition
from labeling.lifecycle.team import (
    part_hand_over,
    part_pause,
    part_resume,
    part_send_back,
    team_set,
)
from labeling.queries.models import Query
from labeling.queries.transitions import TransitionRefused
from labeling.review.my_queries import my_queries, next_query
from labeling.review.overview import overview_of_keys
from tests.conftest import client_of, person
from tests.labeling.conftest import make_images
from tests.labeling.judging import item, judge, record


@pytest.fixture
def query(toy_model, open_query) -> Query:
    make_images(6)
    return open_query()


@pytest.fixture
def third(db) -> Any:
    """A third annotator."""
    return person("olga", "annotator")


def states(query: Query) -> dict[str, str]:
    parts = query.assignments.select_related("annotator")
    return {one.annotator.get_username(): one.state for one in parts}


def set_team(query: Query, by: Any, *people: Any, wanted: int = 0, only: bool = False) -> Query:
    return team_set(query=query, people=people, wanted=wanted, assigned_only=only, by=by)


def hand_in(query: Query, by: Any, note: str = "Enough.", **fields: str) -> Query:
    return query_transition(query=query, to_state="submitted", by=by, note=note, **fields)


def test_as_many_as_are_wanted_label_it_and_all_of_them_submit_it(
    query, annotator, other_annotator, third, reviewer, settings
):
    settings.STOP_STREAK = 2
    query = set_team(query, reviewer, wanted=2)
    judge(query, annotator, [0, 1], "not_relevant")
    query = query_transition(query=query, to_state="submitted", by=annotator)
    # One place is left, which nobody has taken yet.
    assert (query.state, query.assignments.get().rule) == ("open", "streak")
    page = client_of(annotator).get(f"/queries/{query.pk}/").content.decode()
    assert "It waits for one more; then a reviewer looks at disagreements." in page
    judge(query, other_annotator, [0], "not_relevant")
    refused = record(query, third, item(0, "relevant"), item(1, "relevant", age=3600))
    assert [one.detail for one in refused] == ["Enough people label this query already."] * 2
    [row] = overview_of_keys([query.pk], user=third)
    assert not row.can_label
    assert not my_queries(third)
    with pytest.raises(TransitionRefused, match="Enough people"):
        hand_in(query, third, give_up="too_easy")
    assert b'name="state"' not in client_of(third).get(f"/queries/{query.pk}/").content
    # Each labels the whole list: the other's streak is not theirs.
    with pytest.raises(TransitionRefused, match="1 of 2 negatives in a row"):
        query_transition(query=query, to_state="submitted", by=other_annotator)
    assert hand_in(query, other_annotator).state == "submitted"
    late = record(query, third, item(0, "relevant", age=3600))
    assert late[0].code == "closed"
    # Reopened, it is theirs again, and nobody else's.
    query = query_transition(query=query, to_state="open", by=reviewer)
    assert query.assignments.count() == 0
    assert not why_not(other_annotator, query)
    assert why_not(third, query)


def test_only_the_assigned_see_it_and_a_paused_part_holds_nothing_back(
    query, annotator, other_annotator, third, reviewer, other_annotator_api
):
    query = set_team(query, reviewer, annotator, third, wanted=1, only=True)
    address = f"/api/queries/{query.pk}/"
    act = {"image": 1001, "relevance": "relevant", "client_id": "1" * 32}
    assert other_annotator_api.get(address).status_code == 404
    assert other_annotator_api.post(f"{address}judgments/", [act]).status_code == 404
    assert not query.judgments.exists()
    assert still_labeling(query) == ["ann", "olga"]
    judge(query, annotator, [0], "relevant")
    # One hand-in is enough, but the other one is assigned.
    assert hand_in(query, annotator).state == "open"
    for _ in range(2):
        part_pause(query=query, person=third, by=reviewer)
    query.refresh_from_db()
    assert query.state == "submitted"
    with pytest.raises(Conflict, match="The query is submitted"):
        part_resume(query=query, person=third, by=reviewer)
    query = query_transition(query=query, to_state="open", by=reviewer)
    assert states(query) == {"ann": "assigned", "olga": "paused"}
    [paused] = record(query, third, item(1, "relevant"))
    assert paused.detail == "A reviewer has paused your part of this query."
    [before] = record(query, third, item(1, "relevant", age=3600))
    assert before.status == "stored"
    with pytest.raises(TransitionRefused, match="paused"):
        hand_in(query, third)
    part_resume(query=query, person=third, by=reviewer)
    judge(query, third, [2], "relevant")
    # Who is no longer assigned but has begun goes on.
    query = set_team(query, reviewer, annotator)
    assert (states(query), still_labeling(query)) == ({"ann": "assigned"}, ["ann", "olga"])
    assert not why_not(third, query)
    with pytest.raises(Conflict, match="rita is no annotator"):
        set_team(query, reviewer, reviewer)


def test_a_part_is_handed_over_and_sent_back(
    query, annotator, other_annotator, reviewer, reviewer_api
):
    query = set_team(query, reviewer, annotator, wanted=1)
    judge(query, annotator, [0], "relevant")
    with pytest.raises(Conflict, match="hasn't handed in"):
        part_send_back(query=query, person=annotator, note="More.", by=reviewer)
    for _ in range(2):
        part_hand_over(query=query, person=annotator, to=other_annotator, by=reviewer)
    assert states(query) == {"ann": "paused", "otto": "assigned"}
    assert query.judgments.get().annotator == annotator
    judge(query, other_annotator, [0, 1], "relevant")
    assert hand_in(query, other_annotator).state == "submitted"
    with pytest.raises(Conflict, match="Write a note"):
        part_send_back(query=query, person=other_annotator, note=" ", by=reviewer)
    for _ in range(2):
        part_send_back(query=query, person=other_annotator, note="Look at 3.", by=reviewer)
    query.refresh_from_db()
    assert query.state == "open"
    assert query.transitions.filter(note="Look at 3.").count() == 1
    [waiting] = my_queries(other_annotator)
    assert waiting.kind == "sent back"
    assert "Look at 3." in client_of(other_annotator).get("/").content.decode()
    seen = reviewer_api.get(f"/api/queries/{query.pk}/").json()
    assert [(one["annotator"], one["state"]) for one in seen["assignments"]] == [
        ("ann", "paused"),
        ("otto", "sent back"),
    ]
    judge(query, other_annotator, [2], "relevant")
    assert hand_in(query, other_annotator).state == "submitted"
    assert states(query)["otto"] == "handed in"


def test_reviewers_do_it_on_the_page(clients, query, annotator, other_annotator):
    page, team = f"/queries/{query.pk}/", f"/queries/{query.pk}/team/"
    form = {"people": [annotator.pk], "wanted": "2", "assigned_only": "on"}
    assert clients["annotator"].post(team, form).status_code == 403
    shown = clients["reviewer"].post(team, form, follow=True).content.decode()
    assert "2 people label it, each the whole list." in shown
    assert "ann: assigned" in shown
    query.refresh_from_db()
    assert (query.annotators_wanted, query.assigned_only) == (2, True)
    over = {"action": "hand over", "person": annotator.pk}
    assert b"Choose who takes it over." in clients["reviewer"].post(team, over, follow=True).content
    over["to"] = other_annotator.pk
    shown = clients["reviewer"].post(team, over, follow=True).content.decode()
    assert "ann: paused" in shown
    assert "otto: assigned" in shown
    assert b"A reviewer has paused your part" in clients["annotator"].get(page).content
    resume = {"action": "resume", "person": annotator.pk}
    clients["reviewer"].post(team, resume)
    judge(query, annotator, [0], "relevant")
    hand_in(query, annotator)
    back = {"action": "send back", "person": annotator.pk, "note": "Go on."}
    clients["reviewer"].post(team, back)
    assert states(query) == {"ann": "sent back", "otto": "assigned"}
    assert b"Go on." in clients["annotator"].get(page).content
    wrong = clients["reviewer"].post(team, {"wanted": "x"}, follow=True).content
    assert b"Enter a whole number." in wrong


def test_my_queries_say_what_is_left_at_ones_own_pace(
    query, open_query, annotator, other_annotator, reviewer, settings, monkeypatch
):
    settings.STOP_STREAK = 5
    new, mine = open_query("a newt"), open_query("a frog")
    set_team(mine, reviewer, annotator)
    record(query, annotator, item(0, "not_relevant", seconds=30.0))
    record(query, annotator, item(1, "not_relevant", seconds=90.0))
    page = " ".join(client_of(annotator).get("/").content.decode().split())
    assert "2 of 5 negatives in a row, about 3 min" in page
    newest = open_query("a toad")
    monkeypatch.setattr("labeling.review.my_queries.READ_AT_ONCE", 1)
    waiting = [(query, "begun"), (mine, "assigned"), (new, "new"), (newest, "new")]
    found = my_queries(annotator)
    assert [(one.row.query, one.kind) for one in found] == waiting
    with monkeypatch.context() as fewer:
        fewer.setattr("labeling.review.my_queries.BEGUN_SHOWN", 0)
        fewer.setattr("labeling.review.my_queries.NEW_SHOWN", 2)
        assert [(one.row.query, one.kind) for one in my_queries(annotator)] == waiting[1:3]
    # Who searches sees what is found alone.
    page = client_of(annotator).get("/", {"search": "newt"}).content.decode()
    assert "about 3 min" not in page

    query = hand_in(query, annotator)
    assert next_query(annotator) == mine
    page = client_of(annotator).get(f"/queries/{query.pk}/").content.decode()
    assert "Thank you." in page
    assert f'href="/queries/{mine.pk}/label/"' in page


def test_mails_go_out_after_the_commit_to_those_who_want_them(
    query,
    annotator,
    other_annotator,
    reviewer,
    settings,
    mailoutbox,
    django_capture_on_commit_callbacks,
):
    client = client_of(annotator)
    assert b"E-mail address" not in client.get("/account/").content
    settings.EMAIL_URL, settings.SITE_URL = "smtp://localhost", "https://label.example.org/"
    assert b"Enter a valid email" in client.post("/account/mail/", {"email": "ann"}).content
    client.post("/account/mail/", {"email": "ann@example.org", "mails": "on"})
    mails_set(user=other_annotator, email="otto@example.org", mails=False)
    with django_capture_on_commit_callbacks(execute=True):
        for _ in range(2):
            set_team(query, reviewer, annotator, other_annotator)
        assert not mailoutbox
    judge(query, annotator, [0], "relevant")
    hand_in(query, annotator)
    with django_capture_on_commit_callbacks(execute=True):
        part_send_back(query=query, person=annotator, note="Look at 3.", by=reviewer)
    assigned, back = mailoutbox
    assert (assigned.to, assigned.subject) == (
        ["ann@example.org"],
        "Query 1 is assigned to you: a toad",
    )
    assert f"https://label.example.org/queries/{query.pk}/" in assigned.body
    assert "Look at 3." in back.body
    # A server that is away keeps nobody from labeling.
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_PORT = 9
    with django_capture_on_commit_callbacks(execute=True) as sent:
        set_team(query, reviewer)
        set_team(query, reviewer, annotator)
    assert len(sent) == 1

"""The log: what of every app is in it, its filters, and that pages leave nothing out."""

from __future__ import annotations

import csv
import io
from datetime import timedelta
from uuid import uuid4

import pytest
from django.conf import settings
from django.utils import timezone

from annotator.log import selectors, views
from annotator.log.selectors import KINDS, LogFilter, LogRow, log_page, log_rows
from annotator.log.sources import SOURCES
from annotator.models import User
from bench.plans import watched
from labeling.comments.models import Comment
from labeling.comments.services import thread_resolve
from labeling.judging.models import JudgmentEvent
from labeling.queries.models import QueryTransition
from retrieval.flags.models import ImageFlag
from retrieval.flags.services import image_flags_clear, image_restore
from tests.annotator.world import FIRST_ID, IMAGES, World
from tests.conftest import client_of
from tests.labeling.judging import judge

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(world: World) -> World:
    """One of everything, and what the log tells beyond."""
    admin, reviewer = world.people["admin"], world.people["reviewer"]
    judge(world.queries["open"], reviewer, [5, 6, 7], "relevant")
    thread_resolve(query=world.queries["open"], image_id=None, by=reviewer, resolved=True)
    image_flags_clear(image=world.image, by=reviewer)
    image_restore(image=world.image.__class__(pk=FIRST_ID + IMAGES - 1), by=admin)
    pk = world.people["annotator"].pk
    assert client_of(admin).post(f"/people/{pk}/", {"role": "reviewer"}).status_code == 302
    return world


def told(rows: list[LogRow]) -> list[tuple[str, str, str, str]]:
    return [(row.kind, row.person, row.what, row.thing) for row in rows]


def test_the_log_tells_of_every_app_page_by_page(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, following = log_page(LogFilter(), size=1000)
    assert following is None
    assert {row.kind for row in whole} == KINDS.keys()
    assert sorted(whole, key=lambda row: row.order, reverse=True) == whole
    for kind, person, what, thing in (
        ("judgments", "the-reviewer", "3 judgments within the hour", "2: an open query"),
        ("judgments", "the-annotator", "5 judgments within the hour", "2: an open query"),
        ("state", "the-admin", "Open → Submitted", "5: a toad that leaps"),
        ("comment", "the-annotator", "Commented", "2: an open query"),
        ("resolved", "the-reviewer", "Resolved the comments", "2: an open query"),
        ("flag", "the-annotator", "Flagged: Duplicate", f"Image {world.image.pk}"),
        ("decision", "the-reviewer", "Cleared: Duplicate", f"Image {world.image.pk}"),
        ("run", "the-researcher", "Submitted the run", "ours"),
        ("admin", "the-admin", "Role: reviewer", "user the-annotator"),
    ):
        assert (kind, person, what, thing) in told(whole)
    # Whatever a page's size, rows of one moment and few events a page, nothing is lost or doubled.
    moment = timezone.now().replace(minute=0, second=0, microsecond=0)
    QueryTransition.objects.update(made_at=moment)
    ImageFlag.objects.update(raised_at=moment)
    Comment.objects.update(made_at=moment)
    whole = list(log_rows(LogFilter()))
    assert len(set(whole)) == len(whole)
    for enough, size in ((20_000, 1), (20_000, 7), (0, 1), (4, 3), (0, 1000)):
        monkeypatch.setattr(selectors, "EVENTS_READ", enough)
        assert list(log_rows(LogFilter(), size=size)) == whole


def test_events_of_many_hours_are_each_counted_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copies of the events, hours earlier: the table takes new rows, but changes none."""
    begin = timezone.now().replace(minute=59, second=0, microsecond=0) - timedelta(days=3)
    first = JudgmentEvent.objects.order_by("pk")[0]
    for hours in range(0, 9, 2):
        for minutes in (0, 10, 59):
            first.pk, first.client_id = None, uuid4()
            first._state.adding = True
            made_at = begin - timedelta(hours=hours, minutes=minutes)
            field = JudgmentEvent._meta.get_field("made_at")
            monkeypatch.setattr(field, "auto_now_add", False)
            first.made_at = made_at
            first.save()
    wanted = LogFilter(kind="judgments", query=2, until=begin + timedelta(minutes=1))
    for enough in (20_000, 0, 1, 5):
        monkeypatch.setattr(selectors, "EVENTS_READ", enough)
        for size in (1, 2, 50):
            rows = list(log_rows(wanted, size=size))
            assert [row.what.split()[0] for row in rows] == ["3"] * 5
            assert [row.place.at.minute for row in rows] == [0] * 5


def test_one_thread_at_a_time_writes_the_file(world: World) -> None:
    admin = client_of(world.people["admin"])
    with views._WRITING:
        page = admin.get("/log.csv", follow=True)
    assert page.redirect_chain == [("/log/", 302)]
    assert "Try again in a minute." in page.content.decode()
    assert admin.get("/log.csv")["Content-Type"] == "text/csv; charset=utf-8"


def test_filters_and_file_of_the_page(world: World) -> None:
    admin = client_of(world.people["admin"])
    reviewer = world.people["reviewer"].pk

    def lines(address: str) -> list[list[str]]:
        answer = admin.get(f"/log.csv?{address}")
        assert answer.streaming
        text = b"".join(answer.streaming_content).decode()
        return list(csv.reader(io.StringIO(text)))[1:]

    everything = lines("")
    assert len(everything) == len(list(log_rows(LogFilter())))
    assert {one[1] for one in lines(f"person={reviewer}")} == {"the-reviewer"}
    assert len(lines(f"person={reviewer}")) == 3 + ("duplicates" in settings.EXTRAS)
    assert {one[2] for one in lines("kind=comment")} == {"Comments"}
    found = lines("query=2")
    assert {one[4] for one in found} == {"2: an open query"}
    assert {one[2] for one in found} == {
        "Judgments", "Queries written", "Queries’ states", "Comments", "Comments resolved",
    }  # fmt: skip
    today = timezone.localdate()
    assert lines(f"since={today + timedelta(days=1)}") == lines("until=2020-01-01") == []
    assert len(lines(f"since={today - timedelta(days=1)}&until={today}")) == len(everything)
    User.objects.filter(pk=reviewer).update(username="=cmd")
    assert {one[1] for one in lines(f"person={reviewer}")} == {"'=cmd"}
    page = admin.get("/log/?kind=run").content.decode()
    assert f'href="/runs/{world.run.pk}/"' in page
    assert "Duplicate" not in page
    for wrong in (
        "kind=luck",
        "since=soon",
        "person=x",
        "query=99999999999",
        "after=x",
        "after=2026-01-01,0,0",
    ):
        assert admin.get(f"/log/?{wrong}").status_code == 404


def test_a_page_takes_a_statement_for_each_source(world: World) -> None:
    with watched() as seen:
        log_page(LogFilter(), size=100)
    assert len(seen.statements) == 1 + len(SOURCES)

"""Where a reader helps: what people see next, judge blindly or look at again, and no label."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pytest
from django.core.exceptions import PermissionDenied

from core.errors import Conflict
from core.jobs.models import Job
from evaluation.runs.models import Run
from evaluation.runs.services import run_publish
from extras.reading import queues
from extras.reading.models import Calibration, Reader, ReaderPick, ReaderUse, Reading
from extras.reading.queues import MORE_IMAGES, queue_fill, spend
from extras.reading.release_file import ReadImage, read_images, write
from extras.reading.use import threshold_of, use_set
from labeling.audits.selectors import AuditState, audit_state
from labeling.audits.services import audit_draw
from labeling.blind.models import OpinionKey
from labeling.blind.services import blind_show
from labeling.judging.agreement import agreement_rows, patterns
from labeling.judging.blind import SECOND_OPINIONS
from labeling.judging.models import BlindItem, Judgment
from labeling.learning.models import Revision
from labeling.learning.revisions import QueuedImage, revision_problem, revision_queue
from labeling.lifecycle.services import query_transition
from labeling.queries.models import Query
from releases.making.labels import released_judgments
from releases.snapshot.snapshot import Snapshot, SnapshotWriter
from tests.conftest import api_of, client_of
from tests.evaluation.runs import scored_run
from tests.labeling.conftest import FIRST_ID, make_images
from tests.labeling.judging import current_list, item, judge, record
from tests.releases.snapshots import format_files, image, pair
from tests.releases.snapshots import query as released_query
from tests.releases.toy_release import ready_release

pytestmark = pytest.mark.django_db

NO, YES = "not_relevant", "relevant"
OFF: Mapping[str, Any] = {"order": False, "queue": False, "opinions": False, "screening": None}
LEARNED = {"order": "learned", "hand_in_rule": "certificate:0.9 or exhausted"}


@pytest.fixture
def reader(db) -> Reader:
    """One that is calibrated: what it says is so."""
    made = Reader.objects.create(
        name="night reader", family="Owl", entry_point="toy:owl", max_side=100
    )
    said = {"said": [0.0, 1.0], "found": [0.001, 0.999]}
    Calibration.objects.create(reader=made, relevant=90, not_relevant=90, **said)
    return made


def says(reader: Reader, query: Query, chances: Mapping[int, float], prompt: str = "") -> None:
    """Store readings of toy images."""
    Reading.objects.bulk_create(
        Reading(
            reader=reader,
            query=query,
            image_id=FIRST_ID + number,
            probability=chance,
            prompt_sha256=prompt,
        )
        for number, chance in chances.items()
    )


def switch(query: Query, reader: Reader | None, by: Any, **switches: Any) -> ReaderUse | None:
    return use_set(query=query, reader=reader, by=by, **{**OFF, **switches})


def queued(query: Query, user: Any) -> list[int]:
    images = revision_queue(query=Query.objects.get(pk=query.pk), user=user).images
    return list(map(number_of, images))


def number_of(queued: QueuedImage) -> int:
    return queued.image_id - FIRST_ID


def items(query: Query, kind: str = MORE_IMAGES.name, **fields: Any) -> set[int]:
    found = BlindItem.objects.filter(query=query, kind=kind, **fields)
    return {image_id - FIRST_ID for image_id in found.values_list("image", flat=True)}


def submit(query: Query, by: Any) -> Query:
    return query_transition(query=query, to_state="submitted", by=by, note="enough")


def audits(query: Query) -> AuditState:
    return audit_state(Query.objects.select_related("current_list").get(pk=query.pk))


def test_the_order_knows_what_is_read_and_is_verified_afterwards(
    open_query, annotator, admin, reader
):
    make_images(60)
    query = open_query(**LEARNED)
    says(reader, query, {n: 0.9 if n >= 55 else 0.05 for n in range(10, 60)})
    assert queued(query, annotator)[:3] == [0, 1, 2]
    switch(query, reader, admin, order=True)
    ahead = queued(query, annotator)
    assert max(map(ahead.index, range(55, 60))) < min(map(ahead.index, range(40, 55)))
    judge(query, annotator, [55], YES)
    judge(query, annotator, [0, 10], NO)
    first = queued(query, annotator)
    # The last reading of an image counts, and a calibration is another order too.
    says(reader, query, {56: 0.01, 20: 0.99}, prompt="other guidelines")
    second = queued(query, annotator)
    assert second.index(20) < first.index(20)
    assert second.index(56) > first.index(56)
    Calibration.objects.create(
        reader=reader, said=[0.0, 1.0], found=[0.9, 0.91], relevant=90, not_relevant=90
    )
    queued(query, annotator)
    revisions = list(Revision.objects.order_by("pk"))
    assert len({one.feature for one in revisions}) == 4
    assert [revision_problem(one) for one in revisions] == [""] * 5
    Reading.objects.filter(image_id=FIRST_ID + 30).update(probability=1)
    assert "order" in str(revision_problem(revisions[2]))
    switch(query, None, admin)
    assert queued(query, annotator)
    assert Revision.objects.latest("pk").feature == ""


def test_screening_is_refused_where_nothing_bounds_what_it_loses(
    open_query, annotator, admin, reader
):
    make_images(5)
    for fields, why in (
        ({"hand_in_rule": "certificate:0.9"}, "the order that learns"),
        ({"order": "learned", "hand_in_rule": "streak or certificate:0.9"}, "asks for a cert"),
        ({"order": "learned", "hand_in_rule": "exhausted"}, "asks for a cert"),
    ):
        with pytest.raises(Conflict, match=why):
            switch(open_query(**fields), reader, admin, screening=0.98)
    query = open_query(**LEARNED)
    with pytest.raises(PermissionDenied):
        switch(query, reader, annotator, order=True)
    reader.calibrations.all().delete()
    with pytest.raises(Conflict, match="Calibrate the reader first"):
        switch(query, reader, admin, order=True)


def test_what_screening_leaves_out_is_drawn_by_audits_and_counts(
    open_query, annotator, other_annotator, admin, reader
):
    """The certificate is the same function of draws and labels, with screening and without."""
    make_images(80)
    other = open_query("a newt", category="Species ID")
    says(reader, other, {n: 0.3 + n / 100 if n < 40 else 0.2 for n in range(60)})
    judge(other, annotator, range(40), YES)
    judge(other, annotator, range(40, 60), NO)
    query = open_query(**LEARNED)
    # Images 0 to 9 are unread, and the reader thinks little of those from 40 on.
    says(reader, query, {n: 0.6 if n < 40 else 0.01 for n in range(10, 80)})
    judge(query, annotator, [0, 1], YES)
    judge(query, annotator, range(2, 40), NO)
    before = audits(query)
    use = switch(query, reader, admin, screening=0.9)
    assert use is not None
    assert use.screening == threshold_of(reader, 0.9)
    assert 0.01 < float(use.screening or 0) < 0.6
    assert (queued(query, annotator), queued(query, other_annotator)) == ([], [*range(40)])
    screened = revision_queue(query=query, user=other_annotator)
    assert not any(one.learned for one in screened.images)
    assert screened.left_out == [*range(41, 81)]
    after = audits(query)
    assert (after.now, after.rounds, after.unjudged) == (before.now, before.rounds, 40)
    assert (after.left == before.left).all()
    # The draws are of all that is unjudged: here of what was left out alone.
    drawn = audit_draw(query=query, annotator=annotator, count=40).to_judge
    assert {one - FIRST_ID for one in drawn} == {*range(40, 80)}
    found = item(40, YES, source="audit")
    none = [item(n, NO, source="audit") for n in range(41, 80)]
    record(query, annotator, found, *none)
    counted = audits(query)
    assert (counted.found, counted.hits, counted.now.met) == (3, 1, True)
    assert [revision_problem(one) for one in Revision.objects.all()] == ["", ""]
    # A rule that no longer asks for a certificate ends it.
    Query.objects.filter(pk=query.pk).update(hand_in_rule="streak")
    assert {*queued(query, other_annotator)} == {*range(80)}


def test_after_the_stop_people_judge_blindly_what_it_calls_relevant(
    open_query, annotator, other_annotator, admin, reader, monkeypatch
):
    make_images(60)
    query = open_query()
    judge(query, annotator, range(10), YES)
    says(reader, query, {**dict.fromkeys(range(5, 30), 0.6), **dict.fromkeys(range(30, 50), 0.4)})
    switch(query, reader, admin, queue=True)
    with pytest.raises(Conflict, match="isn't submitted"):
        queue_fill(query=query)
    assert submit(query, annotator).state == "submitted"
    assert items(query) == {*range(10, 30)}
    [job] = Job.objects.filter(kind="read_images")
    assert job.params["lists"] == [[current_list(query).pk, 60]]
    assert (job.params["max_cost"], job.created_by) == (None, admin)
    # No reading is a judgment.
    assert Judgment.objects.filter(query=query).count() == 10
    monkeypatch.setattr(queues, "MOST_QUEUED", 22)
    says(reader, query, {51: 0.7, 52: 0.9, 53: 0.8})
    queues.after_reading(queries=Query.objects.filter(pk=query.pk))
    assert queue_fill(query=query) == 0
    assert items(query) == {*range(10, 30), 52, 53}

    api, browser = api_of(other_annotator), client_of(other_annotator)
    address = f"/api/queries/{query.pk}/more-images/draws/"
    shown = api.post(address, {"count": 3}, format="json")
    page = browser.get(f"/queries/{query.pk}/more-images/").content.decode()
    assert (shown.json()["left"], "More images" in page, "night" in page) == (22, True, False)
    number = shown.json()["results"][0]["image"] - FIRST_ID
    [outcome] = record(query, other_annotator, item(number, YES, source="reader"))
    assert outcome.status == "stored"
    assert (
        f"/queries/{query.pk}/reader/" not in browser.get(f"/queries/{query.pk}/").content.decode()
    )
    price = Reader.objects.create(
        name="priced", base_url="http://127.0.0.1", model="m", max_side=9, price_in=1
    )
    # What has a price begins when an admin says so.
    Job.objects.all().delete()
    ReaderUse.objects.update(reader=price)
    Calibration.objects.update(reader=price)
    queues.after_submission(query=query)
    assert not Job.objects.filter(kind="read_images").exists()
    ReaderUse.objects.update(reader=reader)
    Calibration.objects.update(reader=reader)
    queues.after_submission(query=query)
    assert Job.objects.filter(kind="read_images").exists()


def test_doubted_labels_get_an_opinion_besides_the_drawn_and_no_estimate_counts_them(
    open_query, annotator, other_annotator, admin, reader, settings
):
    settings.SECOND_OPINION_POSITIVE = settings.SECOND_OPINION_NEGATIVE = 0.5
    settings.SECOND_OPINION_LEAST, settings.SECOND_OPINION_MOST = 0, 0.2
    settings.SECOND_OPINION_BOUNDARY, settings.GOLD_EVERY = 0, 0
    make_images(100)
    query = open_query(query_id=7)
    OpinionKey.objects.filter(query=query).update(key=b"k" * 32)
    judge(query, annotator, range(20), YES)
    judge(query, annotator, range(20, 60), NO)
    # It differs from 12 labels, surely from 10 of them.
    says(reader, query, {n: 0.05 if n < 5 else 0.95 for n in (*range(5), *range(20, 25), 10, 30)})
    says(reader, query, {10: 0.2, 30: 0.8}, prompt="b")
    switch(query, reader, admin, opinions=True)
    query = submit(query, admin)
    kind = SECOND_OPINIONS.name
    drawn = items(query, kind, probability__isnull=False)
    doubted = items(query, kind, probability=None)
    assert len(drawn) == 12
    assert doubted == {*range(5), *range(20, 25)} - drawn
    assert set(ReaderPick.objects.values_list("how", flat=True)) == {"opinions"}

    blind_show(kind=SECOND_OPINIONS, query=query, annotator=other_annotator, count=30)
    assert items(query, kind, displayed_at__isnull=False) == drawn | doubted
    second = {"source": "second"}
    record(query, other_annotator, *(item(n, YES if n < 20 else NO, **second) for n in drawn))
    agreed = agreement_rows(patterns())
    record(query, other_annotator, *(item(n, YES if n >= 20 else NO, **second) for n in doubted))
    assert len(patterns()) > 2
    assert agreement_rows(patterns()) == agreed
    assert (agreed[0].all.raw, agreed[0].boundary.items) == (1, 0)

    # Later draws have the room that they had without it.
    query = query_transition(query=query, to_state="open", by=admin)
    judge(query, annotator, range(60, 90), NO)
    submit(query, admin)
    assert len(items(query, kind, probability__isnull=False)) > 12


def test_judgments_are_spent_where_the_calibrated_reader_is_least_sure(
    open_query, annotator, other_annotator, reviewer, admin, reader
):
    make_images(400)
    # It says twice what is so: relevant are half of those of whom it says 1.
    rng = np.random.default_rng(7)
    queries = [open_query("a toad"), open_query("a newt")]
    chances = {n: round(float(rng.random()), 6) for n in range(400)}
    for query in queries:
        says(reader, query, chances)
        relevant = [n for n in range(150) if rng.random() < chances[n] / 2]
        judge(query, annotator, relevant, YES)
        judge(query, annotator, [n for n in range(150) if n not in relevant], NO)
        switch(query, reader, admin, queue=True)
    with pytest.raises(Conflict, match="No query"):
        spend(count=10, benchmark=None, by=reviewer)
    for query in queries:
        submit(query, admin)
    before = BlindItem.objects.count()
    # People have judged more since it was calibrated: now it's known to say too much.
    api = api_of(reviewer)
    address = "/api/readers/judgments/"
    answer = api.post(address, {"count": 60}, format="json")
    assert (answer.status_code, answer.json()) == (201, {"images": 60})
    assert BlindItem.objects.count() == before + 60
    curve = Calibration.objects.latest("pk").curve
    assert curve([0.95])[0] == pytest.approx(0.48, abs=0.1)
    spent = ReaderPick.objects.filter(how="spent").values_list("item__query", "item__image")
    rest = readings(reader, queries, without=items_of(queries))
    doubts = {(q, i): abs(float(curve([chances[i - FIRST_ID]])[0]) - 0.5) for q, i in spent}
    assert max(doubts.values()) <= min(abs(curve([p])[0] - 0.5) for _, _, p in rest) + 1e-9
    assert len({query for query, _ in spent}) == 2
    count = Calibration.objects.count()
    assert spend(count=5, benchmark=queries[0].benchmark, by=reviewer) == 5
    assert Calibration.objects.count() == count
    blind_show(kind=MORE_IMAGES, query=queries[0], annotator=other_annotator, count=100)
    waiting = items(queries[0], displayed_at__isnull=False)
    record(queries[0], other_annotator, *(item(n, NO, source="reader") for n in waiting))
    assert len(waiting) >= 20
    spend(count=1, benchmark=None, by=reviewer)
    assert Calibration.objects.count() == count + 1

    assert api.post(address, {"count": 0}, format="json").status_code == 400
    assert api.post(address, {"count": 1, "benchmark": 0}, format="json").status_code == 400
    assert api_of(annotator).post(address, {"count": 1}, format="json").status_code == 403
    own = f"/api/queries/{queries[0].pk}/reader/"
    assert api.get(own).json() == {
        "reader": reader.pk, "order": False, "queue": True, "opinions": False, "recall": None,
        "threshold": None,
    }  # fmt: skip
    assert api.put(own, api.get(own).json(), format="json").status_code == 403
    changed = api_of(admin).put(own, {**api.get(own).json(), "order": True}, format="json")
    assert (changed.status_code, changed.json()["order"]) == (200, True)
    page = client_of(admin).get(f"/queries/{queries[0].pk}/").content.decode()
    assert "The order that learns knows what it says." in page
    form = {"reader": reader.pk, "queue": "true", "recall": ""}
    said = client_of(admin).post(f"/queries/{queries[0].pk}/reader/", form, follow=True)
    assert "Saved." in said.content.decode()
    form = {"count": "3"}
    address = f"/queries/{queries[0].pk}/reader/queue/"
    said = client_of(reviewer).post(address, form, follow=True)
    assert "3 more images wait to be judged." in said.content.decode()
    assert client_of(annotator).post(address, form).status_code == 403


def items_of(queries: Iterable[Query]) -> set[tuple[int, int]]:
    rows = BlindItem.objects.filter(query__in=list(queries), kind=MORE_IMAGES.name)
    return set(rows.values_list("query", "image"))


def readings(
    reader: Reader, queries: Iterable[Query], *, without: set[tuple[int, int]]
) -> list[tuple[int, int, float]]:
    rows = queues.readings_of(reader, [one.pk for one in queries], unjudged_for=MORE_IMAGES.name)
    assert not without & {row[:2] for row in rows}
    return rows


def test_a_release_says_what_came_through_it_and_the_board_what_may_profit(
    tmp_path, var_dir, open_query, annotator, other_annotator, researcher, admin, reader
):
    make_images(40)
    query = open_query(**LEARNED)
    says(reader, query, {n: 0.9 if n >= 30 else 0.1 for n in range(35)})
    switch(query, reader, admin, order=True, queue=True, opinions=True)
    queue = revision_queue(query=query, user=annotator)
    places = {number_of(one): place for place, one in enumerate(queue.images, start=1)}
    learned = {"source": "learned", "revision_id": queue.revision.pk}
    record(query, annotator, item(31, YES, place=places[31], **learned))
    judge(query, annotator, [*range(10), 30], NO)
    query = submit(query, admin)
    blind_show(kind=MORE_IMAGES, query=query, annotator=other_annotator, count=9)
    record(query, other_annotator, item(33, YES, source="reader"))
    query_transition(query=query, to_state="complete", by=admin, note="enough")
    number = query.query_id
    came = [
        ReadImage(number, FIRST_ID + at, "night reader", "Owl", how)
        for at, how in ((31, "order"), (33, "queue"))
    ]
    assert list(read_images()) == came
    # What is released of labels are people's alone.
    judged = {FIRST_ID + at for at in (*range(10), 30, 31, 33)}
    assert {one.image_id for one, _ in released_judgments()} == judged

    release = ready_release(
        queries=[released_query(number, split="val"), released_query(number + 1, split="test")],
        pairs=[pair(number, one.image_id, True) for one in came]
        + [pair(number, FIRST_ID, True), pair(number + 1, FIRST_ID, True)],
        images=[image(FIRST_ID + at) for at in range(40)],
        corpus_images=40,
        test_labels="hidden",
    )
    hidden = ReadImage(number + 1, FIRST_ID, "night reader", "Owl", "queue")
    snapshot = Snapshot(release.snapshot_directory)
    SnapshotWriter(release.snapshot_directory).table("read_images", [*came, hidden])
    files = format_files(write, snapshot, tmp_path)
    assert [(one.name, one.access) for one in files] == [
        ("readers.csv", "labels"), ("readers_val.csv", "open"),
    ]  # fmt: skip
    lines = (tmp_path / "readers_val.csv").read_text().splitlines()
    assert lines[1:] == [f"{number},{one.image_id},night reader,Owl,{one.how}" for one in came]

    first, found = [FIRST_ID, FIRST_ID + 31], [FIRST_ID + 31, FIRST_ID + 33, FIRST_ID + 2]
    for name, order, endpoint in (("a", first, {}), ("b", found, {"model": "acme/owl-7b"})):
        made = scored_run(release, {number: order, number + 1: order}, name=name, endpoint=endpoint)
        run_publish(run=made)
    browser = client_of(researcher)
    board = browser.get(f"/releases/{release.pk}/leaderboard/?split=val").content.decode()
    assert board.count("Reader’s family</span>") == 1
    run = Run.objects.get(name="b")
    assert "Reader’s family</span>" in browser.get(f"/runs/{run.pk}/").content.decode()
    report = browser.get(f"/releases/{release.pk}/bias.json?split=val&measure=AP").json()
    [other] = report["others"]
    assert (other["name"], other["found"], report["relevant"]) == ("reader night reader", 2, 3)
    # Without what it found, only FIRST_ID is relevant.
    assert other["without"]["scores"] == [1, 0]
    page = browser.get(f"/releases/{release.pk}/bias/?split=val").content.decode()
    assert "2 of 3 relevant images came to people through reader night reader" in page

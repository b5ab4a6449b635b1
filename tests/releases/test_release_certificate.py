"""The release's own certificate: made, written, and computed again from its files alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labeling.audits.models import ReleaseKey
from labeling.blind.services import blind_show
from labeling.certificates.bounds import release_missing_at_most, release_recall_at_least
from labeling.judging.blind import RELEASE_AUDIT
from labeling.judging.models import BlindItem
from labeling.lifecycle.services import query_transition
from labeling.queries.models import Query
from releases.making.labels import images_to_audit
from releases.making.services import release_export, release_verify
from releases.models import Release
from releases.snapshot.release_certificate import LEAST_SEEDS, possible_images, release_certificate
from releases.snapshot.snapshot import AuditedImage, ReleasedAudit, Seed, Snapshot
from retrieval.corpus.models import Image
from retrieval.flags.services import image_withdraw
from tests.conftest import api_of, client_of
from tests.labeling.judging import item, judge, record
from tests.releases.snapshots import header, image, judgment, pair, query, write_snapshot
from tests.releases.test_verify_release import run
from tests.releases.toy import make_list, make_query
from tests.retrieval.making import new_image

FIRST_ID = 1001
IMAGES = 60
JUDGED = 20
NO = "not_relevant"
NOTE = "enough"


def written(folder: Path, name: str = "release_certificate.json") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / name).read_text(encoding="utf-8"))
    return found


def verify(directory: Path) -> tuple[int, str]:
    return run("verify_certificates", str(directory))


def handed_in(query_id: int, by: Any, **values: Any) -> Query:
    """A query whose ranked pass is over and whose audit for the release is drawn."""
    made = make_query(query_id, f"query {query_id}", state=Query.State.OPEN, **values)
    make_list(made, [FIRST_ID + n for n in range(IMAGES)])
    judge(made, by, range(JUDGED // 2), "relevant")
    judge(made, by, range(JUDGED // 2, JUDGED), NO)
    return query_transition(query=made, to_state="submitted", by=by, note=NOTE)


def audit(made: Query, by: Any, *relevance: str, seeds: str = "relevant") -> list[int]:
    """Judge what the audit of a query shows, draws so in their order and not relevant then; the
    numbers of the draws."""
    waiting = blind_show(kind=RELEASE_AUDIT, query=made, annotator=by, count=100).to_judge
    draws = set(BlindItem.objects.filter(query=made, only_for=None).values_list("image", flat=True))
    left, numbers = list(relevance), []
    for image_id in waiting:
        given = seeds
        if image_id in draws:
            given = left.pop(0) if left else NO
            numbers.append(image_id - FIRST_ID)
        [stored] = record(made, by, item(image_id - FIRST_ID, given, source="audit"))
        assert stored.status == "stored"
    return numbers


def complete(made: Query, by: Any) -> None:
    query_transition(query=made, to_state="complete", by=by, note=NOTE)


@pytest.fixture(autouse=True)
def shares(settings: Any) -> None:
    settings.RELEASE_AUDIT_SHARE = 0.3
    settings.RELEASE_AUDIT_SEEDS = 0


@pytest.fixture
def corpus(db: None, var_dir: Path) -> None:
    Image.objects.bulk_create(
        new_image(n, id=FIRST_ID + n, file_name=f"toy/{n}.jpg") for n in range(IMAGES)
    )


@pytest.fixture
def queries(corpus: None, annotator: Any, reviewer: Any) -> list[Query]:
    """Of the validation split (1) and of the test split (2), completed with a hit each; (3) with
    one is rejected."""
    made = [handed_in(number, annotator, split="val" if number == 1 else "test")
            for number in (1, 2, 3)]  # fmt: skip
    for one in made:
        audit(one, annotator, "relevant" if one.query_id < 3 else "unsure")
    for one in made[:2]:
        complete(one, reviewer)
    query_transition(query=made[2], to_state="rejected", by=reviewer, reason="too_easy", note=NOTE)
    return made


@pytest.fixture
def export(tmp_path: Path) -> Callable[..., Path]:
    """`export()` makes the next version and writes its files to a folder, which it returns."""

    def make(**options: Any) -> Path:
        folder = tmp_path / f"export-{Release.objects.count() + 1}"
        release_export(name="Birds", directory=folder, new=True, options=options)
        return folder

    return make


@pytest.fixture
def files(queries: list[Query], export: Callable[..., Path]) -> Path:
    """The files of a release with hidden test labels."""
    return export()


class TestMaking:
    def test_bounds_all_queries_together_and_the_rejected_one_stays_in_the_sum(
        self, files: Path, reviewer: Any, researcher: Any
    ) -> None:
        made = written(files)
        drawn = BlindItem.objects.count()
        missing = release_missing_at_most(3, 0.3)
        assert missing is not None
        assert made == {
            "confidence": 0.95, "queries": 2, "queries_left_out": 0, "queries_besides": 1,
            "keys": [{"key": bytes(ReleaseKey.objects.get().key).hex(), "share": 0.3}],
            "fraction": 0.3, "unjudged": 120,
            "judged": BlindItem.objects.filter(query__state="complete").count(),
            "drawn": drawn, "hits": 3, "not_judged": 0,
            "found_at_audit": 20, "found": 22, "seeds": 0, "recognized": 0,
            "sensitivity_at_least": None, "missing_at_most": missing,
            "recall_at_least": 22 / (20 + missing),
        }  # fmt: skip
        val = written(files, "release_certificate_val.json")
        assert (val["queries"], val["queries_besides"], val["hits"], val["found"]) == (1, 0, 1, 11)
        assert release_verify(release=Release.objects.get()) == []
        sheet = (files / "DATASHEET.md").read_text(encoding="utf-8")
        recall = val["recall_at_least"]
        assert f"1 validation query together is at least {int(1000 * recall) / 10:g} %" in sheet
        assert "recognized every relevant image" in sheet
        address = f"/releases/{Release.objects.get().pk}/"
        by_reviewer, by_researcher = (
            client_of(one).get(address).content.decode() for one in (reviewer, researcher)
        )
        assert "recall over 2 queries together" in by_reviewer
        assert "recall over 1 validation query together" in by_researcher
        assert "22 relevant pairs" not in by_researcher

    def test_what_is_found_later_raises_it_and_what_was_judged_else_does_not(
        self, corpus: None, annotator: Any, reviewer: Any, export: Callable[..., Path]
    ) -> None:
        made = handed_in(1, annotator)
        drawn = set(audit(made, annotator))
        others = [n for n in range(JUDGED, IMAGES) if n not in drawn]
        judge(made, reviewer, [others[0], 12], "relevant")
        complete(made, reviewer)
        found = written(export())
        # Of two that the reviewer found one had been judged before: it was known then.
        assert (found["found"], found["found_at_audit"], found["hits"]) == (12, 11, 0)
        Query.objects.filter(pk=made.pk).update(
            state=Query.State.OPEN, left_open="", completion_reason=""
        )
        made.assignments.all().delete()
        record(made, annotator, item(0, None))
        complete(made, reviewer)
        again = written(export())
        # Without a judgment it may still be relevant.
        assert (again["found"], again["found_at_audit"]) == (11, 11)

    def test_unfinished_audits_count_as_hits_and_end_with_the_release(
        self, corpus: None, annotator: Any, reviewer: Any, export: Callable[..., Path]
    ) -> None:
        made, waiting = handed_in(1, annotator), handed_in(2, annotator)
        complete(made, reviewer)
        count = BlindItem.objects.filter(query=made).count()
        folder = export()
        found = written(folder)
        assert (found["hits"], found["not_judged"], found["drawn"]) == (count,) * 3
        # Nobody had seen anything of the other: that it is left out chooses nothing.
        assert found["queries_besides"] == 0
        assert verify(folder)[0] == 0
        assert ReleaseKey.objects.get().ended_at is not None
        complete(waiting, reviewer)
        both = written(export())
        assert both["hits"] == BlindItem.objects.count()
        assert len(both["keys"]) == 1

    def test_before_its_audit_is_done_a_release_says_so_in_place_of_a_recall(
        self, corpus: None, annotator: Any, reviewer: Any, admin: Any, tmp_path: Path
    ) -> None:
        made, admin_api = handed_in(1, annotator), api_of(admin)
        complete(made, reviewer)
        count = BlindItem.objects.count()
        assert images_to_audit() == images_to_audit(made.benchmark) == count > 1
        by_admin = client_of(admin)
        before = " ".join(by_admin.get("/releases/").content.decode().split())
        assert f"{count} images drawn for the certificate wait for a judgment" in before
        by_reviewer = client_of(reviewer).get("/releases/").content.decode()
        assert "drawn for the certificate" not in by_reviewer
        created = admin_api.post("/api/releases/", {"name": "Later", "rerank_model": ""}).json()
        assert created["images_to_audit"] == count
        folder = tmp_path / "export"
        options = ("--new", "--rerank-model", "", "--test-labels", "public")
        _, text = run("export_release", "Birds", str(folder), *options)
        assert f"{count} images drawn for the certificate wait for a judgment" in text
        release = Release.objects.get(name="Birds")
        assert admin_api.get(f"/api/releases/{release.pk}/").json()["images_to_audit"] is None
        # The file keeps its numbers: each image that waits counts as a hit.
        assert written(folder)["recall_at_least"] < 0.5
        said = f"Not audited yet: {count} "
        assert said + "images wait for a judgment" in (folder / "DATASHEET.md").read_text()
        page = " ".join(by_admin.get(f"/releases/{release.pk}/").content.decode().split())
        assert said + "drawn images wait for a judgment, so no recall is stated" in page
        assert "together is at least" not in page
        assert "not known yet" in page
        assert release_verify(release=release) == []

    def test_draws_that_nobody_can_judge_do_not_wait(
        self, corpus: None, annotator: Any, reviewer: Any, export: Callable[..., Path]
    ) -> None:
        made, rejected = handed_in(1, annotator), handed_in(2, annotator)
        audit(made, annotator)
        blind_show(kind=RELEASE_AUDIT, query=rejected, annotator=annotator, count=100)
        complete(made, reviewer)
        query_transition(
            query=rejected, to_state="rejected", by=reviewer, reason="too_easy", note=NOTE
        )
        assert images_to_audit() == 0
        folder = export(test_labels="public")
        assert written(folder)["not_judged"] > 0
        assert "Not audited yet" not in (folder / "DATASHEET.md").read_text()
        page = client_of(reviewer).get(f"/releases/{Release.objects.get().pk}/")
        assert "recall over 1 query together is at least" in page.content.decode()

    def test_queries_without_an_audit_of_their_list_are_left_out(
        self, corpus: None, annotator: Any, reviewer: Any, export: Callable[..., Path]
    ) -> None:
        made, changed = handed_in(1, annotator), handed_in(2, annotator)
        for one in (made, changed):
            audit(one, annotator)
        make_list(changed, [FIRST_ID + n for n in range(5, IMAGES)])
        for one in (made, changed):
            complete(one, reviewer)
        folder = export()
        found = written(folder)
        assert (found["queries"], found["queries_left_out"], found["queries_besides"]) == (1, 1, 1)
        assert verify(folder)[0] == 0

    def test_withdrawn_draws_count_once_displayed(
        self, corpus: None, annotator: Any, reviewer: Any, export: Callable[..., Path]
    ) -> None:
        made = handed_in(1, annotator)
        displayed = blind_show(
            kind=RELEASE_AUDIT, query=made, annotator=annotator, count=1
        ).to_judge
        hidden = BlindItem.objects.filter(displayed_at=None).first()
        assert hidden is not None
        for image_id in (*displayed, hidden.image_id):
            image_withdraw(image=Image(pk=image_id), by=reviewer)
        audit(made, annotator)
        complete(made, reviewer)
        folder = export()
        found = written(folder)
        assert (found["hits"], found["not_judged"]) == (1, 1)
        assert found["drawn"] == BlindItem.objects.count() - 1
        assert "Not checked: the labels of 1 draw" in verify(folder)[1]

    def test_without_audits_there_is_none(
        self, corpus: None, annotator: Any, reviewer: Any, settings: Any,
        export: Callable[..., Path],
    ) -> None:  # fmt: skip
        settings.RELEASE_AUDIT_SHARE = 0.0
        complete(handed_in(1, annotator), reviewer)
        folder = export()
        assert not list(folder.glob("release_certificate*"))
        assert "nothing to check" in verify(folder)[1]


class TestWhatIsLeft:
    """266 pairs could be selected, and the formula alone allows for 298 relevant ones."""

    SELECTABLE = range(101, 367)

    def snapshot(self, folder: Path, judged: int, relevant: int = 0, seeds: int = 0) -> Snapshot:
        """Of the first so many `judged` since, of these so many relevant."""
        labels = [
            (number, "relevant" if place < relevant else NO)
            for place, number in enumerate(self.SELECTABLE[:judged])
        ]
        return write_snapshot(
            folder,
            header=header(),
            queries=[query(7)],
            pairs=[pair(7, number, True) for number in range(1, 6)]
            + [pair(7, number, label == "relevant") for number, label in labels],
            judgments=[judgment(7, number, label) for number, label in labels],
            release_audits=[ReleasedAudit(7, 1, "test", "ab" * 32, 0.01, True, 266, 5)],
            audited=[AuditedImage(7, one, 1, False, "", False) for one in self.SELECTABLE],
            seeds=[Seed(7, number, "relevant") for number in range(1, seeds + 1)],
        )

    @pytest.mark.parametrize(
        ("judged", "relevant", "seeds", "missing", "recall"),
        [
            (0, 0, 0, 266, 5 / 271),
            (100, 0, 0, 166, 5 / 171),
            (100, 3, 0, 169, 8 / 174),
            # Whoever overlooks images may have overlooked those.
            (100, 0, LEAST_SEEDS, 266, 5 / 271),
            (266, 0, 0, 0, 1),
            (266, 4, 0, 4, 1),
            (266, 4, LEAST_SEEDS, 4, 1),
        ],
    )
    def test_no_more_is_missing_than_is_left(
        self, tmp_path: Path, judged: int, relevant: int, seeds: int, missing: int, recall: float
    ) -> None:
        snapshot = self.snapshot(tmp_path, judged, relevant, seeds)
        found = release_certificate(snapshot)
        assert found is not None
        assert (found.missing_at_most, found.recall_at_least) == (missing, recall)
        assert found.complete == (judged == 266)
        # What isn't found yet is among as many images.
        assert found.unknown_at_most == missing - relevant
        [possible] = possible_images(snapshot, found).values()
        assert len(possible) == missing - relevant
        assert set(possible.tolist()) <= set(self.SELECTABLE[0 if seeds else judged :])


def test_a_release_that_is_labeled_whole_says_so(
    corpus: None, annotator: Any, reviewer: Any, export: Callable[..., Path]
) -> None:
    made = handed_in(1, annotator, split="val")
    audit(made, annotator)
    judged = {one - FIRST_ID for one in made.judgments.values_list("image", flat=True)}
    judge(made, reviewer, set(range(IMAGES)) - judged, NO)
    complete(made, reviewer)
    folder = export()
    found = written(folder)
    assert (found["judged"], found["missing_at_most"]) == (found["unjudged"], 0)
    assert found["recall_at_least"] == 1
    assert "labeled completely" in (folder / "DATASHEET.md").read_text(encoding="utf-8")
    page = client_of(reviewer).get(f"/releases/{Release.objects.get().pk}/").content.decode()
    assert "The lists are complete" in page
    assert verify(folder)[0] == 0


class TestSeeds:
    def test_are_judged_as_second_opinions_and_verified(
        self, corpus: None, annotator: Any, other_annotator: Any, reviewer: Any, settings: Any,
        export: Callable[..., Path],
    ) -> None:  # fmt: skip
        settings.RELEASE_AUDIT_SEEDS = 4
        made = handed_in(1, annotator)
        audit(made, other_annotator, seeds=NO)
        complete(made, reviewer)
        folder = export()
        found = written(folder)
        assert (found["seeds"], found["recognized"], found["found"]) == (4, 0, 6)
        assert found["sensitivity_at_least"] is None
        assert verify(folder)[0] == 0

    @pytest.mark.parametrize("count", [LEAST_SEEDS - 1, LEAST_SEEDS])
    def test_lower_the_bound_where_there_are_enough(self, tmp_path: Path, count: int) -> None:
        snapshot = write_snapshot(
            tmp_path,
            header=header(),
            queries=[query(7)],
            pairs=[pair(7, number, True) for number in range(1, 41)],
            images=[image(number) for number in range(1, 41)],
            release_audits=[ReleasedAudit(7, 1, "test", "ab" * 32, 0.1, True, 500, 40)],
            audited=[AuditedImage(7, 50, 1, True, "relevant", False)]
            + [AuditedImage(7, number, 1, False, "", False) for number in range(51, 550)],
            seeds=[Seed(7, number, NO if number == 1 else "relevant")
                   for number in range(1, count + 1)],
        )  # fmt: skip
        found = release_certificate(snapshot)
        assert found is not None
        assert (found.seeds, found.recognized) == (count, count - 1)
        enough = count == LEAST_SEEDS
        assert (found.sensitivity_at_least is not None) == enough
        assert found.recall_at_least == release_recall_at_least(
            found=40, found_at_audit=40, hits=1, fraction=0.1,
            seeds=(count - 1, count) if enough else None,
        )  # fmt: skip


def changed(
    path: Path, column: str, row: Callable[[dict[str, Any]], bool], value: Any
) -> Callable[[], object]:
    """Write another value into the first row of a table for which `row` holds; what undoes it."""
    before = path.read_bytes()
    table = pq.read_table(path)
    rows = table.to_pylist()
    found = next(one for one in rows if row(one))
    found[column] = value(found[column]) if callable(value) else value
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    return lambda: path.write_bytes(before)


def test_verifying_names_what_does_not_follow_and_needs_the_open_files_alone(files: Path) -> None:
    code, said = verify(files)
    assert code == 0, said
    assert "3 audits, which selected" in said
    for table, column, row, value, difference in (
        ("audited", "drawn", lambda one: one["drawn"], False, "selected by the key"),
        ("audited", "label", lambda one: one["label"] == "relevant", NO, "by its judgments"),
        ("audited", "audit", lambda one: one["drawn"], 2, "audit 2 for the release is missing"),
        ("release_audits", "key", lambda one: True, lambda key: key[::-1], "selected by the key"),
        ("release_audits", "share", lambda one: True, 0.9, "selected by the key"),
        ("release_audits", "unjudged", lambda one: True, 3, "could select 3 images"),
        ("release_audits", "covers", lambda one: not one["covers"], True, "not in the release"),
    ):
        undo = changed(files / "snapshot" / f"{table}.parquet", column, row, value)
        code, said = verify(files)
        assert code == 1, (table, column)
        assert difference in said
        undo()
    path = files / "release_certificate.json"
    path.write_text(json.dumps(written(files) | {"recall_at_least": 0.99}), encoding="utf-8")
    code, said = verify(files)
    assert code == 1
    assert "recall_at_least is 0.99, computed again" in said
    path.unlink()
    assert "release_certificate.json is missing" in verify(files)[1]
    # Whoever may not see the test labels verifies what there is of the validation split.
    shutil.rmtree(files / "snapshot")
    code, said = verify(files)
    assert code == 0, said
    assert "1 audit, which selected" in said

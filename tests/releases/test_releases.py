"""Releases: what goes in, byte for byte, made once and never changed."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from core.jobs.models import Job
from core.jobs.services import Slice, job_slice_run
from labeling.queries.models import Query
from releases import selectors
from releases.making import labels, services
from releases.models import Release
from releases.snapshot.release_files import RELEASE_FILES
from tests.releases.toy import make_list, make_query

QUERY_HEADER = ",query_id,query_text,supercategory,category,iconic_group\n"


def contents(directory: Path) -> dict[str, str]:
    """The content of each of INQUIRE's files of a release, and of the judgments."""
    return {name: (directory / name).read_text() for name in RELEASE_FILES}


def every_byte(directory: Path) -> dict[str, bytes]:
    """The content of every file of a release, by its path below the directory."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def export(name: str, directory: Path, **options: Any) -> dict[str, str]:
    """Make a release; the content of its main files."""
    services.release_export(name=name, directory=directory, **options, new=True)
    return contents(directory)


@pytest.fixture
def labeled(query, judge, annotator, other_annotator, reviewer) -> Query:
    """A query with every way to a consensus, and others that must not go into a release."""
    make_list(query, [2, 1, 3])
    judge(query, 2, annotator, "relevant", seconds=1.5)
    judge(query, 1, annotator, "relevant", seconds=2.25)
    judge(query, 1, other_annotator, "not_relevant", seconds=3)
    judge(query, 3, annotator, "not_relevant")
    judge(query, 3, other_annotator, "not_relevant")
    judge(query, 3, reviewer, "relevant", source="search")
    judge(query, 4, annotator, "unsure", source="search")
    make_query(7, 'a "blue" fox', split="val", category="Species ID", iconic_group="")
    for number, state in enumerate(["draft", "open", "submitted", "rejected"], start=40):
        reason = {"reject_reason": "other"} if state == "rejected" else {}
        other = make_query(number, f"a query that is {state}", state=state, **reason)
        judge(other, 5, annotator, "relevant")
    return query


def test_the_files_of_a_release_exactly_with_counts_and_checksums(labeled, var_dir, tmp_path):
    release = services.release_export(name="v1", directory=tmp_path / "out", new=True)
    assert contents(tmp_path / "out") == {
        "inquire_queries_val.csv": QUERY_HEADER + '0,7,"a ""blue"" fox",Species,Species ID,\n',
        "inquire_queries_test.csv": QUERY_HEADER
        + '1,30,two storks on a nest ,Behavior,"Mating, Courtship, Reproduction",Birds\n',
        # Image 1 is a tie, 2 a majority, 3 the reviewer's, 4 a doubt.
        "inquire_annotations.csv": "query_id,image_id,image_path\n"
        '30,2,"train/a, b/2.jpg"\n30,3,"train/a, b/3.jpg"\n',
        "judgments.csv": "query_id,image_id,relevance,annotator,rank,seconds,source\n"
        "30,1,relevant,annotator_1,2,2.250,list\n"
        "30,1,not_relevant,annotator_2,2,3.000,list\n"
        "30,2,relevant,annotator_1,1,1.500,list\n"
        "30,3,not_relevant,annotator_1,3,0.000,list\n"
        "30,3,not_relevant,annotator_2,3,0.000,list\n"
        "30,3,relevant,annotator_3,3,0.000,search\n"
        # Image 4 is not in the list.
        "30,4,unsure,annotator_1,,0.000,search\n",
    }
    counts = (release.val_queries, release.test_queries, release.positives, release.judgments)
    assert counts == (1, 1, 2, 7)
    for entry in release.file_list:
        data = (tmp_path / "out" / entry["name"]).read_bytes()
        assert entry["size"] == len(data)
        assert entry["sha256"] == hashlib.sha256(data).hexdigest()
        assert (release.directory / entry["name"]).read_bytes() == data
    names = [entry["name"] for entry in release.file_list]
    assert set(names) >= {*RELEASE_FILES, "manifest.json", "difference.md", "snapshot/release.json"}
    assert len(set(names)) == len(names)
    assert set(every_byte(tmp_path / "out")) == set(names)
    # Of the same state another release has the same files.
    assert export("v2", tmp_path / "two") == contents(tmp_path / "out")


def test_ranks_are_those_of_the_released_list_in_two_statements(
    query, judge, annotator, django_assert_num_queries
):
    old = make_list(query, [1, 2])
    # Stored: the rank in the list of the query's earlier text, or none at all.
    judge(query, 1, annotator, "relevant", rank=1, candidate_list=old)
    judge(query, 2, annotator, "relevant", rank=2, candidate_list=old)
    judge(query, 3, annotator, "relevant", source="import")
    # A list that was given up since leaves its ranks behind.
    judge(query, 4, annotator, "relevant", rank=9)
    current = make_list(query, [3, 5, 1, 4])
    judge(query, 5, annotator, "relevant", rank=2, candidate_list=current)
    # Another query's list says nothing about this one's.
    make_list(make_query(7, "a fox"), [2])
    # Who the annotators are, and the rows.
    with django_assert_num_queries(2):
        ranks = {row.image_id: row.rank for row, _ in labels.released_judgments()}
    assert ranks == {1: 3, 2: None, 3: 1, 4: 4, 5: 2}


def test_a_release_never_changes_after_it_is_made(labeled, judge, annotator, var_dir, tmp_path):
    before = export("v1", tmp_path / "one")
    judge(labeled, 6, annotator, "relevant")
    services.release_export(name="v1", directory=tmp_path / "two")
    assert contents(tmp_path / "two") == before
    assert export("v2", tmp_path / "three") != before
    release = selectors.release_find(name="v1")
    row = Release.objects.filter(pk=release.pk).values()
    was = row.get()
    for change in (
        {"name": "v1.1"}, {"version": 7}, {"origin": "imported"}, {"header": {}}, {"archive": {}},
        {"options": {"rerank_model": "other"}}, {"difference": {"added": []}}, {"positives": 99},
        {"file_list": [{"name": "other"}]}, {"made_at": None},
    ):  # fmt: skip
        with pytest.raises(IntegrityError, match="is made and never changes"), transaction.atomic():
            row.update(**change)
    assert row.get() == was
    # Only its listed files are found, and none that was changed or lost is given out.
    (release.directory / "secret").write_text("not listed")
    for name in ("secret", "../1/judgments.csv", "../../secret_key", "", "."):
        assert selectors.release_file_path(release=release, name=name) is None
    path = release.directory / "judgments.csv"
    assert selectors.release_file_path(release=release, name="judgments.csv") == path
    path.write_text(path.read_text().replace("unsure", "relevant"))
    with pytest.raises(services.ReleaseUnusable, match="is not as it was made"):
        services.release_export(name="v1", directory=tmp_path / "four")
    path.unlink()
    with pytest.raises(services.ReleaseUnusable, match="is gone"):
        services.release_export(name="v1", directory=tmp_path / "four")
    assert not (tmp_path / "four").exists()


def test_impossible_names_are_refused_and_leave_nothing(db, var_dir, tmp_path):
    for name, expected in (
        ("  ", "cannot be blank"),
        ("x" * 101, "at most 100 characters"),
        ("a\nb", "be printed"),
        ("Birds v2", "by its version or number"),
        ("12", "by its version or number"),
    ):
        with pytest.raises(ValidationError, match=expected):
            services.release_export(name=name, directory=tmp_path / "out", new=True)
        with pytest.raises(ValidationError, match=expected):
            services.release_create(name=name, created_by=None)
    assert not (tmp_path / "out").exists()
    assert not Release.objects.exists()


def test_a_job_makes_a_release_and_a_repeat_changes_nothing(labeled, admin, var_dir):
    release = services.release_create(name=" v1 ", created_by=admin)
    assert (release.name, release.state) == ("v1", "queued")
    assert selectors.release_file_path(release=release, name="judgments.csv") is None
    # What a killed worker left is replaced.
    for name in (str(release.pk), f".{release.pk}.partial-{7:032x}"):
        (release.directory.parent / name).mkdir(parents=True)
        (release.directory.parent / name / "judgments.csv").write_text("half")
    assert job_slice_run(job_id=release.job_id) is Slice.FINISHED
    release = selectors.releases().get()
    steps = release.job.result["steps"]
    assert (release.state, release.job.done, release.job.total) == ("done", len(steps), len(steps))
    assert [step["state"] for step in steps] == ["done"] * len(steps)
    assert steps[0] == {
        "title": "Judgments and their consensus", "state": "done", "done": 7, "total": 7,
    }  # fmt: skip
    made_at, files = release.made_at, every_byte(release.directory)
    assert [path.name for path in release.directory.parent.iterdir()] == [str(release.pk)]
    listed = {entry["name"] for entry in release.file_list}
    assert set(files) == listed | {"v1-v1.zip", "v1-v1-open.zip"}
    Job.objects.filter(pk=release.job_id).update(state=Job.State.QUEUED)
    assert job_slice_run(job_id=release.job_id) is Slice.FINISHED
    release = selectors.releases().get()
    assert (release.made_at, release.job.done) == (made_at, len(steps))
    assert every_byte(release.directory) == files


def test_a_failed_release_can_be_begun_again_under_its_name(labeled, admin, var_dir):
    release = services.release_create(name="v1", created_by=admin)
    with pytest.raises(ValidationError, match="already being made"):
        services.release_create(name="v1", created_by=admin)
    # A file where the releases' folder should be.
    var_dir.mkdir()
    (var_dir / "releases").write_text("in the way")
    assert job_slice_run(job_id=release.job_id) is Slice.FAILED
    assert selectors.releases().get().state == "failed"
    (var_dir / "releases").unlink()
    again = services.release_create(name="v1", created_by=admin, options={"include_images": True})
    assert (again.pk, again.job_id, again.version) == (release.pk, release.job_id, 1)
    assert again.options["include_images"] is True
    assert job_slice_run(job_id=again.job_id) is Slice.FINISHED
    assert selectors.releases().get().state == "done"


@pytest.mark.django_db(transaction=True)
def test_an_export_sees_one_moment_and_streams(labeled, judge, annotator, var_dir, tmp_path):
    with CaptureQueriesContext(connection) as captured:
        services.release_export(name="v1", directory=tmp_path / "out", new=True)
    statements = [entry["sql"] for entry in captured.captured_queries]
    begin = statements.index("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    reads = [
        number
        for number, sql in enumerate(statements)
        if sql.startswith("DECLARE") and "labeling_" in sql
    ]
    # Judgments with their votes, and queries come through server-side cursors, after the snapshot
    # began, in one transaction.
    assert len(reads) == 2
    corpus = next(number for number, sql in enumerate(statements) if "retrieval_species s" in sql)
    commit = statements.index("COMMIT", begin)
    assert begin < min(reads) < max(reads) < corpus < commit


def test_pay_is_an_amount_and_a_currency_and_stands_in_the_datasheet(labeled, var_dir, tmp_path):
    for pay in ("much", "15,50 USD", "-1 USD", "15.50"):
        with pytest.raises(ValidationError, match="an amount and a currency"):
            export("v1", tmp_path / "one", options={"pay_per_hour": pay})
    options = {"pay_per_hour": " 15.50 USD ", "test_labels": "public"}
    export("v1", tmp_path / "one", options=options)
    assert Release.objects.get().options["pay_per_hour"] == "15.50 USD"
    sheet = (tmp_path / "one/DATASHEET.md").read_text()
    assert "An hour was paid with 15.50 USD; the 0.1 minutes of active time below come to" in sheet
    assert services.release_verify(release=Release.objects.get()) == []

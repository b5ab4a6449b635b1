"""Existing benchmarks become releases; INQUIRE's own files come out as they went in."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command

from core.jobs.models import Job
from core.jobs.services import Slice, job_slice_run
from evaluation.reranking.services import RerankChoice, rerank_checked
from evaluation.runs.baselines import baselines_begin
from evaluation.runs.corpus import in_corpus
from evaluation.runs.models import Run
from labeling.lifecycle.splitting import queries_split
from labeling.queries.files import read_queries
from labeling.queries.models import Query
from releases import selectors
from releases.importing.import_snapshot import CONSENSUS_RULE, QRELS_RULE, ImageMatches
from releases.importing.layout_files import LayoutRefused
from releases.importing.services import benchmark_import, benchmark_import_begin
from releases.making.services import release_export, release_verify
from releases.models import Release
from releases.snapshot.release_files import ANNOTATIONS_FILE, QUERY_FILES
from releases.snapshot.snapshot import Snapshot
from retrieval.corpus.models import Image
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from tests.conftest import client_of
from tests.evaluation.runs import scored_run
from tests.labeling.conftest import run_jobs
from tests.releases.layouts import ANNOTATIONS, CORPUS, write_beir, write_layout
from tests.retrieval.making import embed_rows, jpeg
from tests.toy_model import toy_model as toy_spec

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("var_dir")]


def snapshot_of(release: Release) -> Snapshot:
    return Snapshot(release.directory / "snapshot")


def layout(tmp_path: Path, **rows: Any) -> Path:
    return write_layout(tmp_path / "toy", **rows)


def same_files(directory: Path, release: Release) -> None:
    """Asserts that INQUIRE's files of a release are those of a directory, byte for byte."""
    for name in (*QUERY_FILES.values(), ANNOTATIONS_FILE):
        assert (release.directory / name).read_bytes() == (directory / name).read_bytes(), name


def test_a_benchmark_becomes_a_release(tmp_path: Path, admin: Any) -> None:
    found = benchmark_import(directory=layout(tmp_path), created_by=admin)
    release = found.release
    assert (str(release), release.origin, release.created_by) == ("toy v1", "imported", admin)
    assert (release.val_queries, release.test_queries, release.positives) == (1, 1, 3)
    assert (found.rows, found.duplicates, found.images, found.matches.here) == (3, 0, 2, 0)
    header = snapshot_of(release).header
    assert (header.origin, header.corpus_images, header.made_by) == ("imported", 0, "ada")
    assert header.consensus == CONSENSUS_RULE
    assert release_verify(release=release) == []
    assert not Query.objects.exists()
    assert "toy" in client_of(admin).get("/releases/").content.decode()


def test_annotations_come_out_in_the_order_in_which_they_came_in(tmp_path: Path) -> None:
    rows = ("9,5,a/5.jpg", "7,4,a/4.jpg", "9,2,a/2.jpg", "7,1,a/1.jpg")
    directory = layout(tmp_path, annotations=rows)
    release = benchmark_import(directory=directory, test_labels="hidden").release
    written = (release.directory / ANNOTATIONS_FILE).read_text()
    assert written == (directory / ANNOTATIONS_FILE).read_text()
    val = (release.directory / "inquire_annotations_val.csv").read_text().splitlines()
    assert val[1:] == [rows[1], rows[3]]
    # The numbers of the rows that researchers may have don't tell how many lie between.
    assert {one.image_id: one.row for one in snapshot_of(release).open.pairs()} == {4: 0, 1: 1}
    assert release_verify(release=release) == []


def test_what_the_corpus_knows_of_its_images_is_released(
    images: list[Image], tmp_path: Path
) -> None:
    Image.objects.filter(pk=1).update(license="cc-by", latitude=1.5, longitude=2.5)
    rows = ['7,1,"inat/train/a, b/1.jpg"', '7,2,"a, b/2.jpg"', "7,99,a/99.jpg"]
    found = benchmark_import(directory=layout(tmp_path, annotations=rows)).matches
    assert found == ImageMatches(by_path=2, absent=1)
    release = Release.objects.get()
    one, two, unknown = snapshot_of(release).images()
    assert (one.license, one.latitude, one.sha256) == ("cc-by", 1.5, f"{1:064x}")
    assert two.sha256 == f"{2:064x}"
    # The benchmark's own path stays.
    assert one.file_name == "inat/train/a, b/1.jpg"
    assert (unknown.image_id, unknown.sha256, unknown.width) == (99, "", 0)
    assert snapshot_of(release).header.corpus_images == 0


def test_strangers_with_the_ids_of_a_benchmark_stay_out_of_it(
    images: list[Image], admin: Any, tmp_path: Path, capsys: Any
) -> None:
    model = embedding_model_get_or_create(name=toy_spec(), dimension=2)
    embed_rows(model, {number: [7 - number, number] for number in range(1, 7)})
    # Captions as queries, and ids that the corpus here has too: two of three.
    directory = layout(tmp_path, annotations=["7,1", "9,6", "9,391895"], header="query_id,image_id")
    call_command("import_benchmark", str(directory), "--name", "Captions")
    assert (
        "Images of the corpus: 0 matched by path, 0 by data set name; not in the corpus: 3\n"
        "2 of the ids that aren't in the corpus are also ids of images here."
    ) in capsys.readouterr().out
    release = selectors.release_named("Captions")
    assert {one.sha256 for one in snapshot_of(release).images()} == {""}
    # Every id may be in a run, and no page shows the stranger.
    assert in_corpus(release, np.array([1, 5, 391895, 7])).all()
    run = scored_run(release, {9: [6, 391895, 1]}, owner=admin)
    page = client_of(admin).get(f"/runs/{run.pk}/queries/9/").content.decode()
    assert "391895" in page
    assert "-thumb.jpg" not in page
    baselines = baselines_begin(release=release)
    assert job_slice_run(job_id=baselines.pk) is Slice.FINISHED
    assert not Run.objects.filter(kind__in=[Run.Kind.MODEL, Run.Kind.RANDOM]).exists()
    with pytest.raises(ValidationError, match="The images of this release are not here"):
        rerank_checked(RerankChoice(release, run, 2, embedding_model=model))
    with pytest.raises(ValidationError, match="3 of the benchmark's 3 images aren't in the corpus"):
        benchmark_import(directory=directory, rerank_model=model.name)


def test_a_data_set_that_the_user_names_says_whose_the_ids_are(
    images: list[Image], admin: Any, tmp_path: Path, capsys: Any
) -> None:
    Image.objects.filter(pk=2).update(dataset="other")
    Image.objects.filter(pk=3).update(source_id="x")
    rows = ["7,1,", "7,2,", "7,3,", '7,4,"train/a, b/4.jpg"', "7,5,x/5.jpg", "7,6,x/other.jpg"]
    directory = str(layout(tmp_path, annotations=rows))
    call_command("import_benchmark", directory, "--dataset", "toy")
    assert "1 matched by path, 2 by data set name; not in the corpus: 3" in capsys.readouterr().out
    snapshot = snapshot_of(Release.objects.get())
    assert snapshot.header.matched == {"path": 1, "data_set": 2, "absent": 3}
    page = client_of(admin).get(f"/releases/{Release.objects.get().pk}/").content.decode()
    assert "1 of the corpus by path, 2 by data set name, 3 not in the corpus" in page
    known = [one.image_id for one in snapshot.images() if one.sha256]
    assert known == [1, 4, 5]
    with pytest.raises(CommandError, match="from a data set called 'tory'"):
        call_command("import_benchmark", directory, "--dataset", "tory")
    # Files without paths get those of the corpus.
    rows = ["7,1", "9,6"]
    write_layout(tmp_path / "bare", annotations=rows, header="query_id,image_id")
    release = benchmark_import(directory=tmp_path / "bare", data_set="toy").release
    header = snapshot_of(release).header
    assert (header.corpus_images, len(header.corpus_fingerprint)) == (6, 64)
    text = (release.directory / ANNOTATIONS_FILE).read_text()
    assert text == ANNOTATIONS + '\n7,1,"train/a, b/1.jpg"\n9,6,"train/a, b/6.jpg"\n'


def test_images_are_brought_in_under_their_ids(images: list[Image], tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    for number in (1, 50, 51):
        (folder / "a").mkdir(parents=True, exist_ok=True)
        (folder / f"a/{number}.jpg").write_bytes(jpeg(size=(40 + number, 30)))
    rows = [
        "7,1,a/1.jpg",
        '7,2,"train/a, b/2.jpg"',
        "7,50,a/50.jpg",
        "9,51,a/51.jpg",
        "9,52,a/52.jpg",
        "9,53,../53.jpg",
    ]
    refused: list[Any] = []
    found = benchmark_import(
        directory=layout(tmp_path, annotations=rows), images=folder, on_refusal=refused.append
    )
    assert found.added == 2
    assert sorted(one.record for one in refused) == ["image 52", "image 53"]
    assert Image.objects.get(pk=50).dataset == "toy"
    # Image 1 is the corpus's own, and stays it.
    assert Image.objects.get(pk=1).sha256 == f"{1:064x}"
    sizes = {one.image_id: one.width for one in snapshot_of(found.release).images()}
    assert sizes == {1: 0, 2: 10, 50: 90, 51: 91, 52: 0, 53: 0}
    again = benchmark_import(directory=tmp_path / "toy", images=folder)
    assert (again.added, again.release.version, again.matches.by_path) == (0, 2, 3)


def test_a_name_gets_its_next_version_or_is_refused(tmp_path: Path) -> None:
    first = benchmark_import(directory=layout(tmp_path)).release
    second = benchmark_import(directory=layout(tmp_path, annotations=["7,1,a/1.jpg"])).release
    assert (second.version, second.previous) == (2, first)
    assert second.difference
    with pytest.raises(ValidationError, match="'toy' is here already"):
        benchmark_import(directory=tmp_path / "toy", new_only=True)
    Release.objects.create(name="made", made_at="2026-05-01T00:00:00Z", file_list=[{}])
    with pytest.raises(ValidationError, match="'made' is made here; choose another name"):
        benchmark_import(directory=tmp_path / "toy", name="made")


def test_wrong_files_leave_nothing(tmp_path: Path) -> None:
    directory = layout(tmp_path, annotations=["7,1,a/1.jpg", "8,1,a/1.jpg"])
    for begin in (benchmark_import, benchmark_import_begin):
        with pytest.raises(LayoutRefused, match="line 3, query_id: '8' is in no query file"):
            begin(directory=directory)
    assert not Release.objects.exists()
    assert not Job.objects.exists()


def test_a_release_of_this_application_comes_in_again(
    query: Query, judge: Any, annotator: Any, tmp_path: Path
) -> None:
    judge(query, 3, annotator, "relevant")
    judge(query, 2, annotator, "not_relevant")
    made = release_export(name="ours", directory=tmp_path / "ours", new=True)
    found = benchmark_import(directory=tmp_path / "ours", name="ours again")
    # The image that was judged as not relevant is named too.
    assert (found.rows, found.images, found.matches.by_path) == (1, 2, 2)
    same_files(made.directory, found.release)


class TestInquire:
    """INQUIRE's own queries, with annotations made for the test."""

    @pytest.fixture
    def inquire(self, shared_dir: Any, tmp_path: Path) -> Path:
        folder = tmp_path / "inquire"
        folder.mkdir()
        for name in QUERY_FILES.values():
            (folder / name).write_bytes((shared_dir / "inquire" / name).read_bytes())
        return folder

    def annotate(self, folder: Path, rows: int) -> None:
        """Relevant pairs in the order of the authors' file: by query id and image id."""
        ids = []
        for name in QUERY_FILES.values():
            with (folder / name).open("rb") as file:
                ids += [row.query_id for row in read_queries(file, name=name)[0]]
        drawn = random.Random(7)
        pairs = {(drawn.choice(ids), drawn.randrange(5_000_000)) for _ in range(rows)}
        lines = (
            f"{one},{image},train/{image % 10_000:05}/{image}.jpg" for one, image in sorted(pairs)
        )
        (folder / ANNOTATIONS_FILE).write_text("\n".join((ANNOTATIONS, *lines, "")))

    def test_what_goes_in_comes_out_byte_for_byte_with_its_quirks(self, inquire: Path) -> None:
        self.annotate(inquire, 3000)
        release = benchmark_import(directory=inquire).release
        assert (release.val_queries, release.test_queries) == (50, 200)
        same_files(inquire, release)
        queries = snapshot_of(release).queries
        # A blank at the end, quotes inside, no iconic group.
        assert queries[161].text == "red fox showing signs of sarcoptic mange "
        assert '"blue jeans"' in queries[124].text
        assert [one.query_id for one in queries.values() if not one.iconic_group] == [29, 37]
        # The unnamed column counts all queries by id, and the validation file isn't in that order.
        assert [one.index for one in queries.values()] == list(range(250))
        val = [one.row for one in queries.values() if one.split == "val"]
        assert val != sorted(val)

    def test_labeled_here_the_queries_come_out_with_their_splits(
        self, inquire: Path, tmp_path: Path
    ) -> None:
        call_command("import_queries", *(str(inquire / name) for name in QUERY_FILES.values()))
        Query.objects.update(state=Query.State.COMPLETE)
        # Their splits are settled by the files, so a draw leaves them.
        queries_split(val_share=0.5, seed=0, stratify=True, released={})
        release_export(name="as released", directory=tmp_path / "out", new=True)
        for split, name in QUERY_FILES.items():
            went_in, came_out = (
                (folder / name).read_bytes() for folder in (inquire, tmp_path / "out")
            )
            # By id: of the validation file, the order isn't kept among the queries here.
            assert sorted(came_out.split(b"\n")) == sorted(went_in.split(b"\n"))
            assert split == "val" or came_out == went_in
        queries_split(val_share=0.2, seed=7, stratify=True, redraw=True, released={})
        drawn = release_export(name="drawn", directory=tmp_path / "drawn", new=True)
        assert (drawn.val_queries, drawn.test_queries) == (50, 200)
        # A draw goes through an import unchanged.
        (tmp_path / "drawn" / ANNOTATIONS_FILE).write_text(ANNOTATIONS + "\n3,1,a.jpg\n")
        again = benchmark_import(directory=tmp_path / "drawn", name="drawn again").release
        same_files(tmp_path / "drawn", again)


def test_the_command_says_what_it_found_and_what_is_wrong(
    images: list[Image], tmp_path: Path, capsys: Any
) -> None:
    rows = ['7,1,"a, b/1.jpg"', '7,1,"a, b/1.jpg"', "9,2,a/x.jpg", "9,8,a/8.jpg"]
    call_command("import_benchmark", str(layout(tmp_path, annotations=rows)), "--name", "Toy")
    out = capsys.readouterr().out
    assert "Toy v1: 1 val and 1 test queries, 3 relevant pairs (4 rows, 1 of them " in out
    assert "1 matched by path, 0 by data set name; not in the corpus: 2" in out
    assert "1 of the ids that aren't in the corpus are also ids of images here" in out
    directory = str(layout(tmp_path, annotations=["7,x,a.jpg"]))
    with pytest.raises(CommandError, match="line 2, image_id: 'x' is not a whole number"):
        call_command("import_benchmark", directory)
    with pytest.raises(CommandError, match="--images takes a folder or 'none'"):
        call_command("import_benchmark", directory, "--images", "nowhere")
    layout(tmp_path)
    with pytest.raises(CommandError, match="is here already"):
        call_command("import_benchmark", directory, "--name", "Toy", "--replace-nothing")
    assert Release.objects.count() == 1
    (tmp_path / "photos").mkdir()
    layout(tmp_path, annotations=["7,50,a/50.jpg"])
    call_command("import_benchmark", directory, "--images", str(tmp_path / "photos"))
    assert "refused a/50.jpg: image 50: file" in capsys.readouterr().out


def test_a_job_imports_and_files_that_are_gone_fail_it_in_words(
    tmp_path: Path, admin: Any, capsys: Any
) -> None:
    directory = layout(tmp_path)
    release = benchmark_import_begin(directory=directory, created_by=admin)
    (directory / ANNOTATIONS_FILE).unlink()
    job_slice_run(job_id=release.job_id)
    release.refresh_from_db()
    assert (release.state, release.files_ready) == ("failed", False)
    assert "no file of annotations" in release.job.error
    # Importing again takes the same version up.
    call_command("import_benchmark", str(layout(tmp_path)), "--background")
    assert "toy v1 is being imported: job" in capsys.readouterr().out
    run_jobs()
    again = Release.objects.get()
    assert (again.pk, again.positives, again.state) == (release.pk, 3, "done")


class TestBeir:
    """Folders in BEIR's layout."""

    def test_a_folder_becomes_a_release_that_says_what_it_cant_know(
        self, images: list[Image], tmp_path: Path
    ) -> None:
        corpus = [*CORPUS[:2], {"_id": "3", "metadata": {"file_name": "train/a, b/3.jpg"}}]
        folder = write_beir(tmp_path / "owls", **{"corpus.jsonl": corpus})
        found = benchmark_import(directory=folder)
        release, snapshot = found.release, snapshot_of(found.release)
        assert (str(release), release.val_queries, release.test_queries) == ("owls v1", 1, 1)
        assert (release.positives, found.matches.by_path, found.matches.absent) == (3, 1, 2)
        fox, owl = snapshot.queries.values()
        assert (fox.split, fox.supercategory, fox.category) == ("val", "not known", "not known")
        assert (owl.split, owl.text, owl.category, owl.iconic_group) == (
            "test", "an owl ", "Owls", None,
        )  # fmt: skip
        # The test split names relevant images alone, so not every judged one is known.
        assert (snapshot.header.negatives_known, snapshot.header.consensus) == (False, QRELS_RULE)
        assert [(one.image_id, one.relevant) for one in snapshot.pairs()] == [
            (1, True), (2, False), (1, True), (3, True),
        ]  # fmt: skip
        assert release_verify(release=release) == []
        for name in ("qrels/dev.tsv", "corpus.jsonl"):
            (folder / name).unlink()
        snapshot = snapshot_of(benchmark_import(directory=folder).release)
        # The query that no qrels name is left out.
        assert list(snapshot.queries) == [9]
        assert snapshot.header.consensus == CONSENSUS_RULE

    def test_a_refused_folder_leaves_nothing_and_says_who_takes_texts(self, tmp_path: Path) -> None:
        folder = write_beir(tmp_path, **{"qrels/dev.tsv": ["7\ta/fox\t1"]})
        with pytest.raises(CommandError, match="`evaluate` takes any text"):
            call_command("import_benchmark", str(folder))
        assert not Release.objects.exists()

"""A release made here comes in again whole: judgments, fixed lists, what the corpus tells."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.utils import timezone

from evaluation.runs.selectors import release_data
from labeling.queries.models import Query
from releases.importing.import_snapshot import JUDGED_RULE, UNNAMED_MODEL
from releases.importing.layout_files import LayoutRefused
from releases.importing.services import benchmark_import
from releases.making.services import release_export
from releases.models import Release
from releases.snapshot.snapshot import Pair, Snapshot
from releases.statistics.numbers import release_statistics
from retrieval.corpus.models import Image
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.models import Embedding, EmbeddingModel
from tests.releases.conftest import World, judge_maker, make_images
from tests.releases.layouts import write_layout
from tests.releases.toy import WIDTH, make_list, make_query

pytestmark = pytest.mark.django_db

RERANK = "query_id,rank,inat24_image_id,clip_score,relevant,judged,inat24_file_name"
MORE = "inat24_species_name,date,license,rights_holder,latitude,longitude,location_uncertainty"


@pytest.fixture(scope="module")
def model(world: World, tiny_model: str) -> EmbeddingModel:
    """The toy's images, embedded."""
    images = make_images()
    model = embedding_model_get_or_create(name=tiny_model)
    vectors = np.random.default_rng(5).normal(size=(len(images), WIDTH))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    Embedding.objects.bulk_create(
        Embedding(model=model, image=image, vector=vector.tolist(), created_at=timezone.now())
        for image, vector in zip(images, vectors, strict=True)
    )
    Image.objects.filter(pk=2).update(
        license="cc-by", rights_holder='O. "Owl", Ltd', latitude=-1.25, longitude=0.1
    )
    return model


@pytest.fixture(scope="module")
def made(world: World, model: EmbeddingModel) -> Path:
    """A release of two queries, both fit for re-ranking, with everything that files can tell."""
    judge, annotator, reviewer = judge_maker(), world.person("annotator"), world.person("reviewer")
    guidelines = "Two or more, <not> one & only.\nOn the nest."
    stork = make_query(
        30,
        "two storks on a nest ",
        split="val",
        guidelines=guidelines,
        left_open="1 image is unsure.",
        completion_reason="Nobody can tell.",
    )
    fox = make_query(31, 'a fox, "red"')
    make_list(stork, [1, 2, 3])
    for query, image, user, relevance in (
        (stork, 1, annotator, "relevant"),
        (stork, 2, annotator, "not_relevant"),
        (stork, 2, reviewer, "relevant"),
        (stork, 3, annotator, "relevant"),
        (stork, 3, reviewer, "unsure"),
        (fox, 5, annotator, "relevant"),
        (fox, 6, reviewer, "not_relevant"),
    ):
        judge(query, image, user, relevance, seconds=1.25, source="list")
    for image, source in zip((1, 2, 3), ("similar", "search", "import"), strict=True):
        judge(fox, image, annotator, "not_relevant", seconds=1.25, source=source)
    folder = world.folder / "ours"
    release_export(name="ours", directory=folder, options={"rerank_model": model.name}, new=True)
    return folder


@pytest.fixture
def exported(made: Path, tmp_path: Path) -> Path:
    """Its files, which may be changed."""
    return Path(shutil.copytree(made, tmp_path / "ours"))


def same(folder: Path, release: Release) -> None:
    """Asserts that the files of the tasks are the same, byte for byte."""
    chosen = ("inquire_*.csv", "judgments*.csv", "trec/*", "inquire_rerank/*", "left_open*.csv")
    names = [path.relative_to(folder) for one in chosen for path in sorted(folder.glob(one))]
    assert len(names) >= 16
    for name in names:
        assert (release.directory / name).read_bytes() == (folder / name).read_bytes(), name


def snapshot_of(release: Release) -> Snapshot:
    return Snapshot(release.snapshot_directory)


def test_its_files_come_out_as_they_went_in(exported: Path, model: EmbeddingModel) -> None:
    rows = (exported / "inquire_rerank/val.csv").read_text().splitlines()
    assert len(rows) == 7
    release = benchmark_import(directory=exported, name="again").release
    same(exported, release)
    header = snapshot_of(release).header
    assert (header.rerank_model, header.annotators) == (model.name, 2)
    assert header.consensus == JUDGED_RULE
    assert set(release_data(release).qrels_of("rerank").query_ids.tolist()) == {30, 31}
    mine, theirs = (
        release_statistics(snapshot_of(one)) for one in (release, Release.objects.get(name="ours"))
    )
    assert mine["seconds"] == theirs["seconds"]
    assert mine["seconds"]["total"] > 0
    assert mine["pairs"] == theirs["pairs"]
    # A reviewer's word against a majority is no disagreement: of image 2, and the other way of 3.
    pairs = {(one.query_id, one.image_id): one for one in snapshot_of(release).pairs()}
    assert pairs[30, 2] == Pair(query_id=30, image_id=2, relevant=True, votes=2, rank=2)
    assert pairs[30, 3] == Pair(query_id=30, image_id=3, relevant=False, votes=2, rank=3)
    # Nothing is labeled by it, and what went out comes in again, also where the corpus is another.
    assert Query.objects.count() == 2
    other = benchmark_import(directory=release.directory, name="third", use_corpus=False).release
    same(exported, other)
    known = {one.image_id: one.license for one in snapshot_of(other).images()}
    assert known[2] == "cc-by"


def test_a_disagreement_is_named_by_file_and_line(exported: Path) -> None:
    def change(name: str, old: str, new: str) -> str:
        path = exported / name
        text = path.read_text()
        assert text.count(old) == 1
        path.write_text(text.replace(old, new))
        with pytest.raises(LayoutRefused) as refused:
            benchmark_import(directory=exported, name="again")
        path.write_text(text)
        return str(refused.value)

    judgments = (exported / "judgments.csv").read_text().splitlines()
    line = judgments.index("31,5,relevant,annotator_1,,1.250,list") + 1
    assert (
        f"judgments.csv, line {line}, relevance: image 5 of query 31 is not relevant by its "
        "judgments, but is in the annotations"
    ) in change("judgments.csv", "31,5,relevant", "31,5,unsure")
    line = judgments.index("31,6,not_relevant,annotator_2,,1.250,list") + 1
    assert (
        f"judgments.csv, line {line}, relevance: image 6 of query 31 is relevant by its "
        "judgments, but isn't in the annotations"
    ) in change("judgments.csv", "31,6,not_relevant", "31,6,relevant")
    assert (
        "inquire_annotations.csv, line 4, image_id: image 5 of query 31 has no judgment"
    ) in change("judgments.csv", "31,5,relevant,annotator_1,,1.250,list\n", "")
    assert "relevance: 'maybe' is not one of not_relevant, relevant, unsure" in change(
        "judgments.csv", "31,5,relevant", "31,5,maybe"
    )
    assert "annotator: annotator_2 judged this pair on a line before" in change(
        "judgments.csv", "30,2,not_relevant,annotator_1", "30,2,relevant,annotator_2"
    )
    assert "query_id: '99' is in no query file" in change("judgments.csv", "31,6,", "99,6,")
    assert not Release.objects.filter(name="again").exists()


def write_lists(folder: Path, *rows: str) -> Path:
    (folder / "inquire_rerank").mkdir(exist_ok=True)
    lines = (f"{RERANK},{MORE}", *rows)
    (folder / "inquire_rerank/val.csv").write_text("\n".join((*lines, "")))
    return folder


def test_lists_alone_tell_judged_images_too(tmp_path: Path) -> None:
    folder = write_lists(
        write_layout(tmp_path / "toy"),
        "7,1,1,0.5,1,1,a/1.jpg,Vulpes vulpes,2020-01-02,cc0,Ann,1.5,2.5,",
        "7,2,8,0.25,0,1,a/8.jpg,,,,,,,30.0",
        "7,3,9,0.125,0,0,a/9.jpg,,,,,,,",
    )
    release = benchmark_import(directory=folder).release
    snapshot = snapshot_of(release)
    assert snapshot.header.rerank_model == UNNAMED_MODEL
    assert [(one.image_id, one.relevant) for one in snapshot.pairs()][:2] == [(1, True), (8, False)]
    assert release.positives == 3
    fox, eight = (one for one in snapshot.images() if one.image_id in (1, 8))
    assert (fox.scientific_name, fox.license, fox.latitude) == ("Vulpes vulpes", "cc0", 1.5)
    assert (eight.file_name, eight.location_uncertainty, eight.latitude) == ("a/8.jpg", 30.0, None)
    assert release_data(release).qrels_of("rerank").query_ids.tolist() == [7]


def test_wrong_lists_are_refused(tmp_path: Path) -> None:
    for row, message in (
        ("7,1,8,0.5,1,1,a/8.jpg", "relevant: image 8 of query 7 isn't in the annotations"),
        ("7,1,1,0.5,0,1,a/1.jpg", "relevant: image 1 of query 7 is in the annotations"),
        ("7,1,1,0.5,1,0,a/1.jpg", "judged: image 1 of query 7 is relevant, so somebody judged it"),
        ("7,2,1,0.5,1,1,a/1.jpg", "rank: the ranks of query 7 are not 1, 2, 3 and so on"),
        ("7,1,1,nan,1,1,a/1.jpg", "clip_score: 'nan' is not a number"),
        ("9,1,1,0.5,1,1,a/1.jpg", "query_id: '9' is in no query file that this one goes with"),
        ("7,1,1,0.5,1,1,a/x.jpg", "image 1 has the path 'a/1.jpg' in inquire_annotations.csv"),
    ):
        folder = write_lists(write_layout(tmp_path / "toy"), f"{row},,,,,,,")
        with pytest.raises(LayoutRefused) as refused:
            benchmark_import(directory=folder)
        assert "inquire_rerank/val.csv, line 2, " in str(refused.value)
        assert message in str(refused.value)


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("queries", "queries.parquet holds a query twice"),
        ("images", "two rows have the same image_id"),
    ],
)
def test_a_snapshot_that_holds_a_row_twice_is_refused(
    exported: Path, table: str, problem: str
) -> None:
    path = exported / f"snapshot/{table}.parquet"
    rows = pq.read_table(path)
    pq.write_table(pa.concat_tables([rows, rows.slice(0, 1)]), path)
    with pytest.raises(LayoutRefused, match=problem):
        benchmark_import(directory=exported, name="again")


def test_a_snapshot_with_a_table_of_repeated_rows_is_refused(exported: Path) -> None:
    path = exported / "snapshot/images.parquet"
    row = pq.read_table(path).slice(0, 1)
    with pq.ParquetWriter(path, row.schema) as file:
        file.write_table(row.take(pa.array([0] * 1_000_000)))
    with pytest.raises(LayoutRefused, match=r"images\.parquet becomes more than 64 times as large"):
        benchmark_import(directory=exported, name="again")


def test_a_snapshot_that_cannot_be_read_is_named(exported: Path) -> None:
    (exported / "snapshot/queries.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(LayoutRefused, match="snapshot, line 1: can't be read"):
        benchmark_import(directory=exported, name="again")
    shutil.rmtree(exported / "snapshot")
    release = benchmark_import(directory=exported, name="again").release
    assert snapshot_of(release).header.rerank_model == UNNAMED_MODEL


class TestRerankModel:
    def test_lists_are_made_as_for_releases_made_here(
        self, exported: Path, model: EmbeddingModel
    ) -> None:
        kept = exported.parent / "kept"
        shutil.copytree(exported, kept)
        shutil.rmtree(exported / "inquire_rerank")
        call_command(
            "import_benchmark", str(exported), "--name", "again", "--rerank-model", model.name
        )
        release = Release.objects.get(name="again")
        same(kept, release)
        assert release.options["rerank_model"] == model.name
        manifest = json.loads((release.directory / "manifest.json").read_text())
        assert manifest["release"]["rerank_model"] == model.name
        theirs = snapshot_of(Release.objects.get(name="ours"))
        assert list(snapshot_of(release).fixed()) == list(theirs.fixed())

    def test_a_corpus_that_lacks_images_makes_none(
        self, model: EmbeddingModel, tmp_path: Path
    ) -> None:
        folder = str(
            write_layout(tmp_path / "toy", annotations=['7,1,"a, b/1.jpg"', "9,77,a/77.jpg"])
        )
        options = ("--rerank-model", model.name)
        with pytest.raises(CommandError, match="1 of the benchmark's 2 images aren't in the corp"):
            call_command("import_benchmark", folder, *options)
        with pytest.raises(CommandError, match="2 of the benchmark's 2 images aren't in the corp"):
            call_command("import_benchmark", folder, "--images", "none", *options)
        write_layout(tmp_path / "toy", annotations=['7,1,"a, b/1.jpg"'])
        Embedding.objects.filter(image_id=6).delete()
        with pytest.raises(CommandError, match="1 images of the corpus aren't embedded with"):
            call_command("import_benchmark", folder, "--background", *options)
        assert not Release.objects.exclude(name="ours").exists()
        with pytest.raises(ValidationError, match="No image is embedded with 'nobody'"):
            benchmark_import(directory=tmp_path / "toy", rerank_model="nobody")


def test_a_pipe_is_refused_by_name(tmp_path: Path) -> None:
    for name in ("inquire_queries_val", "inquire_annotations", "judgments"):
        folder = write_layout(tmp_path / name)
        (folder / f"{name}.csv").unlink(missing_ok=True)
        os.mkfifo(folder / f"{name}.csv")
        with pytest.raises(CommandError, match=f"Not a regular file: .*{name}.csv"):
            call_command("import_benchmark", str(folder), "--images", "none")
    assert not Release.objects.exclude(name="ours").exists()

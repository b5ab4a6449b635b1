"""What the files of an imported benchmark don't say is not known, which is not zero."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from evaluation.leaderboard.board import ICONIC_GROUP, TERMS, subsets
from evaluation.leaderboard.selectors import published_runs
from evaluation.runs.models import RunScores
from labeling.queries.models import Query
from releases.importing.services import benchmark_import
from releases.making.services import release_export, release_verify
from releases.models import Release
from releases.snapshot.snapshot import Snapshot
from releases.statistics.sections import sections
from releases.statistics.views import statistics_of
from tests.conftest import client_of
from tests.evaluation.runs import scored_run
from tests.releases.conftest import World
from tests.releases.layouts import write_layout
from tests.releases.snapshots import query
from tests.releases.toy import make_list

pytestmark = pytest.mark.django_db

VAL = ("7,a fox,Species,Species ID,",)
TEST = ("9,a red fox,Species,Species ID,", "11,a tram,Species,Species ID,Mammals")


@pytest.fixture(scope="module")
def release(world: World) -> Release:
    """Three queries with a relevant image each; one names its iconic group."""
    rows = ("7,1,a/1.jpg", "9,1,a/1.jpg", "11,2,a/2.jpg")
    directory = write_layout(world.folder / "toy", val=VAL, test=TEST, annotations=rows)
    return benchmark_import(directory=directory).release


@pytest.fixture
def ours(world: World, query: Query, judge: Any, annotator: Any, tmp_path: Path) -> Path:
    """The files of a release that was made here."""
    make_list(query, [3, 2])
    judge(query, 3, annotator, "relevant")
    judge(query, 2, annotator, "not_relevant")
    release_export(name="ours", directory=tmp_path / "ours", new=True)
    return tmp_path / "ours"


def test_the_snapshot_says_what_is_not_known(release: Release) -> None:
    snapshot = Snapshot(release.snapshot_directory)
    assert (snapshot.header.negatives_known, snapshot.header.annotators) == (False, None)
    shown = [(one.iconic_group, one.scientific_terms) for one in snapshot.queries.values()]
    assert shown == [(None, None), (None, None), ("Mammals", None)]
    counts = json.loads((release.directory / "manifest.json").read_text())["counts"]
    assert (counts["pairs"], counts["judgments"], counts["positives"]) == (None, None, 3)
    assert release_verify(release=release) == []


def test_a_file_may_say_it(world: World, tmp_path: Path) -> None:
    directory = write_layout(tmp_path / "toy", annotations=["7,1,a.jpg"])
    text = "query_id,query_text,supercategory,category,scientific_terms,split\n"
    for path in directory.glob("*queries*"):
        path.unlink()
    rows = "7,a fox,Species,Species ID,no,val\n8,a cat,Species,Species ID,yes,val\n"
    rows += "9,a dog,Species,Species ID,,test\n"
    (directory / "queries.csv").write_text(text + rows)
    queries = Snapshot(benchmark_import(directory=directory).release.snapshot_directory).queries
    assert [one.scientific_terms for one in queries.values()] == [False, True, None]
    # The file has no column for it.
    assert {one.iconic_group for one in queries.values()} == {None}


def test_pages_and_the_datasheet_say_so(release: Release, world: World) -> None:
    client = world.client("admin")
    page = client.get(f"/releases/{release.pk}/").content.decode()
    assert '<dt>judgments</dt><dd class="unknown">not known</dd>' in page
    assert '<dt>people who judged</dt><dd class="unknown">not known</dd>' in page
    assert "judgments not known" in page
    assert '<span class="muted">not known</span>' in client.get("/releases/").content.decode()
    page = client.get(f"/releases/{release.pk}/statistics/").content.decode()
    assert '<dt>judged pairs</dt><dd class="unknown">not known</dd>' in page
    assert '<dt>judgments</dt><dd class="unknown">not known</dd>' in page
    assert "How far people agree is not known." in page
    numbers = statistics_of(Snapshot(release.snapshot_directory))
    (groups,) = (one for one in sections(numbers) if one.key == "groups")
    assert groups.rows == [["Not known", "1", "1"], ["Mammals", "0", "1"]]
    sheet = (release.directory / "DATASHEET.md").read_text()
    for words in (
        "| judged pairs | not known | not known | not known |",
        "| not known | 1 | 1 |",
        "Queries with scientific terms: not known.",
        "Which other images were judged is not known.",
        "| people who judged a pair | pairs |\n|---|---|\n| not known | 3",
        "Whether queries had a species filter is not known.",
    ):
        assert words in sheet
    assert "| judged images" not in sheet
    assert "without a species filter" not in sheet
    answer = client.get(f"/api/releases/{release.pk}/").json()
    assert (answer["judgments"], answer["header"]["annotators"]) == (None, None)
    assert answer["header"]["negatives_known"] is False


def test_groups_that_nobody_knows_are_no_group(release: Release) -> None:
    queries = Snapshot(release.snapshot_directory).queries | {13: query(13, iconic_group="")}
    ordered = [queries[query_id] for query_id in sorted(queries)]
    parts = [(one.name, one.queries.tolist()) for one in subsets(ordered, ICONIC_GROUP)]
    assert parts == [("Mammals", [2]), ("No group", [3]), ("Not known", [0, 1])]
    parts = [(one.name, one.queries.tolist()) for one in subsets(ordered, TERMS)]
    assert parts == [("Without scientific terms", [3]), ("Not known", [0, 1, 2])]


def test_how_much_was_judged_is_no_measure(release: Release, admin: Any) -> None:
    run = scored_run(release, {7: [1, 3], 9: [2, 1]}, published_at=release.made_at)
    measures = published_runs(release, "full").measures
    assert "AP@50" in measures
    assert not [key for key in measures if key.startswith("Judged")]
    page = client_of(admin).get(f"/releases/{release.pk}/leaderboard/?view=measures")
    assert "Judged" not in page.content.decode()
    page = client_of(admin).get(f"/runs/{run.pk}/queries/9/").content.decode()
    assert "Not known</span>" in page
    assert "Unjudged" not in page


def test_judgments_make_it_known(ours: Path, tmp_path: Path) -> None:
    release = benchmark_import(directory=ours, name="again").release
    shown = Snapshot(release.snapshot_directory)
    assert (shown.header.negatives_known, shown.header.annotators) == (True, 1)
    assert (shown.queries[30].scientific_terms, release.known_judgments) == (False, 2)
    assert "Judged@5" in RunScores.objects.get(run=scored_run(release, {30: [2, 3]})).measures
    # Those of one split tell nothing of the other.
    shutil.rmtree(ours / "snapshot")
    (ours / "judgments.csv").rename(ours / "judgments_test.csv")
    val = ours / "inquire_queries_val.csv"
    val.write_text(val.read_text() + "5,7,a fox,Species,Species ID,\n")
    release = benchmark_import(directory=ours, name="third").release
    assert not Snapshot(release.snapshot_directory).header.negatives_known

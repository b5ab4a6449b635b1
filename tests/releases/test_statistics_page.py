"""The page of a release's numbers: what it shows to whom, and where they are kept."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from releases.importing.services import benchmark_import
from releases.making.services import release_export
from releases.models import Release
from releases.snapshot.snapshot import Snapshot
from releases.statistics.views import statistics_of
from tests.releases.conftest import World, judge_maker, make_images
from tests.releases.layouts import write_layout
from tests.releases.toy import make_list, make_query

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def release(world: World) -> Release:
    make_images()
    query = make_query(30, "two storks on a nest ")
    make_list(query, [3, 2])
    judge, annotator = judge_maker(), world.person("annotator")
    judge(query, 3, annotator, "relevant", seconds=2)
    judge(query, 2, annotator, "not_relevant", seconds=3)
    return release_export(name="v1", directory=world.folder / "v1", new=True)


def test_it_shows_charts_with_their_figures_to_all_but_annotators(
    release: Release, world: World
) -> None:
    address = f"/releases/{release.pk}/statistics/"
    page = world.client("reviewer").get(address).content.decode()
    assert page.count("<details>") == page.count('<div class="statistic-chart">') >= 5
    assert "By rank 100 of its candidate list a query has shown 100.0 %" in page
    assert not re.search(r"<[^>]+ style=", page)
    assert "<script>" not in page
    expected = {"researcher": 200, "admin": 200, "annotator": 403}
    assert {role: world.client(role).get(address).status_code for role in expected} == expected


def test_numbers_are_kept_and_made_again_where_they_are_lost(release: Release) -> None:
    numbers = statistics_of(Snapshot(release.snapshot_directory))
    kept = release.directory / "snapshot_statistics.json"
    assert json.loads(kept.read_text()) == numbers
    kept.write_text(json.dumps(numbers | {"relevant": 99}))
    assert statistics_of(Snapshot(release.snapshot_directory))["relevant"] == 99
    for damaged in ("{", '{"form": -1}', "[]"):
        kept.write_text(damaged)
        assert statistics_of(Snapshot(release.snapshot_directory)) == numbers
    assert [path.name for path in release.directory.glob(".*statistics*")] == []


def test_an_imported_benchmark_shows_what_is_known_and_a_lost_one_says_so(
    world: World, tmp_path: Path
) -> None:
    client = world.client("admin")
    release = benchmark_import(directory=write_layout(tmp_path / "toy")).release
    page = client.get(f"/releases/{release.pk}/statistics/").content.decode()
    for words in (
        "Which images were judged is not known",
        "has no candidate lists",
        "Relevant images per query: median 1.5",
        "No judgment of this release has a time",
    ):
        assert words in page
    release.snapshot_directory.rename(release.directory / "away")
    page = client.get(f"/releases/{release.pk}/statistics/").content.decode()
    assert "The files of this release are lost" in page
    unmade = Release.objects.create(name="unmade")
    assert client.get(f"/releases/{unmade.pk}/statistics/").status_code == 404

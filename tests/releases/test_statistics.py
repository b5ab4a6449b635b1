"""A release's numbers against counts by hand, and their charts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.geo_grid import CELL
from releases.formats.datasheet import facts_of
from releases.snapshot.open_snapshot import OpenSnapshot
from releases.snapshot.snapshot import Snapshot, SnapshotWriter
from releases.statistics.drawing import TOTAL_WIDTH
from releases.statistics.numbers import (
    COUNT_EDGES,
    RANKS,
    release_statistics,
    summary,
)
from releases.statistics.sections import sections
from tests.releases.charts import SPECIFICATION, drawings
from tests.releases.snapshots import (
    empty_snapshot,
    header,
    image,
    judgment,
    pair,
    query,
    write_snapshot,
)

pytestmark = pytest.mark.pure


def small(directory: Path) -> Snapshot:
    """Two queries with lists: 3 of 4 and 1 of 2 judged images are relevant."""
    return write_snapshot(
        directory,
        header=header(annotators=2),
        queries=[
            query(1, split="val"),
            query(2, supercategory="Species", category="Species ID", iconic_group=""),
        ],
        pairs=[
            pair(1, 10, True, rank=1, votes=2),
            pair(1, 11, True, rank=10, votes=2),
            pair(1, 12, False, rank=2),
            pair(1, 13, True, rank=None),
            pair(2, 10, True, rank=100),
            pair(2, 14, False, rank=1),
        ],
        judgments=[
            judgment(1, 10, "relevant", seconds=2),
            judgment(1, 10, "relevant", annotator=2, seconds=4),
            judgment(1, 11, "relevant", seconds=6),
            judgment(1, 11, "not_relevant", annotator=2, seconds=0),
            judgment(1, 12, "not_relevant", seconds=0),
            judgment(1, 13, "relevant", seconds=0, source="import"),
            judgment(2, 10, "relevant", seconds=0),
            judgment(2, 14, "unsure", seconds=0),
        ],
        images=[
            image(10, latitude=48.1, longitude=-0.1),
            image(11, latitude=50.9, longitude=-2.9),
            image(12, latitude=1.0, longitude=1.0),
            image(13, latitude=None, longitude=None),
            image(14, latitude=1.0, longitude=1.0),
        ],
    )


def test_the_numbers_of_a_small_release(tmp_path: Path) -> None:
    numbers = release_statistics(small(tmp_path))
    assert json.loads(json.dumps(numbers)) == numbers
    assert numbers["queries"] == {"val": 1, "test": 1}
    counts = ("pairs", "relevant", "images", "judgments", "annotators")
    assert [numbers[name] for name in counts] == [6, 4, 5, 8, 2]
    labeled = {"bins": [[2, 5, 2]], "lowest": 2, "median": 3, "mean": 3, "highest": 4}
    assert numbers["labeled"] == labeled
    assert numbers["relevant_per_query"]["bins"] == [[1, 2, 1], [2, 5, 1]]
    behavior, species = numbers["categories"]
    assert (behavior["supercategory"], behavior["val"], behavior["test"]) == ("Behavior", 1, 0)
    assert (species["category"], species["val"], species["test"]) == ("Species ID", 0, 1)
    assert numbers["iconic_groups"] == [
        {"iconic_group": "", "val": 0, "test": 1},
        {"iconic_group": "Birds", "val": 1, "test": 0},
    ]
    # Image 10 is relevant for both queries, and is one image; irrelevant ones aren't on the map.
    assert numbers["map"] == {"cells": [[48, -3, 2]], "placed": 2, "unplaced": 1}
    assert numbers["seconds"]["bins"] == [[2, 3, 1], [3, 5, 1], [5, 10, 1]]
    assert (numbers["seconds"]["median"], numbers["seconds"]["total"]) == (4, 12)
    assert numbers["agreement"]["pairs"] == 2
    assert numbers["agreement"]["given"] == [[["relevant"], 1], [["not_relevant", "relevant"], 1]]
    # Two judgments of each of two people on shared pairs, one of which the label contradicts.
    assert numbers["people"] == [[1, 10, 2, 4, 3]]
    assert numbers["grades"] is None
    [people] = [one for one in sections(numbers) if one.key == "people"]
    assert people.rows == [["1 to 9 judgments", "2", "4", "3", "1", "75.0 %"]]


def test_with_hidden_labels_people_are_those_who_judged_validation_queries(tmp_path: Path) -> None:
    whole = write_snapshot(
        tmp_path / "whole",
        header=header(annotators=3, test_labels="hidden"),
        queries=[query(1, split="val"), query(2)],
        pairs=[pair(1, 7, True), pair(2, 7, True, votes=2)],
        judgments=[judgment(1, 7), *(judgment(2, 7, annotator=number) for number in (2, 3))],
        images=[image(7)],
    )
    numbers = [release_statistics(one) for one in (whole, OpenSnapshot(whole))]
    assert [(one["judgments"], one["annotators"]) for one in numbers] == [(3, 3), (1, 1)]


def test_each_statement_reads_the_files_as_they_are(tmp_path: Path) -> None:
    snapshot, count = small(tmp_path), "SELECT count(*), sum(latitude) FROM images"
    assert snapshot.sql(count).fetchall() == [(5, pytest.approx(101))]
    # As a takedown writes them again.
    SnapshotWriter(tmp_path).table("images", [image(10, latitude=None)])
    assert snapshot.sql(count).fetchall() == [(1, None)]


def test_grades_by_rank(tmp_path: Path) -> None:
    graded = write_snapshot(
        tmp_path,
        header=header(),
        queries=[query(1, grades="partly"), query(2)],
        pairs=[
            pair(1, 1, True, grade=3),
            pair(1, 3, True, grade=2),
            pair(1, 4, False, grade=0),
            pair(1, 9, False, rank=None),
            pair(2, 1, True),
        ],
        images=[image(number) for number in (1, 3, 4, 9)],
    )
    numbers = release_statistics(graded)
    assert numbers["grades"] == [
        [1, 1, 1, 0, 0, 0],
        [3, 5, 0, 1, 0, 1],
        [None, None, 0, 0, 0, 1],
    ]
    [section] = [one for one in sections(numbers) if one.key == "grades"]
    assert section.rows[1] == ["3 to 5", "0.0 %", "50.0 %", "0.0 %", "50.0 %", "2"]


def test_what_is_found_by_rank(tmp_path: Path) -> None:
    ranks = release_statistics(small(tmp_path))["ranks"]
    shares = {
        line["name"]: dict(zip(ranks["at"], line["shares"], strict=True)) for line in ranks["lines"]
    }
    # One of three at rank 1, two by rank 10; the third is outside the list.
    assert shares["Behavior"] == {at: (1 / 3 if at < 10 else 2 / 3) for at in RANKS}
    assert shares["Species"] == {at: float(at >= 100) for at in RANKS}
    assert shares[""][5] == pytest.approx(1 / 6)
    assert [line["queries"] for line in ranks["lines"]] == [2, 1, 1]


@given(st.lists(st.integers(0, 20_000), min_size=1))
def test_bins_hold_every_value_once(values: list[int]) -> None:
    found = summary(np.array(values), COUNT_EDGES)
    assert found is not None
    for low, high, count in found["bins"]:
        assert count == sum(low <= value < (high or 10**9) for value in values)
    assert sum(count for _, _, count in found["bins"]) == len(values)
    assert found["bins"][0][2] > 0
    assert found["bins"][-1][2] > 0
    assert (found["lowest"], found["highest"]) == (min(values), max(values))


def test_the_statistics_and_the_datasheet_tell_one_agreement_whatever_the_order_of_people(
    tmp_path: Path,
) -> None:
    says = [("relevant", "relevant"), ("relevant", "unsure"), ("unsure", "not_relevant")]
    told = []
    for place, order in enumerate(((1, 2), (2, 1))):
        snapshot = write_snapshot(
            tmp_path / str(place),
            header=header(),
            queries=[query(1)],
            pairs=[pair(1, number, one == "relevant") for number, (one, _) in enumerate(says)],
            images=[image(number) for number in range(3)],
            judgments=[
                judgment(1, number, both[person - 1], annotator=at)
                for number, both in enumerate(says)
                for at, person in enumerate(order, start=1)
            ],
        )
        numbers = release_statistics(snapshot)["agreement"]
        found = facts_of(snapshot).labels.agreement
        assert (numbers["pairs"], numbers["same"], numbers["alpha"]) == (
            found.items,
            found.raw,
            found.alpha,
        )
        told.append(found)
    assert told[0] == told[1]
    # Of six judgments three are relevant; one pair of three differs.
    assert (told[0].items, told[0].raw) == (3, pytest.approx(2 / 3))
    assert told[0].alpha == pytest.approx(1 - 5 * 2 / (36 - 9 - 9))


def test_the_edges_of_the_world_are_on_the_map(tmp_path: Path) -> None:
    corners = [(90.0, 180.0), (-90.0, -180.0), (89.9, 179.9)]
    images = [image(n, latitude=lat, longitude=lon) for n, (lat, lon) in enumerate(corners)]
    snapshot = write_snapshot(
        tmp_path,
        header=header(),
        queries=[query(1)],
        pairs=[pair(1, n, True) for n in range(3)],
        images=images,
    )
    cells = release_statistics(snapshot)["map"]["cells"]
    assert cells == [[90 - CELL, 180 - CELL, 2], [-90, -180, 1]]


def test_an_empty_release_says_so_in_each_place(tmp_path: Path) -> None:
    drawn = sections(release_statistics(empty_snapshot(tmp_path / "empty")))
    assert all(one.says and not one.chart and not one.rows for one in drawn)
    # Nasty names stay text.
    name = "<script>alert(1)</script>"
    nasty = query(1, supercategory=name, category=name, iconic_group=name)
    snapshot = write_snapshot(tmp_path / "nasty", header=header(), queries=[nasty])
    for one in sections(release_statistics(snapshot)):
        assert "<script>" not in one.chart
        assert name not in SPECIFICATION.sub("", one.chart)


def test_every_chart_has_words_and_figures(tmp_path: Path) -> None:
    drawn = {one.key: one for one in sections(release_statistics(small(tmp_path)))}
    for one in drawn.values():
        assert 'role="img"' in one.chart
        assert one.says.split(";")[0][:20] in one.chart  # also for who doesn't see it
        for drawing in drawings(one.chart):
            assert 200 < float(drawing.get("width", 0)) <= TOTAL_WIDTH * 1.1
        assert all(len(row) == len(one.headings) for row in one.rows)
        assert one.rows
    assert drawn["relevant"].rows == [["1 images", "1"], ["2 to 4 images", "1"]]
    assert drawn["map"].rows == [["48° N to 51° N", "3° W to 0° E", "2"]]
    assert drawn["agreement"].rows[1] == ["not relevant and relevant", "1"]
    assert "Half of the judgments whose time is known took 4 seconds" in drawn["seconds"].says

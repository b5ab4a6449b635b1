"""INQUIRE-Rerank: which queries it keeps, and its columns."""

import pandas as pd
import pytest

from releases.formats.base import Access
from releases.formats.inquire_rerank import write
from releases.snapshot.qrels import is_rerankable
from releases.snapshot.snapshot import FixedImage
from tests.releases.snapshots import (
    COMMAS,
    FORMULA,
    format_files,
    header,
    image,
    pair,
    query,
    toy_snapshot,
    write_snapshot,
)

pytestmark = pytest.mark.pure


def test_at_least_one_and_at_most_half_must_be_relevant():
    for relevant, of, expected in (
        (0, 100, False), (1, 100, True), (50, 100, True), (51, 100, False), (1, 1, False),
        (2, 3, False), (0, 0, False),
    ):  # fmt: skip
        assert is_rerankable([True] * relevant + [False] * (of - relevant)) is expected


def test_the_lists_that_are_fit_are_written(tmp_path):
    files = format_files(write, toy_snapshot(tmp_path / "snapshot"), tmp_path)
    assert {(file.name, file.access) for file in files} == {
        ("inquire_rerank/val.csv", Access.OPEN),
        ("inquire_rerank/test.csv", Access.LABELS),
        ("inquire_rerank/test_unlabelled.csv", Access.OPEN),
    }
    val = pd.read_csv(tmp_path / "inquire_rerank/val.csv")
    assert val["query"].tolist() == [COMMAS] * 5
    assert val["inat24_image_id"].tolist() == [4, 1, 2, 3, 9]
    assert val["relevant"].tolist() == [0, 1, 1, 0, 0]
    assert val["judged"].tolist() == [1, 1, 1, 1, 0]
    assert val["rank"].tolist() == [1, 2, 3, 4, 5]
    test = pd.read_csv(tmp_path / "inquire_rerank/test.csv", keep_default_na=False)
    assert test["query"].tolist() == [FORMULA] * 5
    assert test["relevant"].tolist() == [0, 1, 0, 0, 0]
    assert test["judged"].tolist() == [0, 1, 1, 1, 0]
    assert test.iloc[1].to_dict() == {
        "query": FORMULA,
        "relevant": 1,
        "clip_score": 0.46875,
        "inat24_image_id": 7,
        "inat24_file_name": "train/00019_Animalia_Ciconia_ciconia/7.jpg",
        "supercategory": "Behavior",
        "category": "Mating, Courtship, Reproduction",
        "iconic_group": "",
        "inat24_species_id": 19,
        "inat24_species_name": "Ciconia ciconia",
        "latitude": "0.0",
        "longitude": "180.0",
        "location_uncertainty": "",
        "date": "2022-06-01T10:00:00+00:00",
        "license": "CC BY-NC 4.0",
        "rights_holder": "Jo Doe",
        "query_id": 8,
        "rank": 2,
        "judged": 1,
    }
    # The list to be put in order tells no label.
    labeled = pd.read_csv(tmp_path / "inquire_rerank/test.csv")
    bare = pd.read_csv(tmp_path / "inquire_rerank/test_unlabelled.csv")
    pd.testing.assert_frame_equal(bare, labeled.drop(columns=["relevant", "judged"]))


def test_a_full_list_of_one_hundred(tmp_path):
    """50 relevant images of 100 are kept, 51 are not."""
    images = [image(number) for number in range(1, 101)]
    fixed = [
        FixedImage(query_id, rank, 101 - rank, 0.25)
        for query_id in (1, 2)
        for rank in range(1, 101)
    ]
    pairs = [pair(1, number, True) for number in range(1, 51)]
    pairs += [pair(2, number, True) for number in range(1, 52)]
    snapshot = write_snapshot(
        tmp_path / "snapshot", header=header(), queries=[query(1, "a"), query(2, "b")], pairs=pairs,
        images=images, fixed=fixed,
    )  # fmt: skip
    format_files(write, snapshot, tmp_path)
    frame = pd.read_csv(tmp_path / "inquire_rerank/test.csv")
    assert frame["query_id"].unique().tolist() == [1]
    assert len(frame) == 100
    assert frame["relevant"].sum() == 50
    assert len(pd.read_csv(tmp_path / "inquire_rerank/val.csv")) == 0


def test_without_fixed_lists_there_are_no_files(tmp_path):
    snapshot = toy_snapshot(tmp_path / "snapshot", fixed=False)
    assert format_files(write, snapshot, tmp_path) == []
    assert not (tmp_path / "inquire_rerank").exists()

"""The Hugging Face folder, read offline by `datasets`."""

import io
import shutil

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from releases.formats import parquet
from releases.formats.base import Access
from releases.formats.huggingface import write
from releases.snapshot.snapshot import FixedImage
from tests.releases.photos import photo_snapshot
from tests.releases.snapshots import (
    ALL_RELEVANT,
    COMMAS,
    FORMULA,
    LINES,
    UNJUDGED,
    empty_snapshot,
    format_files,
    header,
    image,
    pair,
    query,
    toy_image_files,
    toy_snapshot,
    write_snapshot,
)

pytestmark = pytest.mark.pure


@pytest.fixture
def load(tmp_path, monkeypatch):
    """`load(configuration)` reads the folder below `tmp_path` without a connection."""
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    datasets.disable_progress_bars()

    def read(*configuration):
        cache = tmp_path / "cache"
        shutil.rmtree(cache, ignore_errors=True)
        return datasets.load_dataset(
            str(tmp_path / "huggingface"), *configuration, cache_dir=str(cache)
        )

    return read


def test_queries_labels_images_and_fixed_lists_are_read(tmp_path, load):
    files = format_files(write, toy_snapshot(tmp_path / "snapshot"), tmp_path)
    queries = load("queries")
    assert {split: part["text"][:] for split, part in queries.items()} == {
        "validation": [COMMAS, ALL_RELEVANT],
        "test": [FORMULA, LINES, UNJUDGED],
    }
    assert queries["validation"][0] == {
        "query_id": 3,
        "text": COMMAS,
        "supercategory": "Behavior",
        "category": "Mating, Courtship, Reproduction",
        "iconic_group": "Birds",
        "species": ["Ciconia ciconia"],
        "guidelines": 'Not "lying", <i>',
        "scientific_terms": False,
    }
    assert load()["test"]["query_id"][:] == [8, 13, 34]
    qrels = load("qrels")
    assert qrels["test"].to_pandas().to_dict("list") == {
        "query_id": [8, 8, 8, 8, 13, 13],
        "image_id": [1, 6, 7, 8, 5, 6],
        "relevance": [1, 0, 1, 0, 1, 0],
    }
    assert len(qrels["validation"]) == 7
    corpus = load("corpus")["corpus"]
    assert corpus["image_id"][:] == list(range(1, 13))
    assert corpus[4]["file_name"] == 'train/a, "b"/5 🦊.jpg'
    assert corpus[8]["vernacular_name"] == "皇帝ペンギン"
    assert (corpus[5]["latitude"], corpus[6]["latitude"]) == (None, 0.0)
    labeled = load("rerank")["test"].to_pandas()
    assert labeled["inat24_image_id"].tolist() == [12, 7, 6, 8, 2]
    assert labeled["relevant"].tolist() == [0, 1, 0, 0, 0]
    bare = load("rerank_unlabelled")["test"].to_pandas()
    pd.testing.assert_frame_equal(bare, labeled.drop(columns=["relevant", "judged"]))
    # Whoever may not have the labels has the rest.
    labels = [file.name for file in files if file.access is Access.LABELS]
    assert labels == [
        "huggingface/qrels/data/test-00000-of-00001.parquet",
        "huggingface/rerank/data/test-00000-of-00001.parquet",
    ]
    for name in labels:
        (tmp_path / name).unlink()
    assert {split: len(part) for split, part in load("qrels").items()} == {"validation": 7}
    assert list(load("rerank")) == ["validation"]
    assert set(load("rerank_unlabelled")) == {"validation", "test"}


@pytest.mark.parametrize("origin", ["made", "imported"])
def test_a_configuration_of_withheld_files_alone_doesnt_hide_the_others(tmp_path, load, origin):
    snapshot = write_snapshot(
        tmp_path / "snapshot",
        header=header(origin=origin),
        queries=[query(3)],
        pairs=[pair(3, 7, True)],
        images=[image(7)],
    )
    files = format_files(write, snapshot, tmp_path)
    assert {split: len(part) for split, part in load("qrels").items()} == {"test": 1}
    assert list(load("corpus")) == ["corpus"]
    for file in files:
        if file.access is Access.LABELS:
            (tmp_path / file.name).unlink()
    assert load("queries")["test"]["text"] == ["a stork on a nest"]
    assert (tmp_path / "huggingface/qrels/WITHHELD.md").is_file()


def test_images_whose_license_allows_it_are_the_files_unchanged(tmp_path, load):
    find, digests = toy_image_files(tmp_path / "pictures", 9)
    snapshot = toy_snapshot(tmp_path / "snapshot", digests=digests, include_images=True)
    files = format_files(write, snapshot, tmp_path, find)
    assert "huggingface/refused_images.csv" in {file.name for file in files}
    images = load("images")["images"]
    assert images["image_id"][:] == [1, 2, 5, 6, 7, 9]
    assert images[2]["image"].size == (10, 8)
    assert images[2]["rights_holder"] == 'Müller, "狐"\n<b>'
    assert images[3]["license"] == "CC-BY-ND"
    import datasets

    raw = images.cast_column("image", datasets.Image(decode=False))
    for row in raw:
        source = find(row["image_id"], "", digests[row["image_id"] - 1])
        assert row["image"]["bytes"] == source
    refused = pd.read_csv(tmp_path / "huggingface/refused_images.csv", keep_default_na=False)
    assert dict(zip(refused["image_id"], refused["reason"], strict=True)) == {
        3: "all rights are reserved",
        4: "no licence is given",
        8: "the licence is not one that is known here",
        10: "no licence is given",
        11: "no licence is given",
        12: "the image's file isn't here or cannot be read",
    }
    assert refused.loc[0, "rights_holder"] == "'=1+1"
    card = (tmp_path / "huggingface/README.md").read_text(encoding="utf-8")
    assert "6 of 12 pictures are here" in card
    lists = load("rerank")
    without = {
        row["inat24_image_id"] for part in lists.values() for row in part if row["image"] is None
    }
    assert without == {3, 4, 8, 12}
    assert lists["validation"][1]["image"].size == (10, 8)
    assert "image" not in load("rerank_unlabelled")["test"].column_names
    assert "They need an image in each row of rerank; 4 rows have none." in card


def test_inquires_scripts_for_reranking_find_what_they_load(tmp_path, load, monkeypatch):
    """What eval_rerank_with_clip.py and eval_rerank_with_llm.py of INQUIRE's repository do with the
    data set: the name, the splits, the columns and the ways in which they ask for them."""
    find, digests = toy_image_files(tmp_path / "pictures", 8)
    images = [image(number, sha256=digests[number - 1]) for number in range(1, 9)]
    snapshot = write_snapshot(
        tmp_path / "snapshot",
        header=header(include_images=True),
        queries=[
            query(3, "a fox", split="val"),
            query(5, "an owl", split="val"),
            query(8, "a newt"),
        ],
        pairs=[pair(number, number, True) for number in (3, 5, 8)],
        images=images,
        fixed=[
            FixedImage(number, rank, one, 1 - rank / 8)
            for number in (3, 5, 8)
            for rank, one in enumerate(range(8, 0, -1), start=1)
        ],
    )
    format_files(write, snapshot, tmp_path, find)
    import datasets

    # They are started where a folder of this name is.
    (tmp_path / "evendrow").mkdir()
    (tmp_path / "evendrow/INQUIRE-Rerank").symlink_to(tmp_path / "huggingface")
    monkeypatch.chdir(tmp_path)
    for split, expected in (("validation", {"a fox": 3, "an owl": 5}), ("test", {"a newt": 8})):
        found = datasets.load_dataset(
            "evendrow/INQUIRE-Rerank", split=split, cache_dir=str(tmp_path / "cache")
        )
        assert np.unique(found["query"]).tolist() == sorted(expected)
        for text, relevant in expected.items():
            places = np.argwhere(np.asarray(found["query"]) == text).squeeze()
            rows = found.select(places)
            assert [row["image"].convert("RGB").size for row in rows] == [(10, 8)] * 8
            truth = dict(zip(rows["inat24_image_id"], np.asarray(rows["relevant"]), strict=True))
            assert truth == {number: int(number == relevant) for number in range(1, 9)}
            assert rows["inat24_file_name"][0].endswith("/8.jpg")


def test_many_images_are_several_files(tmp_path, load, monkeypatch):
    find, digests = toy_image_files(tmp_path / "pictures", 9)
    size = len(find(1, "", digests[0]))
    monkeypatch.setattr(parquet, "ROWS_A_GROUP", 2)
    monkeypatch.setattr(parquet, "BYTES_A_SHARD", 3 * size)
    snapshot = toy_snapshot(tmp_path / "snapshot", digests=digests, include_images=True)
    names = [
        file.name
        for file in format_files(write, snapshot, tmp_path, find)
        if "/images/" in file.name
    ]
    assert names == [
        "huggingface/images/data/images-00000-of-00002.parquet",
        "huggingface/images/data/images-00001-of-00002.parquet",
    ]
    assert load("images")["images"]["image_id"][:] == [1, 2, 5, 6, 7, 9]


def test_without_an_image_that_may_be_passed_on_there_is_no_configuration(tmp_path, load):
    snapshot = toy_snapshot(tmp_path / "snapshot", include_images=True)
    names = [file.name for file in format_files(write, snapshot, tmp_path)]
    assert not any("/images/" in name for name in names)
    assert len(pd.read_csv(tmp_path / "huggingface/refused_images.csv")) == 12
    with pytest.raises(ValueError, match="images"):
        load("images")


def test_without_images_requested_none_are_looked_for(tmp_path):
    snapshot = toy_snapshot(tmp_path / "snapshot", digests=["0" * 64])

    def refuse(*image):
        raise AssertionError(image)

    names = [file.name for file in format_files(write, snapshot, tmp_path, refuse)]
    assert not any("images" in name for name in names)


def test_a_release_with_nothing_is_a_card(tmp_path):
    files = format_files(write, empty_snapshot(tmp_path / "snapshot"), tmp_path)
    assert [file.name for file in files] == ["huggingface/README.md"]
    assert "configs:" not in (tmp_path / files[0].name).read_text(encoding="utf-8")


def test_real_photographs_are_decoded(tmp_path, load, shared_dir):
    allowed = {"license": "CC BY-SA 4.0", "license_url": ""}
    snapshot, find = photo_snapshot(
        tmp_path / "snapshot", shared_dir / "photos", changes=allowed, include_images=True
    )
    format_files(write, snapshot, tmp_path, find)
    images = load("images")["images"]
    assert len(images) == 127
    known = {one.image_id: one for one in snapshot.images()}
    for row in images:
        one = known[row["image_id"]]
        assert row["image"].size == (one.width, one.height)
        source = Image.open(io.BytesIO(find(one.image_id, one.file_name, one.sha256)))
        assert row["image"].convert("RGB").tobytes() == source.convert("RGB").tobytes()
    texts = {text for part in load("queries").values() for text in part["text"]}
    assert "A frog." in texts

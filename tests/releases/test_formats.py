"""What holds for every format: equal bytes, who may have which file, and releases with nothing."""

import csv
import hashlib
import re

import pandas as pd
import pyarrow.parquet as pq
import pytest

from core.csv_rows import spreadsheet_text
from releases.formats.base import Access
from releases.formats.registry import all_formats
from releases.formats.writing import csv_value
from releases.snapshot.snapshot import FixedImage
from tests.releases.snapshots import (
    empty_snapshot,
    format_files,
    header,
    image,
    no_image_files,
    pair,
    query,
    toy_image_files,
    toy_snapshot,
    write_snapshot,
)

pytestmark = pytest.mark.pure


def write_all(snapshot, directory, pictures=no_image_files):
    """Write every format below `directory`; the files by name."""
    directory.mkdir()
    files = [
        file
        for one in all_formats()
        for file in format_files(one.write, snapshot, directory, pictures)
    ]
    names = [file.name for file in files]
    assert len(set(names)) == len(names)
    there = {path.relative_to(directory).as_posix() for path in directory.rglob("*.*")}
    assert set(names) == {name for name in there if (directory / name).is_file()}
    return {file.name: file for file in files}


def digests(directory):
    return {
        path.relative_to(directory).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_equal_snapshots_give_equal_bytes(tmp_path):
    find, shas = toy_image_files(tmp_path / "pictures", 9)
    for name in ("a", "b"):
        snapshot = toy_snapshot(tmp_path / f"snapshot-{name}", digests=shas, include_images=True)
        write_all(snapshot, tmp_path / name, find)
    assert digests(tmp_path / "a") == digests(tmp_path / "b")
    assert len(digests(tmp_path / "a")) > 25


@pytest.mark.parametrize("test_labels", ["public", "hidden"])
def test_a_changed_label_changes_only_files_that_hold_labels(tmp_path, test_labels):
    """Open files don't depend on what was judged relevant in the test split."""
    queries = [query(1, "a fox", split="val"), query(2, "a stork")]
    images = [image(number) for number in range(1, 9)]
    found = {}
    for name, relevant in (("a", 3), ("b", 4)):
        # One relevant image in both, so that no aggregate differs.
        pairs = [
            pair(query_id, number, number == (relevant if query_id == 2 else 5))
            for query_id in (1, 2)
            for number in range(1, 9)
        ]
        fixed = [
            FixedImage(query_id, rank, rank, 0.5) for query_id in (1, 2) for rank in range(1, 9)
        ]
        snapshot = write_snapshot(
            tmp_path / f"snapshot-{name}", header=header(test_labels=test_labels), queries=queries,
            pairs=pairs, images=images, fixed=fixed,
        )  # fmt: skip
        files = write_all(snapshot, tmp_path / name)
        found[name] = digests(tmp_path / name)
    differing = {name for name, digest in found["a"].items() if found["b"][name] != digest}
    assert {files[name].access for name in differing} == {Access.LABELS}
    assert differing == {
        "inquire_annotations.csv",
        "inquire_rerank/test.csv",
        "trec/qrels_test.txt",
        "huggingface/qrels/data/test-00000-of-00001.parquet",
        "huggingface/rerank/data/test-00000-of-00001.parquet",
        "beir/qrels/test.tsv",
        "darwin_core/all/measurement.csv",
    }


def test_open_lists_have_no_image_that_hidden_judgments_alone_name(tmp_path):
    """Image 1 was judged for a validation query, 2 is in a fixed list, 3 was judged for a test
    query alone."""
    snapshot = write_snapshot(
        tmp_path / "snapshot",
        header=header(test_labels="hidden"),
        queries=[query(1, split="val"), query(2)],
        pairs=[pair(1, 1, True), pair(2, 2, True), pair(2, 3, False)],
        images=[image(number, source_id=f"photo-{number}") for number in (1, 2, 3)],
        fixed=[FixedImage(2, 1, 2, 0.5)],
    )
    files = write_all(snapshot, tmp_path / "out")
    lists = {
        name: set(map(int, re.findall(r"photo-(\d)", _text(tmp_path / "out" / name))))
        for name in files
    }
    assert {name for name, found in lists.items() if found == {1, 2}} == {
        "attribution.csv",
        "beir/corpus.jsonl",
        "coco/images.json",
        "huggingface/corpus/data/corpus-00000-of-00001.parquet",
    }
    whole = {name for name, found in lists.items() if 3 in found}
    assert {files[name].access for name in whole} == {Access.LABELS}
    assert {
        "attribution_all.csv",
        "beir/corpus_all.jsonl",
        "coco/images_all.json",
        "huggingface/corpus/data/corpus_all-00000-of-00001.parquet",
    } <= whole


def _text(path):
    if path.suffix == ".parquet":
        return str(pq.read_table(path).to_pylist())
    return path.read_text(encoding="utf-8")


def test_what_only_hidden_labels_fill_is_not_open(tmp_path):
    """A writer that gives a file of test labels a name that its open run left free."""
    snapshot = toy_snapshot(tmp_path / "snapshot", test_labels="hidden")

    def write(part, files):
        path = files.new_path("labels.txt")
        if path and "test" in part.labeled_splits:
            path.write_text("8 1 1")

    [file] = format_files(write, snapshot, tmp_path)
    assert (file.name, file.access) == ("labels.txt", Access.LABELS)


def test_a_release_with_nothing_can_be_written(tmp_path):
    files = write_all(empty_snapshot(tmp_path / "snapshot"), tmp_path / "out")
    for name in files:
        path = tmp_path / "out" / name
        if path.suffix == ".csv":
            assert len(pd.read_csv(path)) == 0
    assert not any(name.startswith("inquire_rerank/") for name in files)
    assert not any(name.endswith(".parquet") for name in files)
    assert "DATASHEET.md" in files
    unjudged = write_snapshot(tmp_path / "unjudged", header=header(), queries=[query(3)])
    files = write_all(unjudged, tmp_path / "other")
    name = "huggingface/queries/data/test-00000-of-00001.parquet"
    assert pq.read_metadata(tmp_path / "other" / name).num_rows == 1


def test_attribution_names_every_image(tmp_path):
    write_all(toy_snapshot(tmp_path / "snapshot"), tmp_path / "out")
    frame = pd.read_csv(
        tmp_path / "out" / "attribution.csv", index_col="image_id", keep_default_na=False
    )
    assert frame.index.tolist() == list(range(1, 13))
    assert frame.loc[1].to_dict() == {
        "rights_holder": "Jo Doe",
        "license": "CC BY-NC 4.0",
        "license_url": "https://creativecommons.org/licenses/by-nc/4.0/",
        "recognised_as": "CC BY-NC 4.0",
        "obligations": "name the rights holder and the licence; no commercial use",
        "source": "toy",
        "source_id": 1,
        "file_name": "train/00019_Animalia_Ciconia_ciconia/1.jpg",
    }
    assert frame.loc[2, "license_url"] == "https://creativecommons.org/publicdomain/zero/1.0/"
    assert frame.loc[3, "rights_holder"] == "'=1+1"
    assert frame.loc[5, "rights_holder"] == 'Müller, "狐"\n<b>'
    assert frame.loc[10, "recognised_as"] == "not given"


def test_a_formula_becomes_a_text_and_other_texts_stay():
    for text in ("=1+1", "+1", "-1", "@cmd", "\t=1", "\r=1"):
        assert spreadsheet_text(text) == f"'{text}"
    for text in ("", "a=b", " =1", "Jo Doe", "'quoted'"):
        assert spreadsheet_text(text) == text


def test_values_of_csv_files():
    assert [csv_value(value) for value in (None, True, False, 3, 0.1, "a")] == [
        "", "1", "0", "3", "0.1", "a",
    ]  # fmt: skip
    line = ",".join(map(csv_value, ('a "b"', "c,d", "e\rf\n", "狐")))
    assert next(csv.reader([line], strict=True)) == ['a "b"', "c,d", "e\rf\n", "狐"]

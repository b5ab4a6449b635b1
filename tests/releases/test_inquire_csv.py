"""INQUIRE's files: what went in comes out, byte for byte."""

import csv
import io
from dataclasses import replace

import pytest

from labeling.queries.files import read_queries
from releases.formats.base import Access
from releases.formats.inquire_csv import write
from releases.snapshot.release_files import JudgmentRow, judgment_lines
from tests.releases.snapshots import (
    COMMAS,
    FORMULA,
    LINES,
    empty_snapshot,
    format_files,
    header,
    query,
    toy_snapshot,
    write_snapshot,
)

pytestmark = pytest.mark.pure

QUERY_HEADER = ",query_id,query_text,supercategory,category,iconic_group\n"


@pytest.fixture
def written(tmp_path):
    """The folder with the toy snapshot's files."""
    files = format_files(write, toy_snapshot(tmp_path / "snapshot"), tmp_path)
    assert {(file.name, file.access) for file in files} == {
        ("inquire_queries_val.csv", Access.OPEN),
        ("inquire_queries_test.csv", Access.OPEN),
        ("inquire_annotations.csv", Access.LABELS),
        ("inquire_annotations_val.csv", Access.OPEN),
        ("judgments.csv", Access.LABELS),
        ("judgments_val.csv", Access.OPEN),
    }
    return tmp_path


def text(path):
    return path.read_bytes().decode("utf-8")


def test_queries_are_verbatim(written):
    quoted = COMMAS.replace('"', '""')
    assert text(written / "inquire_queries_val.csv") == (
        f'{QUERY_HEADER}0,3,"{quoted}",Behavior,"Mating, Courtship, Reproduction",Birds\n'
        "3,21,-1+1 @penguins,Context,Human Impact,Birds\n"
    )
    assert text(written / "inquire_queries_test.csv") == (
        f'{QUERY_HEADER}1,8,{FORMULA},Behavior,"Mating, Courtship, Reproduction",\n'
        f'2,13,"{LINES}",Species,Species ID,Birds\n'
        '4,34,a query that nobody judged,Behavior,"Mating, Courtship, Reproduction",Birds\n'
    )


def test_annotations_are_the_relevant_pairs(written):
    assert text(written / "inquire_annotations_val.csv") == (
        "query_id,image_id,image_path\n"
        "3,1,train/00019_Animalia_Ciconia_ciconia/1.jpg\n"
        "3,2,train/00019_Animalia_Ciconia_ciconia/2.jpg\n"
        "21,9,train/00019_Animalia_Ciconia_ciconia/9.jpg\n"
        "21,10,train/00019_Animalia_Ciconia_ciconia/10.jpg\n"
        "21,11,train/00019_Animalia_Ciconia_ciconia/11.jpg\n"
    )
    everything = list(csv.reader(text(written / "inquire_annotations.csv").splitlines()))
    assert everything[3:6] == [
        ["8", "1", "train/00019_Animalia_Ciconia_ciconia/1.jpg"],
        ["8", "7", "train/00019_Animalia_Ciconia_ciconia/7.jpg"],
        ["13", "5", 'train/a, "b"/5 🦊.jpg'],
    ]
    assert len(everything) == 9


def test_judgments_are_those_of_every_person(written):
    lines = text(written / "judgments.csv").splitlines()
    assert len(lines) == 18
    assert lines[5:9] == [
        "8,1,relevant,annotator_1,1,2.500,list",
        "8,1,relevant,annotator_2,1,4.000,search",
        "8,6,not_relevant,annotator_1,6,2.500,list",
        "8,6,relevant,annotator_2,6,4.000,search",
    ]
    val = text(written / "judgments_val.csv").splitlines()
    assert val == [lines[0], *(line for line in lines if line.startswith(("3,", "21,")))]
    assert len(val) == 8


def test_without_queries_there_are_headers(tmp_path):
    format_files(write, empty_snapshot(tmp_path / "snapshot"), tmp_path)
    assert text(tmp_path / "inquire_queries_val.csv") == QUERY_HEADER
    assert text(tmp_path / "inquire_annotations.csv") == "query_id,image_id,image_path\n"
    assert len(text(tmp_path / "judgments.csv").splitlines()) == 1


def test_indexes_and_places_of_imported_files_are_kept(tmp_path):
    queries = [
        query(3, "a", index=7, row=1, split="val"),
        query(5, "b", index=9, row=0, split="val"),
        query(8, "c", split="val"),
    ]
    snapshot = write_snapshot(tmp_path / "snapshot", header=header(), queries=queries)
    format_files(write, snapshot, tmp_path)
    lines = text(tmp_path / "inquire_queries_val.csv").splitlines()
    assert [line.split(",")[:3] for line in lines[1:]] == [
        ["9", "5", "b"],
        ["7", "3", "a"],
        ["2", "8", "c"],
    ]


def test_the_released_inquire_files_come_out_unchanged_where_their_order_is_known(
    tmp_path, shared_dir
):
    queries, originals = [], {}
    for split in ("val", "test"):
        name = f"inquire_queries_{split}.csv"
        originals[name] = (shared_dir / "inquire" / name).read_bytes()
        read, errors = read_queries(io.BytesIO(originals[name]), name=name)
        assert errors == []
        queries += [
            query(row.query_id, row.query_text, supercategory=row.supercategory, split=split,
                  category=row.category, iconic_group=row.iconic_group, row=place)
            for place, row in enumerate(read)
        ]  # fmt: skip
    queries.sort(key=lambda row: row.query_id)
    assert len(queries) == 250
    for folder, rows in (("placed", queries), ("not", [replace(one, row=-1) for one in queries])):
        snapshot = write_snapshot(tmp_path / f"{folder} s", header=header(), queries=rows)
        (tmp_path / folder).mkdir()
        format_files(write, snapshot, tmp_path / folder)
    val, test = originals
    for name in originals:
        assert (tmp_path / "placed" / name).read_bytes() == originals[name]
    assert (tmp_path / "not" / test).read_bytes() == originals[test]
    # Without its order the validation file comes out by id.
    head, *lines = originals[val].splitlines()
    by_id = sorted(lines, key=lambda line: int(line.split(b",")[1]))
    assert (tmp_path / "not" / val).read_bytes().splitlines() == [head, *by_id] != [head, *lines]


def test_rows_of_judgments_must_ascend():
    judgments = [JudgmentRow(3, 7, "unsure", number, 1, 0, "list") for number in (2, 1)]
    with pytest.raises(ValueError, match="rows must ascend"):
        list(judgment_lines(judgments))

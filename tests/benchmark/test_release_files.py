"""The files of a release: exact bytes out, and errors by file, line and field in."""

import io
from pathlib import Path

import pytest

from benchmark.releases.formats.datasheet import SOURCE_WORDS
from benchmark.releases.snapshot.release_files import (
    SOURCES,
    AnnotationRow,
    JudgmentRow,
    read_annotations,
    read_release,
    write_annotations,
    write_judgments,
)
from labeling.judging.models import JudgmentSource

QUERY_HEADER = ",query_id,query_text,supercategory,category,iconic_group\n"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A small release in the official layout: two queries, of which one has relevant images."""
    (tmp_path / "inquire_queries_val.csv").write_text(
        QUERY_HEADER + "1,8,a fox ,Species,Species ID,\n"
    )
    (tmp_path / "inquire_queries_test.csv").write_text(
        QUERY_HEADER + "0,3,a stork,Species,Species ID,Birds\n"
    )
    (tmp_path / "inquire_annotations.csv").write_text(
        "query_id,image_id,image_path\n3,7,train/a/7.jpg\n3,12,train/a/12.jpg\n"
    )
    return tmp_path


def test_annotations_are_written_in_the_released_columns():
    file = io.StringIO()
    rows = [AnnotationRow(3, 7, "train/a/7.jpg"), AnnotationRow(3, 12, 'a, "b".jpg')]
    assert write_annotations(rows, file) == 2
    assert file.getvalue() == (
        'query_id,image_id,image_path\n3,7,train/a/7.jpg\n3,12,"a, ""b"".jpg"\n'
    )


def test_judgments_are_written_with_what_is_unknown_left_empty():
    file = io.StringIO()
    rows = [
        JudgmentRow(3, 7, "relevant", 1, 4, 1.23456, "list"),
        JudgmentRow(3, 7, "unsure", 2, None, 0.0, "search"),
    ]
    assert write_judgments(rows, file) == 2
    assert file.getvalue() == (
        "query_id,image_id,relevance,annotator,rank,seconds,source\n"
        "3,7,relevant,annotator_1,4,1.235,list\n"
        "3,7,unsure,annotator_2,,0.000,search\n"
    )


def test_every_source_of_a_judgment_can_be_released_and_read_again():
    assert set(SOURCES) == set(JudgmentSource.values) == set(SOURCE_WORDS)


def test_rows_out_of_order_are_not_written():
    annotation = AnnotationRow(3, 7, "a")
    with pytest.raises(ValueError, match="rows must ascend"):
        write_annotations([annotation, annotation], io.StringIO())
    judgments = [JudgmentRow(3, 7, "unsure", number, 1, 0, "list") for number in (2, 1)]
    with pytest.raises(ValueError, match="rows must ascend"):
        write_judgments(judgments, io.StringIO())


def test_a_release_is_read(directory):
    release, errors = read_release(directory)
    assert errors == []
    assert [(query.query_id, query.split) for query in release.queries.values()] == [
        (3, "test"),
        (8, "val"),
    ]
    assert release.relevant == {3: {7, 12}, 8: set()}


def test_the_released_inquire_queries_make_a_readable_release(directory, shared_dir):
    for split in ("val", "test"):
        name = f"inquire_queries_{split}.csv"
        (directory / name).write_bytes((shared_dir / "inquire" / name).read_bytes())
    release, errors = read_release(directory)
    assert errors == []
    assert len(release.queries) == 250
    assert release.relevant[3] == {7, 12}


def test_a_missing_file_is_an_os_error(directory):
    (directory / "inquire_annotations.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"inquire_annotations\.csv"):
        read_release(directory)


def test_a_query_in_both_files_is_named(directory):
    (directory / "inquire_queries_test.csv").write_text(
        QUERY_HEADER + "0,8,a stork,Species,Species ID,Birds\n"
    )
    _, errors = read_release(directory)
    path = directory / "inquire_queries_test.csv"
    assert [str(error) for error in errors] == [
        f"{path}, line 2, query_id: 8 is in the other query file too"
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "a.csv, line 1: the file is empty"),
        ("query_id,image_path\n", "a.csv, line 1, image_id: the header must name this column"),
        ("query_id,image_id\n3,x\n", "a.csv, line 2, image_id: 'x' is not a whole number"),
        ("query_id,image_id\n,7\n", "a.csv, line 2, query_id: '' is not a whole number"),
        ("query_id,image_id\n3,7\n9,7\n", "a.csv, line 3, query_id: 9 is in neither query file"),
        ("query_id,image_id\n3,7,x\n", "a.csv, line 2: 3 fields where the header has 2"),
    ],
)
def test_bad_annotations_are_named(text, expected):
    _, errors = read_annotations(io.StringIO(text), name="a.csv", query_ids=[3])
    assert len(errors) == 1
    assert str(errors[0]).startswith(expected)


def test_a_pair_that_stands_twice_is_the_same_pair():
    lines = [b"query_id,image_id\n", b"3,7\n", b"3,7\n"]
    assert read_annotations(lines, name="a.csv", query_ids=[3]) == ({3: {7}}, [])

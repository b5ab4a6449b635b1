"""Reading a benchmark in INQUIRE's layout: any of its shapes, and every error by name."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from releases.importing.layout import Layout
from releases.importing.layout_files import LayoutRefused, layout_files, layout_read
from tests.releases.layouts import ANNOTATIONS, FOX, QUERIES, write_layout

pytestmark = pytest.mark.pure


def pairs(layout: Layout) -> list[tuple[int, int]]:
    return [(one["query_id"], one["image_id"]) for one in layout.pairs.to_pylist()]


def refusals(directory: Path) -> list[str]:
    with pytest.raises(LayoutRefused) as refused:
        layout_read(directory)
    return [str(error).removeprefix(f"{directory}, ") for error in refused.value.errors]


def test_queries_pairs_and_images_in_order(tmp_path: Path) -> None:
    rows = ["9,2,a/2.jpg", "9,1,a/1.jpg", "7,1,a/1.jpg", "9,2,a/2.jpg"]
    layout = layout_read(write_layout(tmp_path, annotations=rows))
    assert [one.query.query_id for one in layout.queries] == [7, 9]
    assert [one.query.split for one in layout.queries] == ["val", "test"]
    assert pairs(layout) == [(7, 1), (9, 1), (9, 2)]
    assert list(layout.paths()) == [(1, "a/1.jpg"), (2, "a/2.jpg")]
    assert (len(layout.annotations), layout.duplicates) == (4, 1)
    assert (len(layout.pairs), len(layout.images)) == (3, 2)


def test_ids_alone_are_enough_and_columns_have_any_order(tmp_path: Path) -> None:
    write_layout(tmp_path, annotations=["7,5", "9,4"], header="query_id,image_id")
    assert list(layout_read(tmp_path).paths()) == [(4, ""), (5, "")]
    header = "image_path,split,image_id,query_id"
    write_layout(tmp_path, annotations=["b.jpg,val,5,7"], header=header)
    layout = layout_read(tmp_path)
    assert (pairs(layout), list(layout.paths())) == ([(7, 5)], [(5, "b.jpg")])


def test_one_file_of_queries_with_a_split_column(tmp_path: Path) -> None:
    write_layout(tmp_path)
    for split in ("val", "test"):
        (tmp_path / f"inquire_queries_{split}.csv").unlink()
    rows = [f"9,a red fox,{FOX},test", f"7,a fox,{FOX},val", ""]
    (tmp_path / "queries.csv").write_text("\n".join((QUERIES + ",split", *rows)))
    layout = layout_read(tmp_path)
    found = [(one.query.query_id, one.query.split, one.row) for one in layout.queries]
    assert found == [(7, "val", 0), (9, "test", 0)]
    (tmp_path / "queries.csv").write_text("\n".join((QUERIES, f"7,a fox,{FOX}", "")))
    assert refusals(tmp_path) == [
        "queries.csv, line 1, split: a file of both splits needs this column"
    ]


def test_annotations_by_split_where_there_is_no_file_of_all(tmp_path: Path) -> None:
    write_layout(tmp_path)
    whole = tmp_path / "inquire_annotations.csv"
    part = tmp_path / "inquire_annotations_val.csv"
    part.write_text(ANNOTATIONS + "\n7,1,a/1.jpg\n")
    assert layout_files(tmp_path).annotations == [whole]
    whole.rename(tmp_path / "inquire_annotations_test.csv")
    layout = layout_read(tmp_path)
    assert (len(layout.annotations), layout.duplicates, len(layout.pairs)) == (4, 1, 3)


def test_an_index_that_repeats_in_each_file_says_nothing(tmp_path: Path) -> None:
    write_layout(tmp_path)
    for split, row in (("val", "0,7,a fox"), ("test", "0,9,a red fox")):
        path = tmp_path / f"inquire_queries_{split}.csv"
        path.write_text(f",{QUERIES}\n{row},{FOX}\n")
    layout = layout_read(tmp_path)
    assert [one.query.index for one in layout.queries] == [-1, -1]


def test_missing_and_ambiguous_files_are_named(tmp_path: Path) -> None:
    assert refusals(tmp_path / "nowhere") == ["line 1: there is no such directory"]
    assert [error.split(":")[1] for error in refusals(tmp_path)] == [
        " no file of queries",
        " no file of annotations",
    ]
    write_layout(tmp_path)
    (tmp_path / "other_annotations.csv").write_text(ANNOTATIONS)
    assert refusals(tmp_path) == [
        "line 1: which of inquire_annotations.csv, other_annotations.csv is meant? "
        "Keep only one of them"
    ]


@pytest.mark.parametrize(
    ("rows", "errors"),
    [
        (
            ["7,1,a.jpg", "8,1,a.jpg"],
            ["line 3, query_id: '8' is in no query file that this one goes with"],
        ),
        (
            ["7,1"],
            ["line 2: 2 fields where the header has 3; a field with a comma must stand in quotes"],
        ),
        (
            ["7,1,a.jpg", "9,1,b.jpg"],
            ["line 3, image_path: image 1 has the path 'a.jpg' in inquire_annotations.csv, line 2"],
        ),
        (["7,1,\udcff.jpg"], ["line 2: not UTF-8 text; save the file as UTF-8"]),
        (
            ["x,1,a.jpg", "", "7,y,a.jpg"],
            [
                "line 2, query_id: 'x' is not a whole number from 0",
                "line 4, image_id: 'y' is not a whole number from 0",
            ],
        ),
    ],
)
def test_errors_of_annotations_by_line_and_field(
    tmp_path: Path, rows: list[str], errors: list[str]
) -> None:
    write_layout(tmp_path)
    text = "\n".join((ANNOTATIONS, *rows, ""))
    path = tmp_path / "inquire_annotations.csv"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert refusals(tmp_path) == [f"inquire_annotations.csv, {error}" for error in errors]


def test_errors_of_queries_come_before_those_of_annotations(tmp_path: Path) -> None:
    write_layout(
        tmp_path, val=["7,,Species,Species ID,"], test=["7,a fox," + FOX], annotations=["x"]
    )
    assert refusals(tmp_path) == [
        "inquire_queries_val.csv, line 2, query_text: the text is blank",
    ]
    write_layout(tmp_path, test=["7,a fox," + FOX], annotations=["x"])
    assert refusals(tmp_path) == [
        "inquire_queries_test.csv, line 2, query_id: 7 is already in "
        "inquire_queries_val.csv, line 2",
    ]
    write_layout(tmp_path, val=[], test=[])
    assert refusals(tmp_path) == ["inquire_queries_val.csv, line 1: there is no query in the files"]


def test_a_header_without_a_column_is_refused(tmp_path: Path) -> None:
    write_layout(tmp_path, header="query_id,image_path,image")
    assert refusals(tmp_path) == [
        "inquire_annotations.csv, line 1, image_id: the header must name this column once; it "
        "names query_id, image_path, image"
    ]


def test_rows_are_held_as_columns_alone(tmp_path: Path) -> None:
    def peak(rows: int) -> int:
        folder = tmp_path / str(rows)
        lines = (f"{7 if n % 5 else 9},{n},{'deep/' * 40}{n}.jpg" for n in range(rows))
        write_layout(folder, annotations=lines)
        tracemalloc.start()
        layout = layout_read(folder)
        count, images = len(layout.pairs), sum(1 for _ in layout.paths())
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert count == images == rows
        return found

    # 15,000 more rows hold 3 MB of paths, and 100 bytes each in indexes of the columns.
    assert peak(20_000) < peak(5_000) + 1_500_000

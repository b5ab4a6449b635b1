"""INQUIRE's query files: read without a loss, refused with file, line and field, written byte for
byte."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.csv_rows import MAX_ERRORS, csv_field
from labeling.queries.categories import CATEGORIES, ICONIC_GROUPS, SPLITS
from labeling.queries.files import QueryRow, read_queries, split_of_name, write_queries

pytestmark = pytest.mark.pure

HEADER = b"query_id,query_text,supercategory,category,iconic_group"
MATING = b'Behavior,"Mating, Courtship, Reproduction"'


def read(data: bytes, name: str = "queries_val.csv") -> tuple[list[QueryRow], list[str]]:
    rows, errors = read_queries(io.BytesIO(data), name=name)
    return rows, [str(error) for error in errors]


def messages(*lines: bytes, header: bytes = HEADER) -> list[str]:
    rows, errors = read(b"\n".join((header, *lines, b"")))
    assert errors, rows
    return errors


def texts(rows: list[QueryRow]) -> dict[str, str]:
    """The content of each split's file."""
    files = {"val": io.StringIO(), "test": io.StringIO()}
    indexes = {row.query_id: place for place, row in enumerate(rows)}
    write_queries(rows, files, indexes=indexes)
    return {split: file.getvalue() for split, file in files.items()}


@pytest.fixture
def released(shared_dir) -> dict[str, bytes]:
    """The released query files by split."""
    folder = shared_dir / "inquire"
    return {split: (folder / f"inquire_queries_{split}.csv").read_bytes() for split in SPLITS}


def test_the_released_files_go_in_and_out_without_a_loss(released):
    rows: list[QueryRow] = []
    for split, data in released.items():
        more, errors = read(data, f"inquire_queries_{split}.csv")
        assert errors == []
        assert {row.split for row in more} == {split}
        rows += more
    assert len(rows) == 250
    rows.sort(key=lambda row: row.query_id)
    written = texts(rows)
    assert written["test"].encode() == released["test"]
    # The released validation file is shuffled; its rows are the same.
    assert sorted(written["val"].encode().split(b"\n")) == sorted(released["val"].split(b"\n"))


def test_the_categories_are_those_of_the_released_files(released):
    rows = [row for name, data in released.items() for row in read(data, f"{name}.csv")[0]]
    assert {row.category: row.supercategory for row in rows} == CATEGORIES
    assert {row.iconic_group for row in rows} == {"", *ICONIC_GROUPS}


def test_the_split_comes_from_the_name():
    for name, split in (
        ("/a/b/inquire_queries_TEST.csv", "test"),
        ("val.csv", "val"),
        ("interval.csv", None),
    ):
        assert split_of_name(name) == split
    # Without one the test split is meant.
    assert read(HEADER + b"\n1,fox,Species,Species ID,\n", "mine.csv")[0][0].split == "test"


def test_byte_order_mark_crlf_and_the_index_column_are_understood():
    data = b"\xef\xbb\xbf," + HEADER + b"\r\n0,7, two storks ," + MATING + b",Birds\r\n\r\n"
    rows, errors = read(data)
    assert errors == []
    assert rows == [
        QueryRow(
            query_id=7,
            query_text=" two storks ",
            supercategory="Behavior",
            category="Mating, Courtship, Reproduction",
            iconic_group="Birds",
            split="val",
            line=2,
            index=0,
        )
    ]


@pytest.mark.parametrize("separator", [";", "\t"])
def test_other_separators_and_capital_names_are_understood(separator):
    """As Excel writes a table where a comma parts decimals."""
    header = HEADER.decode().replace("query_id", "Query_ID").replace(",", separator)
    text = f'"a fox{separator} at ""night"", running"'
    line = separator.join(["7", text, "Species", "Species ID", "Mammals"])
    rows, errors = read(f"\ufeff\n{header}\n{line}\n8{separator}short".encode())
    assert [(row.query_id, row.query_text, row.line) for row in rows] == [
        (7, f'a fox{separator} at "night", running', 3)
    ]
    assert errors == [
        "queries_val.csv, line 4: 2 fields where the header has 5; a field with a comma must stand "
        "in quotes"
    ]


def test_optional_columns():
    header = b"split,species,guidelines,scientific_terms," + HEADER
    line = b"test,Vulpes vulpes; Vulpes lagopus;;Vulpes vulpes, Only adults ,TRUE,1,fox,"
    (row,), errors = read(header + b"\n" + line + b"Species,Species ID,\n")
    assert errors == []
    assert row.split == "test"
    said = messages(
        b"1,fox,Species,Species ID,,train,maybe", header=HEADER + b",split,scientific_terms"
    )
    assert [error.partition(": ")[0] for error in said] == [
        "queries_val.csv, line 2, split",
        "queries_val.csv, line 2, scientific_terms",
    ]
    assert row.species == ("Vulpes vulpes", "Vulpes lagopus")
    assert (row.guidelines, row.scientific_terms, row.iconic_group) == ("Only adults", True, "")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b",fox,Species,Species ID,", "query_id: the id is missing"),
        (b"1.0,fox,Species,Species ID,", "query_id: '1.0' is not a whole number"),
        (b"2147483648,fox,Species,Species ID,", "query_id: '2147483648' is not a whole number"),
        ("٣,fox,Species,Species ID,".encode(), "query_id: '٣' is not a whole number"),
        (b"1, ,Species,Species ID,", "query_text: the text is blank"),
        (b"1," + b"x" * 501 + b",Species,Species ID,", "query_text: 501 characters; at most 500"),
        (b"1,fox,Species,Species Id,", "category: unknown category 'Species Id'; known are"),
        (b"1,fox,Context,Species ID,", "supercategory: 'Context', but 'Species ID' belongs to"),
        (b"1,fox,Species,Species ID,bird", "iconic_group: unknown iconic group 'bird'"),
        (b"1,fox,Species,Species ID", "4 fields where the header has 5"),
        (b"1,a fox, red,Species,Species ID,", "6 fields where the header has 5"),
        (b"1,f\0x,Species,Species ID,", "holds NUL bytes"),
        (b"1,f\xfcchs,Species,Species ID,", "not UTF-8 text; save the file as UTF-8"),
        (b'1,"fox,Species,Species ID,', "not readable as CSV"),
    ],
)
def test_a_bad_row_is_named_by_file_line_and_field(line, expected):
    errors = messages(b"5,ok,Species,Species ID,", line)
    assert len(errors) == 1
    assert errors[0].startswith("queries_val.csv, line 3")
    assert expected in errors[0]


def test_a_file_of_errors_is_read_no_further_than_a_hundred():
    assert len(messages(*[b"1"] * 150)) == MAX_ERRORS


def test_all_errors_are_collected_and_right_rows_are_still_read():
    data = b"\n".join(
        (
            HEADER,
            b"1,,Species,Nonsense,",
            b'2,"two\nlines",Species,Species ID,',
            b"2,fox,Species,Species ID,",
            b"x,fox,Nonsense,Nonsense,",
        )
    )
    rows, errors = read(data)
    assert [(row.query_id, row.query_text, row.line) for row in rows] == [(2, "two\nlines", 3)]
    assert [error.partition(": ")[0].removeprefix("queries_val.csv, ") for error in errors] == [
        "line 2, query_text",
        "line 2, category",
        "line 5, query_id",
        "line 6, query_id",
        "line 6, category",
        "line 6, supercategory",
    ]
    assert "2 is already on line 3" in errors[2]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (b"", "line 1: the file is empty"),
        (b"\xff\xfeq\0u\0", "line 1: the file is UTF-16"),
        (
            HEADER.replace(b"query_text,", b""),
            "line 1, query_text: the header must name this column",
        ),
        (HEADER + b",category", "line 1, category: the header must name this column once"),
        (HEADER + b",specie", "line 1, specie: unknown column"),
        (b"," + HEADER + b",", "line 1, (unnamed): the column stands twice"),
    ],
)
def test_a_bad_header_is_one_error_and_no_rows(header, expected):
    rows, errors = read(header + b"\n1,fox,Species,Species ID,\n" if header else b"")
    assert rows == []
    assert len(errors) == 1
    assert expected in errors[0]


def test_the_index_counts_all_queries_of_both_splits():
    row = QueryRow(3, "a", "Species", "Species ID", "", "val")
    rows = [row, QueryRow(5, 'b, "c"', "Species", "Species ID", "Birds", "test")]
    rows.append(QueryRow(8, "d ", "Species", "Species ID", "", "val"))
    header = ",query_id,query_text,supercategory,category,iconic_group\n"
    assert texts(rows) == {
        "val": header + "0,3,a,Species,Species ID,\n2,8,d ,Species,Species ID,\n",
        "test": header + '1,5,"b, ""c""",Species,Species ID,Birds\n',
    }


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_any_text_survives_writing_and_reading(text):
    line = csv_field(text) + "," + csv_field(text) + "\n"
    assert list(csv.reader(io.StringIO(line, newline=""), strict=True)) == [[text, text]]


def test_another_benchmarks_vocabulary_is_taken_where_that_is_asked_for():
    data = b"query_id,query_text,supercategory,category,iconic_group,mood\n"
    data += b"1,a tram,Traffic,Rails,Vehicles,calm\n2,a bus, ,,Vehicles,\n"
    assert "unknown column" in read(data)[1][0]
    rows, errors = read_queries(io.BytesIO(data), name="city_val.csv", vocabulary=False)
    assert [str(error) for error in errors] == [
        "city_val.csv, line 3, supercategory: the supercategory is blank",
        "city_val.csv, line 3, category: the category is blank",
    ]
    assert [(row.supercategory, row.category, row.iconic_group) for row in rows] == [
        ("Traffic", "Rails", "Vehicles")
    ]


def test_control_characters_are_named_and_never_printed():
    rows, errors = read_queries(
        [HEADER + b"\n", b"7,a\x1b[2J fox," + MATING + b",Mammals\n"], name="a\x07_val.csv"
    )
    assert rows == []
    assert [str(error) for error in errors] == [
        r"a\x07_val.csv, line 2, query_text: holds control characters: 'a\x1b[2J fox'"
    ]
    rows, errors = read(HEADER + b"\n" + b'7,"a\tfox\non ice",' + MATING + b",Mammals\n")
    assert (errors, rows[0].query_text) == ([], "a\tfox\non ice")

"""Run files: both formats, the order that scores and ids give, and each kind of bad input."""

import io

import pytest

from benchmark.run_files import RunLine, read_run, run_format, write_trec
from benchmark.tables import MAX_ERRORS


def read(data: str | bytes, name: str = "run.txt"):
    raw = data.encode() if isinstance(data, str) else data
    run, errors = read_run(io.BytesIO(raw), name=name)
    return {query: ranking.image_ids.tolist() for query, ranking in run.items()}, [
        str(error) for error in errors
    ]


def test_scores_decide_the_order_and_the_smaller_id_breaks_ties():
    lines = ["3 Q0 20 1 0.5 t", "3 Q0 9 2 0.5 t", "3 Q0 7 3 0.9 t", "3 Q0 100 4 -1e-3 t"]
    assert read("\n".join(lines)) == ({3: [7, 9, 20, 100]}, [])


def test_negative_zero_ties_with_zero():
    assert read("1 Q0 5 1 0.0 t\n1 Q0 4 1 -0.0 t\n")[0] == {1: [4, 5]}


def test_trec_and_csv_say_the_same():
    trec = read("1\tQ0\t5\t1\t2.5\ttag\n\n2 Q0 5 1 1 tag\r\n1 Q0 6 2 3 tag")
    csv = read("\ufeffscore, query_id ,note,image_id\r\n2.5,1,x,5\r\n\r\n1,2,,5\r\n3,1,,6")
    assert trec == csv == ({1: [6, 5], 2: [5]}, [])


def test_ids_of_64_bits_are_kept_exactly():
    largest = 2**63 - 1
    assert read(f"{largest},{largest - 1},1\n".join(["query_id,image_id,score\n", ""])) == (
        {largest: [largest - 1]},
        [],
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("query_id,image_id,score", "csv"),
        ("query_id, image_id, score, a, b, c", "csv"),
        ("1 Q0 5 1 0.5 my,run", "trec"),
        ("1 Q0 5 1 0.5 run", "trec"),
    ],
)
def test_the_format_is_told_by_the_content(line, expected):
    assert run_format(line) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("1 Q0 5 1 0.5", "line 2: 5 fields where a TREC run has 6"),
        ("x Q0 5 1 0.5 t", "line 2, query_id: 'x' is not a whole number"),
        ("1 Q0 5.0 1 0.5 t", "line 2, image_id: '5.0' is not a whole number"),
        ("1 Q0 9223372036854775808 1 1 t", "line 2, image_id: '9223372036854775808' is not"),
        ("1 Q0 -5 1 0.5 t", "line 2, image_id: '-5' is not a whole number"),
        ("1 Q0 5 1 high t", "line 2, score: 'high' is not a finite number"),
        ("1 Q0 5 1 nan t", "line 2, score: 'nan' is not a finite number"),
        ("1 Q0 5 1 -inf t", "line 2, score: '-inf' is not a finite number"),
        ("1 Q0 5 1 1e999 t", "line 2, score: '1e999' is not a finite number"),
        ("1 Q0 5 1 1_0 t", "line 2, score: '1_0' is not a finite number"),
        ("1 Q0 7 1 0.5 t", "line 2, image_id: 7 stands twice for query_id=1"),
    ],
)
def test_a_bad_trec_line_is_named(line, expected):
    _, errors = read(f"1 Q0 7 1 0.9 t\n{line}\n")
    assert len(errors) == 1
    assert errors[0].startswith("run.txt, ")
    assert expected in errors[0]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("", "line 1: the file is empty"),
        ("\n \n", "line 1: the file is empty"),
        ("query_id,score\n1,2\n", "line 1, image_id: the header must name this column once"),
        ("query_id,image_id,score,score\n", "line 1, score: the header must name this column once"),
        ("1,5,0.5\n2,5,0.5\n", "line 1, query_id: the header must name this column once"),
        ("query_id,image_id,score\n1,2\n", "line 2: 2 fields where the header has 3"),
        ('query_id,image_id,score\n1,"2,3\n', "line 2: not readable as CSV"),
        ("query_id,image_id,score\n1,2,\n", "line 2, score: '' is not a finite number"),
        (b"query_id,image_id,score\n1,\xff,1\n", "line 2, image_id"),
    ],
)
def test_a_bad_file_is_named(data, expected):
    run, errors = read(data)
    assert run == {}
    assert expected in errors[0]


def test_every_repeat_of_an_image_is_named_with_its_line():
    data = "1 Q0 7 1 3 t\n2 Q0 7 1 3 t\n1 Q0 8 2 2 t\n1 Q0 7 3 1 t\n1 Q0 7 4 0 t\n"
    assert [error.partition(",")[2].partition(":")[0] for error in read(data)[1]] == [
        " line 4, image_id",
        " line 5, image_id",
    ]


@pytest.mark.parametrize("bad", ["x Q0 x 1 x t\n", "nonsense\n"])
def test_a_file_full_of_errors_is_read_no_further(bad):
    run, errors = read(bad * 1000)
    assert run == {}
    assert len(errors) == MAX_ERRORS


def test_a_written_run_is_read_back_exactly():
    score = 0.1 + 0.2
    rows = [RunLine(1, 8, 1, score), RunLine(1, 3, 2, 0.3), RunLine(4, 8, 1, -1.0)]
    file = io.StringIO()
    assert write_trec(rows, file, tag="ViT-B-32 / openai") == 3
    assert file.getvalue().startswith("1 Q0 8 1 0.30000000000000004 ViT-B-32_/_openai\n")
    run, errors = read_run(io.StringIO(file.getvalue()), name="run")
    assert errors == []
    assert run[1].image_ids.tolist() == [8, 3]
    assert run[1].scores.tolist() == [score, 0.3]
    assert run[4].scores.tolist() == [-1.0]

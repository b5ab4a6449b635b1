"""Files of judgments: what is read, and what is refused by line and field."""

from __future__ import annotations

import io

import pytest

from labeling.judging.files import JudgmentRow, read_judgments

pytestmark = pytest.mark.pure


def test_rows_and_lines():
    data = b"\xef\xbb\xbfquery_id,image_id,relevance\r\n1,10,relevant\r\n\r\n1,11,unsure\r\n"
    assert read_judgments(io.BytesIO(data), name="j.csv") == (
        [JudgmentRow(1, 10, "relevant", 2), JudgmentRow(1, 11, "unsure", 4)],
        [],
    )


def test_inquires_annotations_are_relevant():
    data = b"query_id,image_id,image_path\n1,10,train/a.jpg\n"
    assert read_judgments(io.BytesIO(data), name="j.csv")[0] == [JudgmentRow(1, 10, "relevant", 2)]


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", "j.csv, line 1: the file is empty; a header with query_id, image_id is needed"),
        (b"query_id,relevance\n", "j.csv, line 1, image_id: the header must name this column"),
        (b"query_id,image_id,score\n", "j.csv, line 1, score: unknown column"),
        (
            b"query_id,image_id,image_id\n",
            "j.csv, line 1, image_id: the header must name this column once",
        ),
        (b"query_id,image_id\n1\n", "j.csv, line 2: 1 fields where the header has 2"),
        (b"query_id,image_id\nx,1\n", "j.csv, line 2, query_id: 'x' is not a whole"),
        (b"query_id,image_id\n1,-1\n", "j.csv, line 2, image_id: '-1' is not a whole"),
        (b"query_id,image_id\n1,9223372036854775808\n", "j.csv, line 2, image_id: '92233"),
        (b"query_id,image_id\n1,\xff\n", "j.csv, line 2: not UTF-8 text"),
        (b"query_id,image_id\n1,\0\n", "j.csv, line 2: holds NUL bytes"),
        (b'query_id,image_id\n1,"2\n', "j.csv, line 2: not readable as CSV"),
        (b"query_id,image_id,relevance\n1,2,maybe\n", "j.csv, line 2, relevance: 'maybe'"),
        (b"query_id,image_id\n1,2\n1,2\n", "j.csv, line 3, image_id: query 1 and image 2 ar"),
    ],
)
def test_what_is_wrong_is_named_by_line_and_field(data, error):
    found = read_judgments(io.BytesIO(data), name="j.csv")[1]
    assert [str(one)[: len(error)] for one in found] == [error]

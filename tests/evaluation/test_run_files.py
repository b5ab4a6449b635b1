"""Run files: the formats, the order that scores and ids give, and each kind of bad input."""

import gzip
import io
import json

import numpy as np
import pytest

from core.csv_rows import MAX_ERRORS
from core.line_stream import GROWTH_FREE, MAX_BLANK_LINES, MAX_GROWTH, MAX_LINE
from evaluation.scoring.run_files import (
    IDS_AT_A_TIME,
    Ranking,
    RunLine,
    read_run,
    run_format,
    write_trec,
)

pytestmark = pytest.mark.pure


def read(data: str | bytes, **options):
    raw = data.encode() if isinstance(data, str) else data
    run, errors = read_run(io.BytesIO(raw), name="run.txt", **options)
    return {query: ranking.image_ids.tolist() for query, ranking in run.items()}, [
        str(error) for error in errors
    ]


def test_scores_decide_the_order_and_the_smaller_id_breaks_ties():
    lines = ["3 Q0 20 1 0.5 t", "3 Q0 9 2 0.5 t", "3 Q0 7 3 0.9 t", "3 Q0 100 4 -1e-3 t"]
    assert read("\n".join(lines)) == ({3: [7, 9, 20, 100]}, [])
    assert read("1 Q0 5 1 0.0 t\n1 Q0 4 1 -0.0 t\n")[0] == {1: [4, 5]}


def test_all_formats_say_the_same():
    trec = read("1\tQ0\t5\t1\t2.5\ttag\n\n2 Q0 5 1 1 tag\r\n1 Q0 6 2 3 tag")
    csv = read("\ufeffscore, query_id ,note,image_id\r\n2.5,1,x,5\r\n\r\n1,2,,5\r\n3,1,,6")
    lines = [
        '\ufeff {"score": 2.5, "query_id": 1, "note": [{}], "image_id": 5}',
        "",
        '{"score": 1, "query_id": "2", "image_id": "5"}\r',
        '{"score": 3e0, "query_id": 1, "image_id": 6, "image_id": 6}',
    ]
    jsonl = read("\n".join(lines))
    nested = read('\ufeff{"1": {"5": 2.5, "6": 3},\n "2": {"5": 1}}')
    assert trec == csv == jsonl == nested == ({1: [6, 5], 2: [5]}, [])


def test_nested_json_of_any_size_in_one_line_and_what_is_wrong_with_it():
    queries = {str(query): {str(n): 1 / n for n in range(1, 2000)} for query in range(1, 11)}
    text = json.dumps(queries)
    assert len(text) > 3 * MAX_LINE
    run, errors = read(gzip.compress(text.encode()))
    assert (list(run), run[3][:2], errors) == (list(range(1, 11)), [1, 2], [])
    for wrong, message in (
        ('{"1": {"5": "x"}}', "line 1, score: 'x' is not a finite number"),
        ('{"1": {"a": 1}}', "line 1, image_id: 'a' is not a whole number"),
        ('{\n"1": [5, 6]}', "not an object {query_id: {image_id: score}}"),
        ('{"1": 5}', "not an object {query_id: {image_id: score}}"),
        ('{"1": {"5": {"6": 1}}}', "not an object {query_id: {image_id: score}}"),
        ('{"1": {"5": 1}', "not JSON"),
        ('{"1": {"5": 1, "5": 2}}', "5"),
        ("{}", "the file holds no row"),
    ):
        run, errors = read(wrong)
        assert run == {}
        assert message in errors[0], wrong


def test_ids_of_64_bits_are_kept_exactly():
    largest = 2**63 - 1
    assert read(f"{largest},{largest - 1},1\n".join(["query_id,image_id,score\n", ""])) == (
        {largest: [largest - 1]},
        [],
    )


def test_the_format_follows_from_the_content():
    assert run_format("query_id,image_id,score") == "csv"
    assert run_format("1 Q0 5 1 0.5 my,run") == "trec"
    assert run_format(" {") == run_format('{"query_id": 1}') == "jsonl"


def test_a_bad_trec_line_is_named():
    for line, expected in (
        ("1 Q0 5 1 0.5", "line 2: 5 fields where a TREC run has 6"),
        ("1 Q0 9223372036854775808 1 1 t", "line 2, image_id: '9223372036854775808' is not"),
        ("1 Q0 -5 1 0.5 t", "line 2, image_id: '-5' is not a whole number"),
        ("1 Q0 5 1 high t", "line 2, score: 'high' is not a finite number"),
        ("1 Q0 5 1 nan t", "line 2, score: 'nan' is not a finite number"),
        ("1 Q0 5 1 1e999 t", "line 2, score: '1e999' is not a finite number"),
        ("1 Q0 5 1 1_0 t", "line 2, score: '1_0' is not a finite number"),
        ("1 Q0 7 1 0.5 t", "line 2, image_id: 7 is listed twice for query_id=1"),
    ):
        _, [error] = read(f"1 Q0 7 1 0.9 t\n{line}\n")
        assert error.startswith(f"run.txt, {expected}")


def test_a_bad_file_is_named():
    for data, expected in (
        ("", "line 1: the file is empty"),
        ("query_id,score\n1,2\n", "line 1, image_id: the header must name this column once"),
        ("1,5,0.5\n2,5,0.5\n", "line 1, query_id: the header must name this column once"),
        ("query_id,image_id,score\n1,2\n", "line 2: 2 fields where the header has 3"),
        ('query_id,image_id,score\n1,"2,3\n', "line 2: not readable as CSV"),
        (b"query_id,image_id,score\n1,\xff,1\n", "line 2, image_id"),
        ("query_id,image_id,score\n", "line 1: the file holds no row"),
    ):
        run, errors = read(data)
        assert run == {}
        assert expected in errors[0]


@pytest.mark.parametrize("bad", ["x Q0 x 1 x t\n", "nonsense\n"])
def test_a_file_full_of_errors_is_read_no_further(bad):
    run, errors = read(bad * 1000)
    assert run == {}
    assert len(errors) == MAX_ERRORS


def test_a_written_run_keeps_every_digit():
    random = np.random.default_rng(2)
    run = {
        query: Ranking(random.permutation(50), np.sort(random.normal(size=50) * 1e-7)[::-1])
        for query in (7, 2)
    }
    file = io.StringIO()
    rows = [
        RunLine(query, int(image), rank, float(score))
        for query, ranking in run.items()
        for rank, (image, score) in enumerate(
            zip(ranking.image_ids, ranking.scores, strict=True), start=1
        )
    ]
    assert write_trec(rows, file, tag="ViT-B-32 / openai") == 100
    assert " ViT-B-32_/_openai\n" in file.getvalue()
    again, errors = read_run(io.BytesIO(file.getvalue().encode()), name="run")
    assert (errors, sorted(again)) == ([], [2, 7])
    for query, ranking in run.items():
        assert again[query].image_ids.tolist() == ranking.image_ids.tolist()
        assert again[query].scores.tolist() == ranking.scores.tolist()


def test_a_bad_json_line_is_named():
    for line, expected in (
        ("nonsense", "line 2: not a JSON object"),
        ("[" * 60_000, "line 2: not a JSON object"),
        ('{"query_id": 1, "score": 5}', "line 2, image_id: this key is missing"),
        ('{"query_id": 1.0, "image_id": 5, "score": 1}', "line 2, query_id: 1.0 is not a whole"),
        ('{"query_id": 1, "image_id": 9223372036854775808, "score": 1}', "line 2, image_id: 92"),
        ('{"query_id": 1, "image_id": 5, "score": NaN}', "line 2, score: NaN is not a finite"),
        ('{"query_id": 1, "image_id": 5, "score": false}', "line 2, score: false is not a finite"),
        ('{"query_id": 1, "image_id": 5, "score": 1' + "0" * 400 + "}", "line 2, score: 10000"),
        ('{"query_id": 1, "image_id": 7, "score": 1}', "line 2, image_id: 7 is listed twice"),
    ):
        run, [error] = read('{"query_id": 1, "image_id": 7, "score": 0.9}\n' + line + "\n")
        assert run == {}
        assert expected in error


SPLITS = {1: "val", 2: "test", 3: "test"}


def test_queries_are_held_to_the_release_and_the_split():
    data = "1 Q0 5 1 3 t\n2 Q0 5 1 3 t\n9 Q0 5 1 3 t\n1 Q0 6 1 3 t\n9 Q0 6 1 3 t\n8 Q0 6 1 3 t\n"
    _, errors = read(data, queries=SPLITS, split="test")
    assert [error.removeprefix("run.txt, ") for error in errors] == [
        "line 1, query_id: query 1 is of the split val, not test",
        "line 3, query_id: the release has no query 9",
        "line 6, query_id: the release has no query 8",
    ]
    both = "1 Q0 5 1 3 t\n2 Q0 5 1 3 t\n"
    assert read(both, queries=SPLITS) == ({1: [5], 2: [5]}, [])
    assert read("2 Q0 5 1 3 t\n", queries=SPLITS, split="test") == ({2: [5]}, [])


def test_images_are_requested_in_batches_and_named_with_their_lines():
    batches = []

    def unknown(ids):
        batches.append(list(ids))
        return {one for one in ids if one % 15_000 == 14_999}

    count = IDS_AT_A_TIME * 3
    data = "".join(f"{1 + row % 2} Q0 {row // 2} 1 {row} t\n" for row in range(count))
    _, errors = read(data, unknown_images=unknown)
    assert errors == [
        "run.txt, line 29999, image_id: there is no image 14999",
        "run.txt, line 30000, image_id: there is no image 14999",
    ]
    assert [len(ids) for ids in batches] == [IDS_AT_A_TIME // 2] * 3
    assert all(ids == sorted(set(ids)) for ids in batches)
    assert read("1 Q0 5 1 1 t\n", unknown_images=lambda ids: set()) == ({1: [5]}, [])


def test_errors_come_by_line_whatever_finds_them():
    data = "1 Q0 4 1 1 t\n9 Q0 5 1 1 t\n1 Q0 6 1 x t\n1 Q0 4 1 1 t\n"
    _, errors = read(data, queries=SPLITS, unknown_images=lambda ids: {4})
    assert [error.split(": ")[1][:18] for error in errors] == [
        "there is no image ",
        "the release has no",
        "'x' is not a finit",
        "there is no image ",
        "4 is listed twice ",
    ]


TREC = "1 Q0 5 1 0.5 t\n1 Q0 6 2 0.4 t\n"


def test_gzip_follows_from_its_first_bytes_and_may_have_members():
    packed = gzip.compress(TREC.encode()) + gzip.compress(b"2 Q0 9 1 1 t\n")
    assert read(packed) == ({1: [5, 6], 2: [9]}, [])
    assert read(gzip.compress(b"query_id,image_id,score\n1,5,1\n")) == ({1: [5]}, [])
    assert read(gzip.compress(b'{"query_id": 1, "image_id": 5, "score": 1}')) == ({1: [5]}, [])


@pytest.mark.parametrize(
    "damaged",
    [
        gzip.compress(TREC.encode())[:-9],
        gzip.compress(TREC.encode())[:-8] + b"12345678",
        b"\x1f\x8bnonsense",
        gzip.compress(TREC.encode()) + b"more",
    ],
    # The bytes hold the time, which differs between the processes of pytest-xdist.
    ids=["cut off", "other checksum", "nonsense", "more behind it"],
)
def test_damaged_gzip_is_an_error_and_never_half_a_run(damaged):
    run, errors = read(damaged)
    assert run == {}
    assert "the gzip file is damaged or cut short" in errors[0]


class Counted(io.BytesIO):
    """A file that tells how much of it was read."""

    taken = 0

    def read(self, size=-1):
        data = super().read(size)
        self.taken += len(data)
        return data


@pytest.mark.parametrize(("max_bytes", "most"), [(1_000_000, 1_000_000), (2**30, GROWTH_FREE)])
def test_a_file_that_grows_a_thousandfold_is_read_no_further_than_the_limit(max_bytes, most):
    bomb = Counted(gzip.compress(TREC.encode() * 2_000_000))
    size = len(bomb.getvalue())
    run, errors = read_run(bomb, name="run.txt", max_bytes=max_bytes)
    assert run == {}
    assert f"the file holds more than {most} bytes of text" in str(errors[0])
    assert bomb.taken < size / 2


def test_a_large_file_may_grow_as_far_as_runs_do():
    ids = np.random.default_rng(3).permutation(60_000).tolist()
    data = "".join(f"1 Q0 {one} 1 {-rank} {f'{one:x}' * 70}\n" for rank, one in enumerate(ids))
    packed = gzip.compress(data.encode())
    assert len(data) > GROWTH_FREE
    assert MAX_GROWTH / 4 < len(data) / len(packed) < MAX_GROWTH / 2
    run, errors = read(packed)
    assert (len(run[1]), errors) == (60_000, [])


@pytest.mark.parametrize(
    ("row", "blank"),
    [
        ("1 Q0 5 1 1 t\n", " \t\r\n"),
        ("query_id,image_id,score\n", "\n"),
        ('{"query_id": 1, "image_id": 5, "score": 1}\n', "\u2003\n"),
    ],
)
def test_blank_lines_are_few(row, blank):
    count = 2 * MAX_BLANK_LINES
    run, [error] = read_run(io.BytesIO((row + blank * count).encode()), name="run.txt")
    assert run == {}
    assert (error.line, error.message) == (
        MAX_BLANK_LINES + 2,
        f"more than {MAX_BLANK_LINES} lines are blank",
    )
    assert read("1 Q0 5 1 1 t\n" + blank * MAX_BLANK_LINES) == ({1: [5]}, [])


def test_the_limit_counts_what_is_not_compressed_too():
    data = "".join(f"1 Q0 {image} 1 1 t\n" for image in range(10))
    assert read(data, max_bytes=len(data))[1] == []
    _, errors = read(data, max_bytes=len(data) - 1)
    assert "more than" in errors[0]


def test_a_line_without_end_is_read_no_further():
    data = TREC + "1 Q0 7 1 1 " + "t" * MAX_LINE
    file = Counted((data + "t" * 10_000_000).encode())
    run, errors = read_run(file, name="run.txt")
    assert (run, len(errors)) == ({}, 1)
    assert str(errors[0]) == f"run.txt, line 3: the line is longer than {MAX_LINE} bytes"
    assert file.taken < 1_000_000


def test_lines_that_straddle_chunks_stay_whole():
    rows = [f"1 Q0 {image} 1 {-image} {'é' * (image % 40)}t" for image in range(9000)]
    run, errors = read("\n".join(rows))
    assert errors == []
    assert run == {1: list(range(9000))}

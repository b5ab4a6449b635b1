"""The files of a release, byte by byte."""

import io

import pytest

from benchmark.releases.formats.datasheet import SOURCE_WORDS
from benchmark.releases.snapshot.release_files import (
    SOURCES,
    AnnotationRow,
    JudgmentRow,
    write_annotations,
    write_judgments,
)
from labeling.judging.models import JudgmentSource


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
    judgments = [JudgmentRow(3, 7, "unsure", number, 1, 0, "list") for number in (2, 1)]
    with pytest.raises(ValueError, match="rows must ascend"):
        write_judgments(judgments, io.StringIO())

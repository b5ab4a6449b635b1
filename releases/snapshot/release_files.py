"""The files of a release, in INQUIRE's released columns and order, and the judgments behind them.

    inquire_queries_val.csv, inquire_queries_test.csv   see `labeling.queries.files`
    inquire_annotations.csv   query_id,image_id,image_path   one row per relevant pair
    judgments.csv             every single judgment, so that judged negatives differ from unjudged
    images

In judgments.csv, annotator is a person's number in this release, seconds their active time, source
where they judged (a `labeling.judging.sources.JudgmentSource`), and rank the image's position, from
1, in the query's candidate list when the release is made; rank is blank for an image outside that
list. Where a query was labeled with grades, grade (3 definitely, 2 partly, 1 mostly not, 0
definitely not) and reason follow.

Rows ascend by query_id, then image_id (then annotator), but for annotations and queries that were
imported, which keep their order. Lines end in LF, the text is UTF-8. Writers stream.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from core.csv_rows import csv_field

QUERY_FILES: Final = {"val": "inquire_queries_val.csv", "test": "inquire_queries_test.csv"}
ANNOTATIONS_FILE: Final = "inquire_annotations.csv"
JUDGMENTS_FILE: Final = "judgments.csv"
#: The folder of the tables that the files are written from.
SNAPSHOT_FOLDER: Final = "snapshot"
RELEASE_FILES: Final = (*QUERY_FILES.values(), ANNOTATIONS_FILE, JUDGMENTS_FILE)

ANNOTATION_COLUMNS: Final = ("query_id", "image_id", "image_path")
JUDGMENT_COLUMNS: Final = (
    "query_id",
    "image_id",
    "relevance",
    "annotator",
    "rank",
    "seconds",
    "source",
)
#: Further columns where a query was labeled with grades.
GRADE_COLUMNS: Final = ("grade", "reason")


@dataclass(frozen=True, slots=True)
class JudgmentRow:
    """One person's judgment of one pair."""

    query_id: int
    image_id: int
    relevance: str
    """"relevant", "not_relevant" or "unsure"."""
    annotator: int
    """The person's number in this release, from 1; written as "annotator_1"."""
    rank: int | None
    """The image's rank in the query's candidate list as released, from 1; None outside it."""
    seconds: float
    """Active time; written to the millisecond."""
    source: str
    """A `JudgmentSource`."""
    grade: int | None = None
    """From 0 to 3, where the person gave one."""
    reason: str = ""
    """The person's reason for the grade."""


def annotation_lines(rows: Iterable[tuple[int, int, str]]) -> Iterator[str]:
    """The file of relevant pairs (query id, image id, path), in their order."""
    yield ",".join(ANNOTATION_COLUMNS) + "\n"
    for query_id, image_id, path in rows:
        yield f"{query_id},{image_id},{csv_field(path)}\n"


def judgment_lines(rows: Iterable[JudgmentRow], *, graded: bool = False) -> Iterator[str]:
    """The file of judgments in ascending (query_id, image_id, annotator); `graded` adds
    GRADE_COLUMNS. ValueError: rows out of order, or a judgment twice."""
    yield ",".join(JUDGMENT_COLUMNS + (GRADE_COLUMNS if graded else ())) + "\n"
    previous = (-1, -1, -1)
    for row in rows:
        key = (row.query_id, row.image_id, row.annotator)
        if key <= previous:
            raise ValueError(f"judgment {key} follows {previous}: rows must ascend")
        previous = key
        rank = "" if row.rank is None else row.rank
        grade = "" if row.grade is None else row.grade
        yield (
            f"{row.query_id},{row.image_id},{row.relevance},annotator_{row.annotator},"
            f"{rank},{row.seconds:.3f},{row.source}"
            + (f",{grade},{csv_field(row.reason)}\n" if graded else "\n")
        )

"""Reader of judgments that were made elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from core.csv_rows import RowError, csv_rows
from core.ids import id_of
from labeling.candidates.stopping import RELEVANCES, RELEVANT
from labeling.queries.files import MAX_QUERY_ID

REQUIRED_COLUMNS: Final = ("query_id", "image_id")
#: INQUIRE's annotations file has image_path; it isn't used.
OPTIONAL_COLUMNS: Final = ("relevance", "image_path")


@dataclass(frozen=True, slots=True)
class JudgmentRow:
    """One judgment of a file."""

    query_id: int
    image_id: int
    relevance: str
    """"relevant", "not_relevant" or "unsure"."""
    line: int
    """The line of the file on which the row begins, from 1."""


def read_judgments(
    lines: Iterable[bytes], *, name: str
) -> tuple[list[JudgmentRow], list[RowError]]:
    """Read a CSV of query_id, image_id and relevance: the rows and the errors.

    `lines` is a file opened in binary mode, `name` its name for messages. Without a relevance
    column every row is relevant, as in INQUIRE's annotations file. Callers refuse the file whole
    when there is any error. A row with readable ids is returned even if its relevance is wrong, so
    that callers can also check its query and image; a repeated pair is returned once.
    """
    errors: list[RowError] = []
    rows: dict[tuple[int, int], JudgmentRow] = {}
    for line, fields in csv_rows(
        lines, name=name, required=REQUIRED_COLUMNS, optional=OPTIONAL_COLUMNS, errors=errors
    ):
        ids = []
        for column in REQUIRED_COLUMNS:
            text = fields[column].strip()
            number = id_of(text)
            if number is None or (column == "query_id" and number > MAX_QUERY_ID):
                errors.append(RowError(name, line, column, f"{text[:40]!r} is not a whole number"))
            else:
                ids.append(number)
        relevance = fields.get("relevance", RELEVANT).strip()
        if relevance not in RELEVANCES:
            message = f"{relevance[:40]!r} is none of {', '.join(sorted(RELEVANCES))}"
            errors.append(RowError(name, line, "relevance", message))
        if len(ids) < 2:
            continue
        row = JudgmentRow(ids[0], ids[1], relevance, line)
        first = rows.setdefault((row.query_id, row.image_id), row)
        if first is not row:
            message = (
                f"query {row.query_id} and image {row.image_id} are already on line {first.line}"
            )
            errors.append(RowError(name, line, "image_id", message))
    return list(rows.values()), errors

"""Qrels files: which images are relevant to which query, as TREC and BEIR write it.

TREC lines are `query_id 0 image_id relevance`, separated by blanks. BEIR files have a header with
the columns query-id, corpus-id and score, separated by tabs. Ids may be any text without blanks. A
relevance above 0 is relevant, and is the gain in nDCG and ERR; 0 means judged and not relevant. An
image with a negative relevance counts as not judged in `evaluate`, as in trec_eval's bpref. Whole
numbers may be written as pandas does: `1.0`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import IO, Final

import numpy as np
import numpy.typing as npt

from core.csv_rows import MAX_ERRORS, RowError
from core.ids import id_of
from core.line_stream import Unreadable, text_lines

TREC_FIELDS: Final = 4
BEIR_HEADER: Final = ("query-id", "corpus-id", "score")

_WHOLE: Final = re.compile(r"([+-]?[0-9]{1,9})(?:\.0*)?")
_SHOWN: Final = 40


class TextIds:
    """Numbers in place of ids that may be any text."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of an id; a new id gets the next number."""
        return self._numbers.setdefault(text, len(self._numbers))

    def number_of(self, value: object) -> int | None:
        """The number of an id in a run file, which JSON may hold as a number; None for a value that
        isn't an id."""
        text = value if isinstance(value, str) else json.dumps(value)
        return self.number(text) if text and not text.isspace() else None

    def in_order(self) -> tuple[npt.NDArray[np.int64], list[str]]:
        """(n,) the position of each number's id among all sorted ids, and the sorted ids: whole
        numbers by their size, then the others by their text."""
        texts = list(self._numbers)
        order = sorted(range(len(texts)), key=lambda number: _key(texts[number]))
        places = np.empty(len(texts), dtype=np.int64)
        places[order] = np.arange(len(texts))
        return places, [texts[number] for number in order]


def read_qrels(
    file: IO[bytes], *, name: str, queries: TextIds, images: TextIds
) -> tuple[dict[tuple[int, int], int], list[RowError]]:
    """The relevance of each pair of query and image, by their numbers in `queries` and `images`,
    and everything that is wrong with the file, plain or gzip.

    `name` is the file's name for messages. Errors: as of `qrels_rows`, a pair twice, no row.
    """
    errors: list[RowError] = []
    relevances: dict[tuple[int, int], int] = {}
    for line, query, image, relevance in qrels_rows(file, name=name, errors=errors):
        pair = queries.number(query), images.number(image)
        if pair in relevances:
            message = f"{image[:_SHOWN]} is listed twice for query {query[:_SHOWN]}"
            errors.append(RowError(name, line, "image_id", message))
        relevances[pair] = relevance
    if not relevances and not errors:
        errors.append(RowError(name, 1, "", "the file holds no row"))
    return relevances, errors


def qrels_rows(
    file: IO[bytes], *, name: str, errors: list[RowError]
) -> Iterator[tuple[int, str, str, int]]:
    """(line, query, image, relevance) of each row that can be read; what is wrong with the others
    is added to `errors`: a wrong number of fields, a relevance that is no whole number. With
    MAX_ERRORS of them the reading ends.
    """
    field_count = TREC_FIELDS
    begun = False
    try:
        for line, text in text_lines(file):
            fields = text.split()
            if not fields:
                continue
            if tuple(fields) == BEIR_HEADER and not begun:
                field_count = len(BEIR_HEADER)
            elif len(fields) != field_count:
                message = f"{len(fields)} fields where {field_count} are needed"
                errors.append(RowError(name, line, "", message))
            elif not (whole := _WHOLE.fullmatch(fields[-1])):
                message = f"{fields[-1][:_SHOWN]!r} is not a whole number"
                errors.append(RowError(name, line, "relevance", message))
            else:
                begun = True
                yield line, fields[0], fields[-2], int(whole[1])
            if len(errors) >= MAX_ERRORS:
                return
    except Unreadable as error:
        errors.append(RowError(name, error.line, "", str(error)))


def _key(text: str) -> tuple[int, int, str]:
    number = id_of(text)
    return (1, 0, text) if number is None else (0, number, text)

"""Whether measures, or releases, put runs in the same order.

Source: Chun et al. 2022, "ECCV Caption", section 5 and table 5, which asks whether metrics rank
methods alike. Its R@k is hit@k here (`Success@k`); R@k here is recall.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from core.csv_rows import RowError, csv_rows
from evaluation.scoring.significance import tau_b

Column = Mapping[Hashable, float | None]

#: Fewer runs than this put in order say nothing.
FEWEST: Final = 3
#: Of a table of scores. Every two columns are compared over all rows.
MOST_COLUMNS: Final = 40
MOST_ROWS: Final = 1000


@dataclass(frozen=True, slots=True)
class Correlations:
    """A symmetric matrix over m columns."""

    names: list[str]
    """(m)"""
    taus: list[list[float | None]]
    """(m, m) from -1 to 1; None where it isn't defined: fewer than two items, or all equal."""
    counts: list[list[int]]
    """(m, m) how many items both columns have."""


def correlations(columns: Mapping[str, Column]) -> Correlations:
    """Of columns by name, each with a number for items: a measure's mean for each run, or a
    release's for each method.

    Two columns are compared on the items that both have; None and NaN count as not there.
    """
    names = list(columns)
    known = {name: _known(columns[name]) for name in names}
    pairs = {
        (one, other): [item for item in known[one] if item in known[other]]
        for one in names
        for other in names
    }
    return Correlations(
        names=names,
        taus=[
            [
                tau_b(
                    [known[one][item] for item in pairs[one, other]],
                    [known[other][item] for item in pairs[one, other]],
                )
                for other in names
            ]
            for one in names
        ],
        counts=[[len(pairs[one, other]) for other in names] for one in names],
    )


def read_scores(
    lines: Iterable[bytes], *, name: str
) -> tuple[dict[str, dict[Hashable, float | None]], list[RowError]]:
    """Columns for `correlations` from a CSV file with a row for each model and a column for each
    measure, the first column naming the models; and everything that is wrong with it.

    A blank score is None. `name` is the file's name for messages.
    """
    table = list(lines)
    errors: list[RowError] = []
    first = table[0].decode("utf-8-sig", errors="replace") if table else ""
    header = [column.strip() for column in next(csv.reader([first]), [])]
    model, *measures = header or ["model"]
    if header and not 2 <= len(measures) <= MOST_COLUMNS:
        message = f"the models and 2 to {MOST_COLUMNS} measures are needed, in {MOST_COLUMNS + 1} "
        errors.append(RowError(name, 1, "", message + "columns at most"))
        return {}, errors
    columns: dict[str, dict[Hashable, float | None]] = {measure: {} for measure in measures}
    seen: dict[str, int] = {}
    rows = csv_rows(table, name=name, required=[model], optional=measures, errors=errors)
    for line, fields in rows:
        if len(seen) == MOST_ROWS:
            errors.append(RowError(name, line, "", f"more than {MOST_ROWS} models"))
            break
        one = fields[model].strip()
        if seen.setdefault(one, line) != line:
            errors.append(RowError(name, line, model, f"{one[:40]!r} is on line {seen[one]} too"))
        for measure in measures:
            text = fields[measure].strip()
            try:
                score = float(text) if text else None
            except ValueError:
                score = math.nan
            if score is not None and not math.isfinite(score):
                errors.append(RowError(name, line, measure, f"{text[:40]!r} is not a number"))
            columns[measure][one] = score
    return columns, errors


def _known(column: Column) -> dict[Hashable, float]:
    return {
        item: float(value)
        for item, value in column.items()
        if value is not None and not math.isnan(value)
    }

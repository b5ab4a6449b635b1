"""Medians, percentiles and the table that a benchmark prints."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` (0..1) of the values don't exceed (nearest rank).

    Raises ValueError for no values.
    """
    if not values:
        raise ValueError("There is nothing to measure.")
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def share_under(values: Sequence[float], limit: float) -> float:
    """The share (0..1) of values below a limit."""
    return sum(value < limit for value in values) / len(values)


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table: what was measured, and its figures as text."""

    name: str
    median: str = ""
    late: str = ""
    """95th percentile."""
    ratio: str = ""
    """Median in bare requests."""
    remark: str = ""


def timing(name: str, seconds: Sequence[float], *, bare: float, remark: str = "") -> Row:
    """A row for durations; `bare` is the median of a request that does nothing, in seconds."""
    median = percentile(seconds, 0.5)
    return Row(name, ms(median), ms(percentile(seconds, 0.95)), f"{median / bare:.1f}", remark)


def ms(seconds: float) -> str:
    """A duration in milliseconds."""
    return f"{seconds * 1000:.1f} ms"


HEAD: Final = Row("What", "Median", "95 %", "× bare request", "Remark")


def table(rows: Sequence[Row], *, head: Row = HEAD) -> str:
    """The rows as a Markdown table."""
    return grid(_cells(head), [_cells(row) for row in rows])


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table of any columns; a bar within a cell becomes a slash.

    Raises ValueError for a row that has not as many cells as the head.
    """
    lines = [[cell.replace("|", "/") for cell in line] for line in (head, *rows)]
    if any(len(line) != len(head) for line in lines):
        raise ValueError(f"Each row needs {len(head)} cells.")
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    padded = [
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in lines
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([padded[0], rule, *padded[1:]])


def _cells(row: Row) -> list[str]:
    return [row.name, row.median, row.late, row.ratio, row.remark]


def machine(packages: Sequence[str] = ("Django", "gunicorn", "playwright")) -> str:
    """Where and when it was measured, and with which versions of Python packages."""
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    return (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC · {_processor()}, {os.cpu_count()} cores · "
        f"{platform.system()} {platform.release()} · Python {platform.python_version()}, {versions}"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()

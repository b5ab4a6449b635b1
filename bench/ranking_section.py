"""What the benchmark of ranking prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from bench.figures import grid, machine, ms, percentile
from bench.harness import megabytes
from bench.ranking_lists import Agreement

PACKAGES: Final = ("numpy", "torch", "faiss-cpu", "pgvector")
NAMES: Final = {
    "matrix": "the application's matrix",
    "database": "pgvector's scan",
    "faiss": "FAISS",
    "bare": "the bare product",
    "numpy": "NumPy",
}
KINDS: Final = {
    "species": "One species, 500 images",
    "genus": "A genus, 2,500 images",
    "similar": "The 200 images most like one",
}


@dataclass(slots=True)
class Measured:
    """What was found at one size, times in seconds."""

    images: int
    depth: int
    vectors: int
    """How many queries were ranked at once."""
    rounds: dict[str, list[float]] = field(default_factory=dict)
    """A time for each round, by method or "method kind"."""
    once: dict[str, float] = field(default_factory=dict)
    """What was measured once, by name."""
    memory: dict[str, float] = field(default_factory=dict)
    """Anonymous memory in bytes of the process that ranks through the matrix, by moment."""
    notes: list[str] = field(default_factory=list)
    same: bool = True
    """Whether the matrix' lists are the database's bit for bit, made singly or at once."""
    faiss: Agreement | None = None

    def median(self, name: str) -> float | None:
        """The median of the rounds; None for what was not measured."""
        return percentile(self.rounds[name], 0.5) if name in self.rounds else None


def section(found: Sequence[Measured], left_out: Sequence[str], *, command: str) -> str:
    """The section in Markdown."""
    notes = [*(note for one in found for note in one.notes), *left_out]
    parts = ["## Ranking", machine(PACKAGES), f"`{command}`"]
    if found:
        parts += [
            "The first images of the whole corpus for one query, median of the rounds. The "
            "application's time is that of the whole function with all of its SQL; the bare "
            "product gives scores in half precision and no order.",
            grid(_WHOLE, [_whole(one) for one in found]),
            "The lists through the matrix beside the database's, and beside FAISS'.",
            grid(_LISTS, [_lists(one) for one in found]),
            "With filters, and many queries at once.",
            grid(_OTHERS, [row for one in found for row in _others(one)]),
            "Packing the matrix from the database, how time grows with the corpus, and the "
            "anonymous memory of the process that ranks (what it maps of the matrix is the "
            "system's to keep or drop).",
            grid(_COSTS, [_costs(one, found[0]) for one in found]),
        ]
    return "\n\n".join([*parts, *("\n".join(f"- {note}" for note in notes),) * bool(notes)])


_WHOLE: Final = (
    *("Images", "First", "Application", "pgvector's scan", "FAISS fp16 flat", "Bare product"),
    *("NumPy float32", "× FAISS", "× bare product"),
)


def _whole(one: Measured) -> list[str]:
    own = one.median("matrix")
    methods = ("matrix", "database", "faiss", "bare", "numpy")
    return [
        f"{one.images:,}",
        f"{one.depth:,}",
        *(_time(one.median(method)) for method in methods),
        _ratio(own, one.median("faiss")),
        _ratio(own, one.median("bare")),
    ]


_LISTS: Final = ("Images", "Same as the database's", "Images that FAISS has too", "At FAISS' rank")


def _lists(one: Measured) -> list[str]:
    same = "bit for bit" if one.same else "**no**"
    if one.faiss is None:
        return [f"{one.images:,}", same, "–", "–"]
    return [
        f"{one.images:,}",
        same,
        f"{100 * one.faiss.images:.2f} %",
        f"{100 * one.faiss.ranks:.2f} %",
    ]


_OTHERS: Final = ("Images", "What", "Application", "Reference", "Which", "× reference")


def _others(one: Measured) -> list[list[str]]:
    rows = [
        (what, one.median(f"matrix {kind}"), one.median(f"database {kind}"), NAMES["database"])
        for kind, what in KINDS.items()
    ]
    at_once, many = f"{one.vectors:,} queries at once", one.once["many"]
    rows += [
        (at_once, many, one.once["one by one"], "one by one"),
        (at_once, many, one.once["bare many"], "the bare product in single precision"),
    ]
    return [
        [f"{one.images:,}", what, _time(own), _time(other), which, _ratio(own, other)]
        for what, own, other, which in rows
    ]


_COSTS: Final = (
    *("Images", "Packed a second", "× bare COPY", "Time for an image × smallest size's"),
    *("Memory before", "After single queries", "After many at once"),
)


def _costs(one: Measured, smallest: Measured) -> list[str]:
    own, first = one.median("matrix"), smallest.median("matrix")
    growth = "–"
    if own and first:
        growth = f"{own / one.images / (first / smallest.images):.2f}"
    return [
        f"{one.images:,}",
        f"{one.images / one.once['pack']:,.0f} rows",
        _ratio(one.once["pack"], one.once["bare copy"]),
        growth,
        *(megabytes(one.memory[name]) for name in ("before", "after single", "after many")),
    ]


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    return f"{seconds:.2f} s" if seconds >= 10 else ms(seconds)


def _ratio(own: float | None, other: float | None) -> str:
    return f"{own / other:.2f}" if own is not None and other else "–"

"""The measures by which runs are scored, as data: names, cut-offs and what their means are called.

Keys are those of ir-measures where it has the measure ("AP@50", "nDCG@50", "RR@50", "P@50", "R@50",
"Rprec", "Judged@50"). "CappedR@50" is recall over min(k, R), and "AP@R" is what the literature of
metric learning calls mAP@R. AP@k differs from that of ir-measures by its normalization, min(k, R)
instead of R. `benchmark.scoring.metrics` has the formulas.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

#: Measures with a cut-off, in the order in which they are listed.
CUT_KINDS: Final = ("AP", "nDCG", "RR", "P", "R", "CappedR", "Judged")
#: Measures that look as deep as a query has relevant images.
WHOLE_KINDS: Final = ("Rprec", "AP@R")
DEFAULT_CUTS: Final = (1, 5, 10, 50, 100)
#: No run is deeper than this.
MAX_CUT: Final = 10_000_000

_MEAN_KINDS: Final = {"AP": "mAP", "RR": "MRR", "AP@R": "mAP@R"}
_KEY: Final = re.compile(r"([A-Za-z]+)@([1-9][0-9]{0,7})")


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure; ValueError for a kind that isn't there, or with a cut-off that doesn't fit."""

    kind: str
    k: int | None = None
    """The cut-off, from 1; None for `WHOLE_KINDS`."""

    def __post_init__(self) -> None:
        if self.kind in CUT_KINDS:
            if self.k is None or not 1 <= self.k <= MAX_CUT:
                raise ValueError(f"{self.kind} needs a cut-off from 1 to {MAX_CUT}, not {self.k}.")
        elif self.kind not in WHOLE_KINDS:
            raise ValueError(f"There is no measure {self.kind!r}.")
        elif self.k is not None:
            raise ValueError(f"{self.kind} has no cut-off.")

    @property
    def key(self) -> str:
        """What it is called, e.g. "AP@50"."""
        return self.kind if self.k is None else f"{self.kind}@{self.k}"

    def __str__(self) -> str:
        return self.key


def parse_measure(text: str) -> Measure:
    """The measure that a key names; ValueError, with the keys there are, for any other text."""
    word = text.strip()
    if word in WHOLE_KINDS:
        return Measure(word)
    match = _KEY.fullmatch(word)
    if match is None or match[1] not in CUT_KINDS:
        known = ", ".join([*(f"{kind}@k" for kind in CUT_KINDS), *WHOLE_KINDS])
        raise ValueError(f"There is no measure {text[:40]!r}; there are {known} (k from 1).")
    return Measure(match[1], int(match[2]))


def parse_measures(texts: Iterable[str]) -> tuple[Measure, ...]:
    """The measures that keys name, in their order, each once. ValueError as `parse_measure`."""
    return tuple(dict.fromkeys(map(parse_measure, texts)))


def mean_name(measure: Measure) -> str:
    """What the mean over queries is called: "mAP@50", "MRR@50", "mAP@R", else as the measure."""
    name = _MEAN_KINDS.get(measure.kind, measure.kind)
    return name if measure.k is None else f"{name}@{measure.k}"


DEFAULT_MEASURES: Final[tuple[Measure, ...]] = (
    *(Measure(kind, k) for kind in CUT_KINDS for k in DEFAULT_CUTS),
    *(Measure(kind) for kind in WHOLE_KINDS),
)

"""The measures by which runs are scored, as data: names, cut-offs and what their means are called.

Keys are those of ir-measures where it has the measure ("AP", "nDCG@50", "RR@50", "P@50", "R@50",
"Success@50", "ERR@50", "Rprec", "Bpref", "RBP", "Judged@50"). "CappedR@50" is recall over
min(k, R), and "AP@R" is what the literature of metric learning calls mAP@R. AP@k is normalized as
INQUIRE's, by min(k, R); ir-measures' AP@k, normalized by R, is "UncappedAP@50" here.
"RBPresidual" is how much of RBP is unknown. `benchmark.scoring.metrics` has the formulas.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

#: Measures with a cut-off, in the order in which they are listed.
CUT_KINDS: Final = (
    *("AP", "nDCG", "RR", "P", "R", "CappedR"),
    *("Success", "UncappedAP", "ERR", "Judged"),
)
#: Measures without: of the first R images (Rprec, AP@R) or of the whole ranking.
WHOLE_KINDS: Final = ("Rprec", "AP@R", "AP", "Bpref", "RBP", "RBPresidual")
#: How they are written, with "k" for a cut-off.
MEASURE_KEYS: Final = (*(f"{kind}@k" for kind in CUT_KINDS), *WHOLE_KINDS)
#: Measures that need to know which images were judged, and not only which are relevant.
JUDGED_KINDS: Final = ("Judged", "Bpref", "RBPresidual")
DEFAULT_CUTS: Final = (1, 5, 10, 50, 100)
#: No run is deeper than this.
MAX_CUT: Final = 10_000_000

_MEAN_KINDS: Final = {
    "AP": "mAP",
    "RR": "MRR",
    "AP@R": "mAP@R",
    "UncappedAP": "uncapped mAP",
    "Success": "hit",
    "Bpref": "bpref",
    "RBPresidual": "RBP residual",
}
_KEY: Final = re.compile(r"([A-Za-z]+)@([1-9][0-9]{0,7})")


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure; ValueError for a kind that isn't there, or with a cut-off that doesn't fit."""

    kind: str
    k: int | None = None
    """The cut-off, from 1; None for one of `WHOLE_KINDS`. AP is of both kinds."""

    def __post_init__(self) -> None:
        if self.kind not in (*CUT_KINDS, *WHOLE_KINDS):
            raise ValueError(f"There is no measure {self.kind!r}.")
        if self.k is None:
            if self.kind not in WHOLE_KINDS:
                raise ValueError(f"{self.kind} needs a cut-off from 1 to {MAX_CUT}.")
        elif self.kind not in CUT_KINDS:
            raise ValueError(f"{self.kind} has no cut-off.")
        elif not 1 <= self.k <= MAX_CUT:
            raise ValueError(f"{self.kind} needs a cut-off from 1 to {MAX_CUT}, not {self.k}.")

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
        known = ", ".join(MEASURE_KEYS)
        raise ValueError(f"There is no measure {text[:40]!r}; there are {known} (k from 1).")
    return Measure(match[1], int(match[2]))


def parse_measures(texts: Iterable[str]) -> tuple[Measure, ...]:
    """The measures that keys name, in their order, each once. ValueError as `parse_measure`."""
    return tuple(dict.fromkeys(map(parse_measure, texts)))


def mean_name(measure: Measure) -> str:
    """What the mean over queries is called: "mAP@50", "MRR@50", "hit@5", else as the measure."""
    name = _MEAN_KINDS.get(measure.kind, measure.kind)
    return name if measure.k is None else f"{name}@{measure.k}"


DEFAULT_MEASURES: Final[tuple[Measure, ...]] = (
    *(Measure(kind, k) for kind in CUT_KINDS for k in DEFAULT_CUTS),
    *(Measure(kind) for kind in WHOLE_KINDS),
)

"""Where judgments are made: one list, with what pages, files and outlines call each."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Self


class JudgmentSource(StrEnum):
    """Where a judgment was made; releases have the values, in this order."""

    label: str
    """What forms and the API's description call it."""
    heading: str
    """What a table of many judgments calls it."""
    words: str
    """How the person met the image, to end a sentence."""
    letter: str
    """In the outline of a list; `static/js/studio/stopping.js` has the same."""

    LIST = "list", "Candidate list", "Candidate list", "in the candidate list", "l"
    SEARCH = "search", "Search", "Search", "in a search", "s"
    SIMILAR = "similar", "More like this", "More like this", "among similar images", "m"
    AUDIT = "audit", "Audit", "Audits", "drawn at random", "a"
    IMPORT = "import", "Import", "Import", "imported", "i"
    LEARNED = "learned", "Order that learns", "Order that learns", "in the order that learns", "o"
    SECOND = "second", "Second opinion", "Second opinions", "as a blind second opinion", "b"
    RUN = "run", "Submitted run", "Submitted runs", "among the first images of a run", "r"
    CORRECTION = "correction", "Correction", "Corrections", "as a reviewer's correction", "c"
    READER = "reader", "Reader", "Readers", "through a machine that read it", "d"
    PICKED = "picked", "Further image", "Further images", "picked by a reviewer", "p"

    def __new__(cls, value: str, label: str, heading: str, words: str, letter: str) -> Self:
        source = str.__new__(cls, value)
        source._value_ = value
        source.label, source.heading, source.words, source.letter = label, heading, words, letter
        return source


#: For fields of models and of the API.
SOURCE_CHOICES: Final = tuple((str(source), source.label) for source in JudgmentSource)
#: Where the server says which images there are.
DRAWN: Final = (
    JudgmentSource.AUDIT,
    JudgmentSource.SECOND,
    JudgmentSource.RUN,
    JudgmentSource.READER,
    JudgmentSource.PICKED,
)
#: Where a person can judge; "import" comes from files only.
BY_PEOPLE: Final = (
    *(JudgmentSource.LIST, JudgmentSource.SEARCH, JudgmentSource.SIMILAR, JudgmentSource.LEARNED),
    *(*DRAWN, JudgmentSource.CORRECTION),
)
#: Met without knowing why: they neither replace the source of a standing judgment nor are replaced.
BLIND: Final = frozenset(
    {JudgmentSource.SECOND, JudgmentSource.RUN, JudgmentSource.READER, JudgmentSource.PICKED}
)
#: Sources outside the candidate list: such judgments don't extend the labeled prefix.
OUTSIDE_LIST: Final = frozenset(
    {JudgmentSource.SEARCH, JudgmentSource.SIMILAR, JudgmentSource.PICKED}
)
#: Judgments of these sources take no part in the labeling of a query.
NOT_LABELING: Final = (JudgmentSource.IMPORT, *DRAWN, JudgmentSource.CORRECTION)

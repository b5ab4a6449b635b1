"""Four grades in place of relevant and not relevant, where a query asks for them.

Source: Chun et al. 2022, "ECCV Caption", section 3.2 ("100% YES", "Partially YES, but", "Mostly NO,
because", "100% NO"). A judgment keeps its relevance beside its grade, so that stop rules,
certificates and the consensus work on relevance alone.
"""

from __future__ import annotations

from typing import Final

from labeling.candidates.stopping import NOT_RELEVANT, RELEVANT

#: As people read them.
GRADES: Final = {3: "Definitely", 2: "Partly", 1: "Mostly not", 0: "Definitely not"}
#: In their place, where it is verified what images show (iNat2017, section 3.2.1).
EVIDENCE: Final = {3: "Habitat only", 2: "A trace", 0: "The organism"}
HIGHEST: Final = max(GRADES)
#: How a query makes grades binary -> the least grade that is relevant.
LEAST_RELEVANT: Final = {"partly": 2, "definitely": 3, "evidence": 2}
#: What a grade between the ends may have as its reason, the shortcomings of the paper's figure B.1;
#: any other text may be typed.
REASONS: Final = (
    "Shows something else than the text says",
    "Lacks something that the text names",
    "Shows it in a wrong way (number, color, age, action, place)",
    "Can't be told from the image",
)
LONGEST_REASON: Final = 200


def grade_names(binarization: str) -> dict[int, str]:
    """The grades, the highest first, as people read them in a query of this binarization."""
    return EVIDENCE if binarization == "evidence" else GRADES


def relevance_of(grade: int, binarization: str) -> str:
    """What a grade means under a key of `LEAST_RELEVANT`."""
    return RELEVANT if grade >= LEAST_RELEVANT[binarization] else NOT_RELEVANT


def grade_of(grade: int | None, relevance: str) -> int:
    """A judgment's grade; without one the highest for relevant and the lowest for the others."""
    return grade if grade is not None else HIGHEST * (relevance == RELEVANT)

"""What a reader is asked, and the probability in its answer.

A grade of 0 to 3, as UMBRELA asks for (Upadhyay et al. 2024), in this tool's words: an image is
not relevant where there is reasonable doubt.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any, Final

from evaluation.reranking.multimodal.prompt import (
    ImageFailed,
    Reply,
    Score,
    bare_word,
    likeliest_words,
    read_answer,
)

TEMPLATE: Final = """\
You judge images for a benchmark of text-to-image retrieval. The query is: {query}

The guidelines for this query:
{guidelines}

How relevant is the last image? An image is relevant if it shows what the query asks for. Where \
there is reasonable doubt, it is not relevant.
3: definitely relevant
2: probably relevant
1: probably not relevant
0: not relevant
Answer with one digit, 0, 1, 2 or 3, and nothing else."""
NO_GUIDELINES: Final = "There are none."
#: Examples of either kind that are sent with a question.
MOST_EXAMPLES: Final = 2

_GRADES: Final = {"0": 0, "1": 1, "2": 2, "3": 3}
_BEST: Final = max(_GRADES.values())


@dataclass(frozen=True, slots=True)
class Example:
    """An image that is pinned to a query's guidelines."""

    image_id: int
    relevant: bool
    note: str

    @property
    def line(self) -> str:
        """The text that is sent before it."""
        kind = "An image that is relevant" if self.relevant else "An image that is not relevant"
        return f"{kind}: {self.note}" if self.note else f"{kind}:"


def chosen_examples(examples: Sequence[Example]) -> list[Example]:
    """The first MOST_EXAMPLES of either kind, relevant ones first."""
    return [
        one
        for kind in (True, False)
        for one in [example for example in examples if example.relevant is kind][:MOST_EXAMPLES]
    ]


def prompt_for(query: str, guidelines: str, template: str = TEMPLATE) -> str:
    """The prompt for a query's text and guidelines."""
    texts = {"{query}": query.strip(), "{guidelines}": guidelines.strip() or NO_GUIDELINES}
    # At once: a query's text may hold a placeholder.
    return re.sub(r"\{query\}|\{guidelines\}", lambda found: texts[found[0]], template)


def prompt_sha256(
    *, query: str, guidelines: str, examples: Sequence[Example], template: str, max_side: int
) -> str:
    """What identifies all that is said and shown of a query: a SHA-256 in hexadecimal."""
    told = [query, guidelines, [astuple(one) for one in examples], template, max_side]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def read_grade(data: Any) -> Reply:
    """The probability in a chat completion: the mean grade of the likeliest first tokens that are
    grades, divided by 3; where the server gives no log-probabilities, that of the grade in the
    text. ImageFailed: no grade is there. Unreadable: see `read_answer`.
    """
    answer = read_answer(data)
    if answer.top:
        pairs = [
            (_GRADES[word], math.exp(value))
            for token, value in answer.top
            if (word := bare_word(token)) in _GRADES
        ]
        mass = math.fsum(p for _, p in pairs)
        if not mass:
            raise ImageFailed(
                f"The model gives no grade; {likeliest_words(answer.top)}", answer.usage
            )
        grade = math.fsum(g * p for g, p in pairs) / mass
    else:
        found = re.search(r"\b[0-3]\b", answer.text)
        if found is None:
            raise ImageFailed(f"The model gives no grade: {answer.text[:40]!r}", answer.usage)
        grade = float(found[0])
    probability = min(1.0, grade / _BEST)
    return Reply(Score(yes=None, no=None, score=probability), answer.usage, answer.usage_known)

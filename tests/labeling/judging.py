"""Short ways to judge toy images, one after another or at once."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from labeling.candidates.models import Candidate, CandidateList
from labeling.judging.models import Judgment
from labeling.judging.services import JudgmentOutcome, judgments_record
from labeling.judging.writer import JudgmentInput
from labeling.queries.models import Query
from tests.labeling.conftest import FIRST_ID


def item(number: int, relevance: str | None, **fields: Any) -> JudgmentInput:
    """One act of judging toy image `number`, with a client id of its own unless one is given."""
    fields = {"client_id": uuid.uuid4(), "seconds": 1.0} | fields
    return JudgmentInput(image_id=FIRST_ID + number, relevance=relevance, **fields)


def judge(
    query: Query, annotator: Any, numbers: Iterable[int], relevance: str
) -> list[JudgmentOutcome]:
    """Judge toy images for a query; each must be stored."""
    outcomes: list[JudgmentOutcome] = []
    items = [item(number, relevance) for number in numbers]
    for start in range(0, len(items), 500):
        outcomes += judgments_record(
            query=query, annotator=annotator, items=items[start : start + 500]
        ).outcomes
    assert [outcome.status for outcome in outcomes] == ["stored"] * len(items)
    return outcomes


def record(query: Query, annotator: Any, *items: JudgmentInput) -> list[JudgmentOutcome]:
    return judgments_record(query=query, annotator=annotator, items=items).outcomes


def stored(query: Query) -> list[tuple[int, str, int | None, float]]:
    """(toy image, relevance, rank, seconds) of the standing judgments."""
    rows = Judgment.objects.filter(query=query).order_by("image_id")
    return [(j.image_id - FIRST_ID, j.relevance, j.rank, j.seconds) for j in rows]


def ranked(candidate_list: CandidateList | None) -> list[int]:
    """The numbers of the toy images, in the list's order."""
    rows = Candidate.objects.filter(list=candidate_list).order_by("rank")
    return [image_id - FIRST_ID for image_id in rows.values_list("image_id", flat=True)]


def current_list(query: Query) -> CandidateList:
    """The query's current list, read again."""
    found = Query.objects.get(pk=query.pk).current_list
    assert found is not None
    return found

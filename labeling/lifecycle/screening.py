"""Queries that look for what doesn't belong in the corpus, and the withdrawal of what they find.

INQUIRE found faces, personal data, empty images and spectrograms so (appendix H.1); iNat2017 had
images verified that show a trace or the habitat alone (section 3.2.1).
"""

from __future__ import annotations

from typing import Any, Final

from django.db import transaction

from core.errors import Conflict, Invalid
from labeling.judging.progress import relevant_images
from labeling.lifecycle.services import lock_query_ids, query_create
from labeling.queries.models import Benchmark, Query
from retrieval.corpus.models import Image
from retrieval.flags.selectors import is_withdrawn
from retrieval.flags.services import LONGEST_NOTE, image_withdraw

NAME: Final = "Screening"
GUIDELINES: Final = (
    "Mark an image as relevant if it shows this and should leave the corpus. A reviewer looks at "
    "what was found before anything is withdrawn."
)
READY: Final = (
    "a human face that can be recognized",
    "a person",
    "a car's license plate",
    "a written name, address or telephone number",
    "an empty picture without any animal, plant or fungus",
    "a spectrogram of a sound",
    "a screenshot, a map or a page of text",
    "a drawing, a painting or a toy",
    "tracks, droppings or another trace without the animal itself",
    "a habitat or a landscape without the animal itself",
)
"""The texts of the ready queries."""


@transaction.atomic
def screening_create(*, by: Any) -> Benchmark:
    """The screening benchmark with READY as drafts; what is there already stays as it is."""
    lock_query_ids()
    benchmark = Benchmark.objects.filter(screening=True).first() or Benchmark.objects.create(
        name=NAME, guidelines=GUIDELINES, screening=True
    )
    known = set(benchmark.queries.values_list("text", flat=True))
    for text in READY:
        if text not in known:
            query_create(
                text=text,
                category="Species ID",
                split=Query.Split.VAL,
                benchmark=benchmark,
                created_by=by,
            )
    return benchmark


def finds(query: Query) -> list[int]:
    """The images that a screening query has found and that are still in the corpus, by id; none of
    another query, and none before it is complete.
    """
    if not query.benchmark.screening or query.state != Query.State.COMPLETE:
        return []
    kept = Image.objects.filter(~is_withdrawn(), pk__in=relevant_images(query))
    return list(kept.order_by("pk").values_list("pk", flat=True))


@transaction.atomic
def finds_withdraw(*, query: Query, reason: str, by: Any) -> int:
    """Withdraw all that a complete screening query has found; returns how many images left.

    Raises Conflict for another query or state, Invalid for a blank or long reason.
    """
    reason = reason.strip()
    if not 0 < len(reason) <= LONGEST_NOTE:
        raise Invalid({"reason": [f"Give a reason of at most {LONGEST_NOTE} characters."]})
    if not query.benchmark.screening or query.state != Query.State.COMPLETE:
        raise Conflict("Only what a complete screening query has found is withdrawn.")
    found = finds(query)
    for image in Image.objects.filter(pk__in=found).order_by("pk"):
        image_withdraw(image=image, by=by, note=reason)
    return len(found)

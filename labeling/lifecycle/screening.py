"""Queries that look for what doesn't belong in the corpus, and the withdrawal of what they find.

INQUIRE found faces, personal data, empty images and spectrograms so (appendix H.1); iNat2017 had
it verified whether images show the organism (section 3.2.1), which is a query a species here: its
grades are `labeling.judging.grades.EVIDENCE`, and a trace or the habitat alone is a find.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any, Final

from django.db import transaction

from core.errors import Conflict, Invalid
from labeling.judging.progress import relevant_grades
from labeling.lifecycle.services import lock_query_ids, query_create
from labeling.queries.models import Benchmark, Query
from retrieval.corpus.models import Image, Species
from retrieval.flags.selectors import is_withdrawn
from retrieval.flags.services import LONGEST_NOTE, image_withdraw

NAME: Final = "Screening"
GUIDELINES: Final = (
    "Mark an image as relevant if it shows this and should leave the corpus. A reviewer looks at "
    "what was found before anything is withdrawn."
)
VERIFYING: Final = (
    "Say what each image shows: the organism (also a part of it, or a dead one), only a trace such "
    "as tracks, droppings, feathers or a nest, or only the habitat. Mark as unsure what you can’t "
    "tell: it stays in the corpus unless a reviewer decides otherwise."
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
    return _create([{"text": text} for text in READY], by)


@transaction.atomic
def verification_create(*, species: Sequence[Species], by: Any) -> Benchmark:
    """The screening benchmark with a draft for each of these species that asks what its images
    show; the candidates that look least like the organism itself come first.
    """
    return _create(
        [
            {
                "text": f"tracks, droppings or only the habitat of {taxon.scientific_name}",
                "guidelines": VERIFYING,
                "grades": Query.Grades.EVIDENCE,
                "species": [taxon],
            }
            for taxon in species
        ],
        by,
    )


def _create(queries: Sequence[dict[str, Any]], by: Any) -> Benchmark:
    lock_query_ids()
    benchmark = Benchmark.objects.filter(screening=True).first() or Benchmark.objects.create(
        name=NAME, guidelines=GUIDELINES, screening=True
    )
    known = set(benchmark.queries.values_list("text", flat=True))
    for fields in queries:
        if fields["text"] not in known:
            query_create(
                **fields,
                category="Species ID",
                split=Query.Split.VAL,
                benchmark=benchmark,
                created_by=by,
            )
    return benchmark


def finds(query: Query) -> dict[int, list[int]]:
    """The images that a screening query has found and that are still in the corpus, by id and by
    grade, the highest first; none of another query, and none before it is complete.
    """
    if not query.benchmark.screening or query.state != Query.State.COMPLETE:
        return {}
    grades = relevant_grades(query)
    kept = Image.objects.filter(~is_withdrawn(), pk__in=grades).order_by("pk")
    found: defaultdict[int, list[int]] = defaultdict(list)
    for pk in kept.values_list("pk", flat=True):
        found[grades[pk]].append(pk)
    return dict(sorted(found.items(), reverse=True))


@transaction.atomic
def finds_withdraw(*, query: Query, grades: Collection[int], reason: str, by: Any) -> int:
    """Withdraw what a complete screening query has found with these grades; returns how many images
    left.

    Raises Conflict for another query or state, Invalid for a blank or long reason.
    """
    reason = reason.strip()
    if not 0 < len(reason) <= LONGEST_NOTE:
        raise Invalid({"reason": [f"Give a reason of at most {LONGEST_NOTE} characters."]})
    if not query.benchmark.screening or query.state != Query.State.COMPLETE:
        raise Conflict("Only what a complete screening query has found is withdrawn.")
    image_ids = [pk for grade, pks in finds(query).items() if grade in grades for pk in pks]
    for image in Image.objects.filter(pk__in=image_ids).order_by("pk"):
        image_withdraw(image=image, by=by, note=reason)
    return len(image_ids)

"""How far people agree on what several of them have judged, by query, category and person."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from django.contrib.auth import get_user_model

from core.sql import fetch_all
from labeling.judging.blind import SECOND_OPINIONS
from labeling.judging.models import BlindItem, Judgment
from labeling.judging.reliability import Reliability, error_rates, reliability
from labeling.queries.models import Query

#: Fewer people don't determine each other's error rates.
LEAST_PEOPLE: Final = 3
DECIDED: Final = (Query.State.COMPLETE, Query.State.REJECTED)


@dataclass(frozen=True, slots=True)
class Pattern:
    """Images of a query on which the same people say the same."""

    query: int
    """The query's primary key."""
    says: dict[int, bool]
    """Whether relevant, by person; two at least. Unsure counts as not relevant, as in a release."""
    weight: float
    """How many images each stands for; 0 where it was chosen for its score or by a reader."""
    boundary: bool
    """Chosen for their scores."""
    images: int
    image: int | None = None
    """The one image, where each is asked for by itself."""


# What was chosen because of what people said of it can't tell how far they agree: a reviewer's
# decisions, the known positives of an audit, checks. So none of these is a vote here; what
# reviewers judge blindly is. Nor is what somebody picked, which is no sample. Query by query,
# along the index of a query's judgments, and of those alone whose image has several.
_PATTERNS: Final = f"""
SELECT q.id, i.*
  FROM unnest(%s::bigint[]) q (id)
 CROSS JOIN LATERAL (
    SELECT image.*, count(*) FROM (
        SELECT array_agg(j.annotator_id ORDER BY j.annotator_id),
               array_agg((j.relevance = 'relevant')::int ORDER BY j.annotator_id),
               count(*) FILTER (WHERE j.source <> 'second') > 1,
               o.probability, coalesce(o.boundary, false), CASE WHEN %s THEN j.image_id END
          FROM {Judgment._meta.db_table} j
          JOIN {get_user_model()._meta.db_table} person ON person.id = j.annotator_id
          LEFT JOIN {BlindItem._meta.db_table} o
               ON o.query_id = j.query_id AND o.image_id = j.image_id AND o.only_for_id IS NULL
               AND o.kind = '{SECOND_OPINIONS.name}'
         WHERE j.query_id = q.id AND j.image_id IN (
                   SELECT image_id FROM {Judgment._meta.db_table} WHERE query_id = q.id
                    GROUP BY image_id HAVING count(*) > 1)
           AND (person.role = 'annotator' OR j.source = 'second') AND j.source <> 'picked'
           AND NOT EXISTS (SELECT FROM {BlindItem._meta.db_table} known
                            WHERE known.query_id = j.query_id AND known.image_id = j.image_id
                              AND known.only_for_id = j.annotator_id)
         GROUP BY j.image_id, o.probability, o.boundary HAVING count(*) > 1
    ) image (people, said, whole, probability, boundary, image_id)
    GROUP BY people, said, whole, probability, boundary, image_id
 ) i
 ORDER BY q.id, people, said, whole, probability, boundary, image_id
"""
_CHOSEN: Final = f"""
SELECT query_id, count(*) FROM {BlindItem._meta.db_table}
 WHERE only_for_id IS NULL AND probability IS NOT NULL GROUP BY query_id
"""


def patterns(
    *,
    query: Query | None = None,
    person: Any = None,
    decided: bool = False,
    by_image: bool = False,
) -> list[Pattern]:
    """What people say of the images that several judged: of one query, of those that a person has
    judged for, or of all; with `decided` of those that are complete or rejected; with `by_image`
    each image by itself. Three SQL queries.

    Where several labeled an image in the ordinary way it stands for itself. A second opinion stands
    for as many images as its probability says, and for those of its query that were chosen and
    nobody has judged again yet: they are shown in random order, so what is judged is a sample.
    """
    queries = Query.objects.order_by()
    if query is not None:
        queries = queries.filter(pk=query.pk)
    if person is not None:
        queries = queries.filter(
            pk__in=Judgment.objects.filter(annotator=person).order_by().values("query")
        )
    if decided:
        queries = queries.filter(state__in=DECIDED)
    rows = fetch_all(_PATTERNS, [list(queries.values_list("pk", flat=True)), by_image])
    answered: Counter[int] = Counter()
    for pk, _, _, whole, probability, _, _, images in rows:
        answered[pk] += 0 if whole or probability is None else images
    by_query = dict(fetch_all(_CHOSEN))
    result = []
    for pk, people, said, whole, probability, boundary, image, images in rows:
        weight = 1.0 if whole else 0.0
        if not whole and probability is not None:
            weight = by_query[pk] / answered[pk] / probability
        says = dict(zip(people, map(bool, said), strict=True))
        result.append(Pattern(pk, says, weight, boundary, images, image))
    return result


@dataclass(frozen=True, slots=True)
class AgreementRow:
    """How far people agree on some images."""

    of: Any
    """A query, the name of a category, or "All queries"."""
    all: Reliability
    """Estimated for all images that one person alone labeled, and those that several did."""
    boundary: Reliability
    """On those nearest to the boundary alone."""


def agreement_of(patterns: Iterable[Pattern], of: Any = "All queries") -> AgreementRow:
    """The agreement over these images."""
    patterns = list(patterns)
    weighted = [pattern for pattern in patterns if pattern.weight]
    return AgreementRow(
        of,
        _reliability(weighted, lambda pattern: pattern.weight),
        _reliability([pattern for pattern in patterns if pattern.boundary], lambda pattern: 1.0),
    )


def agreement_rows(patterns: Sequence[Pattern]) -> list[AgreementRow]:
    """The agreement over all images, then over those of each category by name. One SQL query."""
    pks = {pattern.query for pattern in patterns}
    categories = dict(Query.objects.filter(pk__in=pks).values_list("pk", "category"))
    by_category: defaultdict[str, list[Pattern]] = defaultdict(list)
    for pattern in patterns:
        by_category[categories[pattern.query]].append(pattern)
    rows = [agreement_of(patterns)] if patterns else []
    return rows + [agreement_of(those, category) for category, those in sorted(by_category.items())]


def agreement_by_query(patterns: Iterable[Pattern], queries: Sequence[Query]) -> list[AgreementRow]:
    """The agreement over the images of each of these queries, in their order."""
    by_query: dict[int, list[Pattern]] = {query.pk: [] for query in queries}
    for pattern in patterns:
        if pattern.query in by_query:
            by_query[pattern.query].append(pattern)
    return [agreement_of(by_query[query.pk], query) for query in queries]


def _reliability(patterns: list[Pattern], weight: Callable[[Pattern], float]) -> Reliability:
    counts = [
        [len(pattern.says) - sum(pattern.says.values()), sum(pattern.says.values())]
        for pattern in patterns
    ]
    times = [pattern.images for pattern in patterns]
    table = np.repeat(np.reshape(np.array(counts, np.float64), (-1, 2)), times, axis=0)
    return reliability(table, np.repeat([weight(pattern) for pattern in patterns], times))


@dataclass(frozen=True, slots=True)
class Standing:
    """One person beside those who judged the same images."""

    images: int
    """That others judged too."""
    positive: float
    """The share that the person says are relevant, 0..1, weighted."""
    colleagues: float
    """The share that the others say, the mean of several."""


def standing_of(patterns: Iterable[Pattern], person: int) -> Standing | None:
    """A person beside their colleagues; None where they share no image that stands for any."""
    shared = [pattern for pattern in patterns if person in pattern.says and pattern.weight]
    if not shared:
        return None
    weights = np.array([pattern.weight * pattern.images for pattern in shared])
    own = np.array([pattern.says[person] for pattern in shared])
    others = [[says for who, says in pattern.says.items() if who != person] for pattern in shared]
    return Standing(
        images=sum(pattern.images for pattern in shared),
        positive=float(np.average(own, weights=weights)),
        colleagues=float(np.average([np.mean(said) for said in others], weights=weights)),
    )


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What Dawid and Skene's model says of a person."""

    sensitivity: float
    """With which probability they recognize a relevant image."""
    specificity: float
    """With which they recognize one that isn't."""


def diagnoses(patterns: Sequence[Pattern]) -> dict[int, Diagnosis]:
    """The diagnosis of each person who shares images, by primary key; none for fewer than
    LEAST_PEOPLE people.
    """
    # What the same people say of images of several queries is one row.
    weights: defaultdict[tuple[tuple[int, bool], ...], float] = defaultdict(float)
    for pattern in patterns:
        if pattern.weight:
            weights[tuple(sorted(pattern.says.items()))] += pattern.weight * pattern.images
    people = sorted({person for said in weights for person, _ in said})
    if len(people) < LEAST_PEOPLE:
        return {}
    column = {person: at for at, person in enumerate(people)}
    counts = np.zeros((len(weights), len(people), 2))
    for row, said in enumerate(weights):
        for person, says in said:
            counts[row, column[person], int(says)] = 1
    rates = error_rates(counts, list(weights.values())).confusion
    return {
        person: Diagnosis(sensitivity=float(rates[at, 1, 1]), specificity=float(rates[at, 0, 0]))
        for person, at in column.items()
    }

"""A query's gallery: the images that were judged for it, by label, person, source and species.

Reviewers see what everybody said, but for images that wait for their own blind judgment; annotators
see what they said themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.db.models import Exists, QuerySet

from core.access import Role, at_least, names_hidden_from
from core.sql import fetch_all
from labeling.candidates.models import Candidate
from labeling.candidates.stopping import NOT_RELEVANT, RELEVANT, UNSURE
from labeling.judging.access import judgments_visible_to
from labeling.judging.blind import blind_to, votes_on_item
from labeling.judging.consensus import Vote, consensus
from labeling.judging.grades import HIGHEST
from labeling.judging.models import Judgment
from labeling.queries.models import Query
from retrieval.corpus.models import Image, ImageWithdrawal, Species

OWN_LABELS: Final = {RELEVANT: "Relevant", NOT_RELEVANT: "Not relevant", UNSURE: "Unsure"}
#: Label → what pages call it. An image may have several: people can be unsure of one that is
#: relevant. The last three tell what others said.
LABELS: Final = OWN_LABELS | {
    "disputed": "Disputed",
    "settled": "Settled by a reviewer",
    "several": "Labeled by several",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GalleryFilter:
    """All conditions must hold; None and empty match everything."""

    label: str = ""
    """One of LABELS: the consensus, or where a person is named what they said."""
    person: int | None = None
    """The id of somebody who judged it."""
    also: int | None = None
    """The id of somebody else who judged it too."""
    source: str = ""
    """A `JudgmentSource` with which it was judged, by the person where one is named."""
    grade: int | None = None
    """Of the consensus, or the person's; an image that is only unsure has none."""
    species: Sequence[int] = ()
    """Ids, of which any."""
    listed: bool | None = None
    """Whether it is in the query's current list."""
    image: int | None = None
    """Its id."""


@dataclass(frozen=True, slots=True)
class Gallery:
    """What a filter finds."""

    image_ids: list[int]
    """In the order of the current list, then by id."""
    counts: Mapping[str, int]
    """By label, "" for all, how many images the filter without its label finds."""
    hidden: int
    """How many labeled images of the query a reviewer doesn't see yet."""


@dataclass(frozen=True, slots=True)
class GalleryImage:
    """An image with what the user may know of its label."""

    image: Image
    species: Species | None
    """None too where its name is hidden from the user."""
    rank: int | None
    """In the query's current list."""
    label: str
    """"relevant", "not_relevant" or "unsure": by the consensus; for annotators their own."""
    marks: tuple[str, ...]
    """What of LABELS holds too: "unsure", "disputed" or "settled"."""
    grade: int | None
    """None where the query asks for none."""
    votes: list[Judgment]
    """Everybody's current judgment, the latest last; for annotators their own."""


# A consensus as `labeling.judging.consensus` has it. Ranks and species are looked up by image, or
# PostgreSQL would read the whole list or table for a few thousand.
_GALLERY: Final = f"""
WITH vote AS (
    SELECT j.image_id, j.annotator_id, j.relevance, j.source, j.updated_at,
           coalesce(j.grade, CASE j.relevance WHEN 'relevant' THEN {HIGHEST} ELSE 0 END) AS grade,
           person.role IN ('reviewer', 'admin') AS decides
      FROM {Judgment._meta.db_table} j
      JOIN {get_user_model()._meta.db_table} person ON person.id = j.annotator_id
     WHERE j.query_id = %(query)s
       AND (%(whose)s::bigint IS NULL OR j.annotator_id = %(whose)s)
       AND (%(image)s::bigint IS NULL OR j.image_id = %(image)s)
), image AS (
    SELECT image_id,
           max(relevance) FILTER (WHERE annotator_id = %(person)s) AS said,
           (array_agg(relevance ORDER BY updated_at DESC, annotator_id DESC)
            FILTER (WHERE decides))[1] AS decision,
           count(*) FILTER (WHERE relevance = 'relevant') * 2 > count(*) AS majority,
           count(*) > 1 AS several,
           bool_or(annotator_id = %(also)s) AS also,
           bool_or(relevance = 'unsure') AS anybody_unsure,
           bool_or(relevance = 'relevant') AND NOT bool_and(relevance = 'relevant') AS differ,
           bool_or(source = %(source)s AND coalesce(annotator_id = %(person)s, true)) AS met,
           max(grade) FILTER (WHERE annotator_id = %(person)s) AS said_grade,
           (array_agg(grade ORDER BY updated_at DESC, annotator_id DESC)
            FILTER (WHERE decides))[1] AS decided_grade,
           floor(percentile_cont(0.5) WITHIN GROUP (ORDER BY grade)
                 FILTER (WHERE relevance = 'relevant')) AS relevant_grade,
           floor(percentile_cont(0.5) WITHIN GROUP (ORDER BY grade)
                 FILTER (WHERE relevance <> 'relevant')) AS other_grade
      FROM vote GROUP BY image_id
), shown AS (
    SELECT image_id,
           coalesce(said = 'relevant', decision = 'relevant', majority) AS relevant,
           coalesce(said = 'unsure', decision = 'unsure', anybody_unsure) AS unsure,
           decision IS NULL AND differ AND NOT anybody_unsure AS disputed,
           coalesce(decision <> 'unsure' AND (differ OR anybody_unsure), false) AS settled,
           said,
           several,
           also,
           met,
           coalesce(said_grade, decided_grade,
                    CASE WHEN majority THEN relevant_grade ELSE other_grade END) AS grade,
           (SELECT c.rank FROM {Candidate._meta.db_table} c
             WHERE c.list_id = %(list)s AND c.image_id = image.image_id
               AND c.rank <= %(size)s) AS rank,
           (SELECT i.species_id FROM {Image._meta.db_table} i
             WHERE i.id = image.image_id) AS species
      FROM image
     WHERE image_id NOT IN (SELECT unnest(%(hidden)s::bigint[]))
       AND NOT EXISTS (SELECT FROM {ImageWithdrawal._meta.db_table} w
                        WHERE w.image_id = image.image_id AND w.restored_at IS NULL)
)
SELECT count(*), {{counts}},
       array_agg(image_id ORDER BY rank NULLS LAST, image_id) FILTER (WHERE {{label}})
  FROM shown WHERE {{conditions}}
"""
_HOLDS: Final = {
    "": "true",
    RELEVANT: "relevant",
    NOT_RELEVANT: "NOT relevant AND NOT unsure",
    UNSURE: "unsure",
    "disputed": "disputed",
    "settled": "settled",
    "several": "several",
}
_COUNTS: Final = ", ".join(f"count(*) FILTER (WHERE {_HOLDS[label]})" for label in LABELS)


def gallery(*, query: Query, user: Any, wanted: GalleryFilter) -> Gallery:
    """The judged images of a query that the user sees, without withdrawn ones, through a filter.

    One SQL query, two for reviewers, in time by the query's judgments. Raises PermissionDenied
    where an annotator asks for what others said, or for a species whose name is hidden.
    """
    reviewer = at_least(user, Role.REVIEWER)
    people = {wanted.person, wanted.also} - {None, user.pk}
    of_others = people or wanted.label not in ("", *OWN_LABELS)
    if of_others and not reviewer:
        raise PermissionDenied("Annotators see their own labels.")
    if wanted.species and names_hidden_from(user):
        raise PermissionDenied("Species are hidden while you label.")
    conditions = {
        "true": True,
        "said IS NOT NULL": wanted.person is not None,
        "also": wanted.also is not None,
        "met": bool(wanted.source),
        "grade = %(grade)s AND (relevant OR NOT unsure)": wanted.grade is not None,
        "species = ANY(%(species)s)": bool(wanted.species),
        "rank IS NOT NULL": wanted.listed is True,
        "rank IS NULL": wanted.listed is False,
    }
    sql = _GALLERY.format(
        counts=_COUNTS,
        label=_HOLDS[wanted.label],
        conditions=" AND ".join(sql for sql, applies in conditions.items() if applies),
    )
    hidden = _hidden_images(query, user)
    values = {
        "query": query.pk,
        "whose": None if reviewer else user.pk,
        "person": wanted.person,
        "also": wanted.also,
        "image": wanted.image,
        "source": wanted.source,
        "grade": wanted.grade,
        "species": list(wanted.species),
        "list": query.current_list_id,
        "size": query.current_list.size if query.current_list else 0,
        "hidden": hidden,
    }
    [(total, *counts, image_ids)] = fetch_all(sql, values)
    by_label = {"": total, **dict(zip(LABELS, counts, strict=True))}
    return Gallery(image_ids or [], by_label, len(hidden))


def _hidden_images(query: Query, user: Any) -> list[int]:
    """The ids of the labeled images that wait for a reviewer's own blind judgment; none for
    annotators, who see their own labels alone. One SQL query.
    """
    if not at_least(user, Role.REVIEWER):
        return []
    waiting = blind_to(user).filter(Exists(votes_on_item()), query=query)
    return list(waiting.order_by().values_list("image", flat=True).distinct())


def gallery_images(*, query: Query, user: Any, image_ids: Sequence[int]) -> list[GalleryImage]:
    """Images of `gallery`, in the order given. At most four SQL queries."""
    votes: defaultdict[int, list[Judgment]] = defaultdict(list)
    judgments = judgments_visible_to(user, query).filter(image__in=image_ids)
    for judgment in judgments.order_by("updated_at", "annotator_id"):
        votes[judgment.image_id].append(judgment)
    images: QuerySet[Image] = Image.objects.all()
    names_hidden = names_hidden_from(user)
    if not names_hidden:
        images = images.select_related("species").prefetch_related("species__names")
    known = images.in_bulk(list(image_ids))
    candidates = Candidate.objects.filter(list=query.current_list_id, image__in=image_ids)
    ranks = dict(candidates.values_list("image", "rank"))
    return [
        _gallery_image(query, known[pk], names_hidden, ranks.get(pk), votes[pk])
        for pk in image_ids
        if votes[pk]
    ]


def _gallery_image(
    query: Query, image: Image, names_hidden: bool, rank: int | None, votes: list[Judgment]
) -> GalleryImage:
    agreed = consensus(
        Vote(vote.annotator_id, vote.annotator.role, vote.relevance, vote.updated_at, vote.grade)
        for vote in votes
    )
    label = RELEVANT if agreed.relevant else UNSURE if agreed.unsure else NOT_RELEVANT
    said = {vote.relevance for vote in votes}
    differ = RELEVANT in said and said != {RELEVANT}
    decided = agreed.decided_by == "reviewer"
    marks = {
        UNSURE: agreed.unsure and label != UNSURE,
        "disputed": not decided and differ and UNSURE not in said,
        "settled": decided and not agreed.unsure and (differ or UNSURE in said),
    }
    return GalleryImage(
        image=image,
        species=None if names_hidden else image.species,
        rank=rank,
        label=label,
        marks=tuple(mark for mark, holds in marks.items() if holds),
        grade=agreed.grade if query.grades else None,
        votes=votes,
    )

"""Filtering the candidates by date, place, license, species and state.

Filters narrow what is shown; the stop rules ignore them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date
from typing import Any, Literal, NamedTuple

from core.access import names_hidden_from
from core.sql import fetch_all
from labeling.candidates.models import Candidate
from labeling.judging.models import Judgment, Relevance
from labeling.queries.models import Query
from retrieval.corpus.models import Image, ImageWithdrawal, Species
from retrieval.corpus.places import species_without_places
from retrieval.flags.models import ImageFlag

MOST_SPECIES = 200

#: West, south, east, north in degrees; with west > east the box crosses the antimeridian.
Box = tuple[float, float, float, float]

# Each image is looked up by its key. Without OFFSET 0, which keeps the lookup a lookup, PostgreSQL
# may read the whole image table to find a few thousand.
_LISTED = f"""
  FROM {Candidate._meta.db_table} c
 CROSS JOIN LATERAL (
     SELECT license, species_id, observed_at, latitude, longitude
       FROM {Image._meta.db_table} WHERE id = c.image_id OFFSET 0
 ) i
 WHERE c.list_id = %s
   AND NOT EXISTS (SELECT FROM {ImageWithdrawal._meta.db_table} w
                    WHERE w.image_id = c.image_id AND w.restored_at IS NULL)
"""
_JUDGED = f"""EXISTS (SELECT FROM {Judgment._meta.db_table} j
 WHERE j.query_id = %s AND j.annotator_id = %s AND j.image_id = c.image_id
   AND j.relevance = ANY(%s))"""
_FLAGGED = f"""EXISTS (SELECT FROM {ImageFlag._meta.db_table} f
 WHERE f.image_id = c.image_id AND f.state = 'open')"""
_PLACE_SHOWN = "(i.species_id IS NULL OR i.species_id <> ALL(%s::bigint[]))"
_DATE = "(i.observed_at AT TIME ZONE 'UTC')::date"


@dataclass(frozen=True, slots=True)
class CandidateFilter:
    """All conditions must hold; of several values for one, any. Empty and None match everything."""

    date_from: date | None = None
    """First day of observation, in UTC as all dates here."""
    date_to: date | None = None
    month: Sequence[int] = ()
    """1..12, in any year."""
    bbox: Box | None = None
    license: Sequence[str] = ()
    """As the images have them; "" for unknown."""
    species: Sequence[int] = ()
    """Ids."""
    judged: Literal["yes", "no", "relevant", "not_relevant", "unsure"] | None = None
    """By the person, for this query: whether at all, or as what."""
    flagged: Literal["yes", "no"] | None = None
    """With an open flag."""


class Counted(NamedTuple):
    """A value, and how many images have it."""

    value: Any
    images: int


@dataclass(frozen=True, slots=True)
class Facets:
    """The values to filter a list by, without withdrawn images."""

    licenses: list[Counted] = field(default_factory=list)
    """Most images first; "" for unknown."""
    species: list[Counted] = field(default_factory=list)
    """At most MOST_SPECIES, most images first; none where names are hidden."""
    first_date: date | None = None
    last_date: date | None = None
    with_place: int = 0


def matching_ranks(*, query: Query, user: Any, candidate_filter: CandidateFilter) -> list[int]:
    """The ranks in the current list that pass a filter, ascending, without withdrawn images; empty
    while the list isn't ready. One SQL query, in time by the list's length.
    """
    current = query.current_list
    if current is None or not current.ready:
        return []
    conditions, values = _conditions(query, user, candidate_filter)
    where = "".join(f" AND {condition}" for condition in conditions)
    sql = f"SELECT c.rank {_LISTED}{where} ORDER BY c.rank"
    return [rank for (rank,) in fetch_all(sql, [current.pk, *values])]


def facets(*, query: Query, user: Any) -> Facets:
    """What the current list's images can be filtered by; empty while it isn't ready.

    One SQL query, and two for the species' names.
    """
    current = query.current_list
    if current is None or not current.ready:
        return Facets()
    rows = fetch_all(
        "SELECT grouping(i.license, i.species_id), i.license, i.species_id, count(*),"
        " min(i.observed_at), max(i.observed_at),"
        " count(*) FILTER (WHERE i.latitude IS NOT NULL AND i.longitude IS NOT NULL"
        f" AND {_PLACE_SHOWN})"
        f"{_LISTED} GROUP BY GROUPING SETS ((i.license), (i.species_id), ())",
        [species_without_places(user), current.pk],
    )
    by_license, by_species = 0b01, 0b10
    licenses = [Counted(row[1], row[3]) for row in rows if row[0] == by_license]
    counts = [(row[2], row[3]) for row in rows if row[0] == by_species and row[2] is not None]
    [(first, last, with_place)] = [row[4:] for row in rows if row[0] == by_license | by_species]
    return Facets(
        licenses=sorted(licenses, key=lambda counted: (-counted.images, counted.value)),
        species=[] if names_hidden_from(user) else _most_frequent(counts),
        first_date=first and first.astimezone(UTC).date(),
        last_date=last and last.astimezone(UTC).date(),
        with_place=with_place,
    )


def _conditions(
    query: Query, user: Any, candidate_filter: CandidateFilter
) -> tuple[list[str], list[Any]]:
    """The SQL of each part of a filter, and the values of all."""
    conditions: list[str] = []
    values: list[Any] = []

    def add(condition: str, *parameters: Any) -> None:
        conditions.append(condition)
        values.extend(parameters)

    if candidate_filter.date_from is not None:
        add(f"{_DATE} >= %s", candidate_filter.date_from)
    if candidate_filter.date_to is not None:
        add(f"{_DATE} <= %s", candidate_filter.date_to)
    if candidate_filter.month:
        add(f"extract(month FROM {_DATE}) = ANY(%s)", list(candidate_filter.month))
    if candidate_filter.bbox is not None:
        west, south, east, north = candidate_filter.bbox
        add("i.latitude BETWEEN %s AND %s", south, north)
        add(_PLACE_SHOWN, species_without_places(user))
        either = "OR" if west > east else "AND"
        add(f"(i.longitude >= %s {either} i.longitude <= %s)", west, east)
    if candidate_filter.license:
        add("i.license = ANY(%s)", list(candidate_filter.license))
    if candidate_filter.species:
        add("i.species_id = ANY(%s)", list(candidate_filter.species))
    if judged := candidate_filter.judged:
        said = [judged] if judged in Relevance.values else Relevance.values
        add(f"NOT {_JUDGED}" if judged == "no" else _JUDGED, query.pk, user.pk, said)
    if candidate_filter.flagged is not None:
        add(_FLAGGED if candidate_filter.flagged == "yes" else f"NOT {_FLAGGED}")
    return conditions, values


def _most_frequent(counts: list[tuple[int, int]]) -> list[Counted]:
    """The species of (id, images) with the most images; those with as many by name."""
    most = dict(sorted(counts, key=lambda count: (-count[1], count[0]))[:MOST_SPECIES])
    known = Species.objects.prefetch_related("names").in_bulk(list(most))
    counted = [Counted(known[pk], count) for pk, count in most.items() if pk in known]
    return sorted(counted, key=lambda count: (-count.images, count.value.scientific_name))

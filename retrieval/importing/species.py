"""Storing of species with their names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from django.db import connection, transaction

from core.locks import lock_key, transaction_lock
from retrieval.corpus.models import Species, SpeciesName
from retrieval.importing.records import SpeciesRecord

_FIELDS = (
    "kingdom",
    "phylum",
    "class_name",
    "order",
    "family",
    "genus",
    "specific_epithet",
    "iconic_group",
    "lookalike_group",
    "conservation_status",
)

# `search_text` is the name in lower case without accents.
_ADD_NAMES = """
INSERT INTO retrieval_speciesname (species_id, language, name, search_text)
SELECT species_id, language, name, lower(unaccent(name))
  FROM unnest(%s::bigint[], %s::text[], %s::text[]) WITH ORDINALITY
       AS added (species_id, language, name, place)
 ORDER BY place
"""


@transaction.atomic
def species_upsert(*, records: Iterable[SpeciesRecord]) -> dict[str, Species]:
    """Store species with all their names; returns them by scientific name.

    Fields of a known species are replaced unless the record leaves them empty, and names by those
    of the same language. Of several records of one species, the last one's fields and the names of
    all are used.
    """
    transaction_lock(lock_key("corpus"))
    records = list(records)
    by_name = {record.scientific_name: record for record in records}
    known = {s.scientific_name: s for s in Species.objects.filter(scientific_name__in=by_name)}
    new = [
        Species(scientific_name=name, **{field: getattr(record, field) for field in _FIELDS})
        for name, record in by_name.items()
        if name not in known
    ]
    changed = [s for s in known.values() if _update(s, by_name[s.scientific_name])]
    Species.objects.bulk_create(new, batch_size=1000)
    Species.objects.bulk_update(changed, _FIELDS, batch_size=1000)
    species = known | {s.scientific_name: s for s in new}
    _names_replace(species, records)
    return species


def _update(species: Species, record: SpeciesRecord) -> bool:
    changed = False
    for field in _FIELDS:
        value = getattr(record, field)
        if value and value != getattr(species, field):
            setattr(species, field, value)
            changed = True
    return changed


def _names_replace(species: dict[str, Species], records: Iterable[SpeciesRecord]) -> None:
    """Replace species' names by those of records, in their order, in the records' languages.

    Ids are in the order of the names: the first is the species' common name.
    """
    given: dict[tuple[int, str], dict[str, None]] = defaultdict(dict)
    for record in records:
        for language, name in [("", record.scientific_name), *record.names]:
            given[species[record.scientific_name].pk, language][name] = None
    known: dict[tuple[int, str], dict[str, int]] = defaultdict(dict)
    rows = SpeciesName.objects.filter(species__in=[s.pk for s in species.values()])
    for pk, species_id, language, name in rows.order_by("pk").values_list(
        "pk", "species_id", "language", "name"
    ):
        known[species_id, language][name] = pk
    changed = {key: names for key, names in given.items() if list(names) != list(known[key])}
    stale = [pk for key in changed for pk in known[key].values()]
    SpeciesName.objects.filter(pk__in=stale).delete()
    _names_add((pk, language, name) for (pk, language), names in changed.items() for name in names)


def _names_add(names: Iterable[tuple[int, str, str]]) -> None:
    """Add (species, language, name), in their order, with one statement."""
    columns = list(zip(*names, strict=True))
    if columns:
        with connection.cursor() as cursor:
            cursor.execute(_ADD_NAMES, list(map(list, columns)))

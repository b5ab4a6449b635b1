"""Species and the names by which they are found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.db.models import Func, TextField, Value
from django.db.models.functions import Lower

from retrieval.importing.records import SpeciesRecord
from retrieval.locks import lock_key, transaction_lock
from retrieval.models import Species, SpeciesName

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
)


def search_form(name: str) -> Any:
    """Return the database expression for a name in lower case without accents."""
    return Lower(Func(Value(name), function="unaccent", output_field=TextField()))


def species_create(*, record: SpeciesRecord) -> Species:
    """Store a species with its names; one that is known is brought up to date."""
    return species_upsert(records=[record])[record.scientific_name]


@transaction.atomic
def species_upsert(*, records: Iterable[SpeciesRecord]) -> dict[str, Species]:
    """Store species with all their names; returns them by scientific name.

    Of a known species, what the record knows replaces what was there; what it leaves empty stays.
    """
    transaction_lock(lock_key("corpus"))
    wanted = {record.scientific_name: record for record in records}
    known = {s.scientific_name: s for s in Species.objects.filter(scientific_name__in=wanted)}
    new = [
        Species(scientific_name=name, **{field: getattr(record, field) for field in _FIELDS})
        for name, record in wanted.items()
        if name not in known
    ]
    changed = [s for s in known.values() if _bring_up_to_date(s, wanted[s.scientific_name])]
    Species.objects.bulk_create(new, batch_size=1000)
    Species.objects.bulk_update(changed, _FIELDS, batch_size=1000)
    species = known | {s.scientific_name: s for s in new}
    _names_add(species, wanted.values())
    return species


def _bring_up_to_date(species: Species, record: SpeciesRecord) -> bool:
    changed = False
    for field in _FIELDS:
        value = getattr(record, field)
        if value and value != getattr(species, field):
            setattr(species, field, value)
            changed = True
    return changed


def _names_add(species: dict[str, Species], records: Iterable[SpeciesRecord]) -> None:
    wanted = {
        (species[record.scientific_name].pk, language, name): None
        for record in records
        for language, name in [("", record.scientific_name), *record.names]
    }
    known = set(
        SpeciesName.objects.filter(species__in=[s.pk for s in species.values()]).values_list(
            "species_id", "language", "name"
        )
    )
    SpeciesName.objects.bulk_create(
        [
            SpeciesName(species_id=pk, language=language, name=name, search_text=search_form(name))
            for pk, language, name in wanted
            if (pk, language, name) not in known
        ],
        batch_size=1000,
    )

"""The names of taxa that the corpus knows."""

from __future__ import annotations

from retrieval.corpus.models import Species, SpeciesName
from retrieval.importing.species_names import KnownNames

_RANKS = ("kingdom", "phylum", "class_name", "order", "family")


def known_names(*, by_form: bool) -> KnownNames:
    """Return the corpus's species, genera, higher ranks and vernacular names; see `KnownNames`."""
    species = Species.objects.values_list("scientific_name", "genus", *_RANKS)
    scientific, genera, others = dict[str, str](), set[str](), set[str]()
    for name, genus, *ranks in species.iterator():
        scientific[name.lower()] = name
        genera.add(genus.lower())
        others.update(rank.lower() for rank in ranks)
    vernacular = SpeciesName.objects.exclude(language="").values_list("name", flat=True)
    others.update(name.lower() for name in vernacular.iterator())
    return KnownNames(scientific, genera - {""}, others - {""}, by_form)

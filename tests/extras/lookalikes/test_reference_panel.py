"""The labeling page's reference: who is confused with a species, before its group and genus."""

from __future__ import annotations

from typing import Any

from extras.lookalikes.models import Confusion
from retrieval.corpus.models import Species
from tests.labeling.conftest import make_images, make_species, new_query, open_query, toy_model

__all__ = ["new_query", "open_query", "toy_model"]


def test_the_reference_shows_who_is_confused_first(
    open_query: Any, clients: dict[str, Any], annotator_api: Any
) -> None:
    names = ("Aus a", "Aus b", "Aus c", "Aus d", "Bus e", "Bus f")
    a, _, c, d, e, f = (make_species(name) for name in names)
    make_images(1, species=a)
    query = open_query(species=[a])

    def lookalikes() -> list[tuple[str, int]]:
        [species] = annotator_api.get(f"/api/queries/{query.pk}/reference/").json()["species"]
        return [(one["scientific_name"], one["times"]) for one in species["lookalikes"]]

    assert lookalikes() == [("Aus b", 0), ("Aus c", 0), ("Aus d", 0)]
    Confusion.objects.create(species=a, taken_for=f, source="table", count=2)
    Confusion.objects.create(species=f, taken_for=a, source="table", count=1)
    Confusion.objects.create(species=c, taken_for=a, source="table", count=1)
    Confusion.objects.create(species=a, taken_for=c, source="embeddings", count=4)
    Confusion.objects.create(species=e, taken_for=a, source="table", count=3)
    # No species is listed that shares its genus alone.
    assert lookalikes() == [("Aus c", 5), ("Bus e", 3), ("Bus f", 3)]
    # Of those that are confused as often, one of its group comes first.
    Species.objects.filter(pk__in=[a.pk, d.pk, f.pk]).update(lookalike_group="toads")
    assert lookalikes() == [("Aus c", 5), ("Bus f", 3), ("Bus e", 3), ("Aus d", 0)]
    page = clients["annotator"].get(f"/queries/{query.pk}/label/").content.decode()
    assert 'data-compare="/look-alikes/"' in page

"""When, where and of which species relevant images are: the query's page and the release's file."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from extras.nature import release_file
from extras.nature.figures import Row, nature_of
from labeling.queries.models import Query
from retrieval.corpus.models import Image, ImageWithdrawal
from tests.labeling.conftest import FIRST_ID, make_species
from tests.releases.complete_queries import complete_query, make_corpus
from tests.releases.snapshots import format_files, header, image, pair, query, write_snapshot

pytestmark = pytest.mark.django_db


@pytest.fixture
def complete(var_dir: Path, settings: Any, admin: Any, annotator: Any) -> Query:
    """Relevant are 0, 4, 9 and 19 of 40; 0 to 9 are toads, 10 to 18 newts, the others unknown."""
    make_corpus(settings)
    toad, newt = make_species("Bufo bufo"), make_species("Triturus cristatus")
    for number in range(40):
        Image.objects.filter(pk=FIRST_ID + number).update(
            species=toad if number < 10 else newt if number < 19 else None,
            observed_at=datetime(2020 + number % 2, 1 + number % 3, 31, 23, 30, tzinfo=UTC)
            if number % 3 != 1
            else None,
            latitude=None if number == 9 else 89.9 if number == 4 else -0.1,
            longitude=None if number == 9 else 180.0 if number == 4 else -0.1,
            elevation=260.0 if number == 0 else -10.0 if number == 1 else None,
        )
    return complete_query(3, by=admin, annotator=annotator)


def test_relevant_images_stand_beside_all_of_their_species(complete: Query, admin: Any) -> None:
    # Withdrawn: image 2, a toad of March 2020.
    ImageWithdrawal.objects.create(
        image_id=FIRST_ID + 2, withdrawn_by=admin, withdrawn_at=timezone.now()
    )
    found = nature_of(complete)
    # Toads without the withdrawn one, and the relevant image of unknown species.
    assert (found.relevant, found.images) == (4, 10)
    months = {row.value: (row.relevant, row.images) for row in found.months}
    # Images 0, 3, 6, 9 are of January; 5 and 8 of March; 1, 4, 7 and 19 without a date.
    assert months.pop("Jan") == (2, 4)
    assert months.pop("Mar") == (0, 2)
    assert set(months.values()) == {(0, 0)}
    assert found.years == [Row("2020", 1, 3), Row("2021", 1, 3)]
    assert found.species == [Row("Bufo bufo", 3, 9), Row("unknown", 1, 1)]
    assert found.elevations == [Row("-250", 0, 1), Row("250", 1, 1)]
    assert found.cells == [(-3, -3, 2, 8), (87, 177, 1, 1)]


def test_reviewers_read_the_page_and_the_file(complete: Query, clients: dict[str, Any]) -> None:
    address = f"/queries/{complete.pk}/nature"
    for name in ("/", ".csv"):
        assert clients["annotator"].get(address + name).status_code == 403
    page = clients["reviewer"].get(f"{address}/").content.decode()
    for text in ("Bufo bufo", "world-map", "<td>2020</td>", ">30.0%<", 'data-vega="300"'):
        assert text in page, text
    assert f'href="{address}/"' in (
        clients["reviewer"].get(f"/queries/{complete.pk}/").content.decode()
    )
    rows = list(csv.reader(io.StringIO(clients["reviewer"].get(f"{address}.csv").content.decode())))
    assert rows[0] == ["plot", "value", "relevant", "images"]
    assert ["species", "Bufo bufo", "3", "10"] in rows
    assert ["places", "87 177", "1", "1"] in rows
    Query.objects.filter(pk=complete.pk).update(state=Query.State.OPEN)
    for name in ("/", ".csv"):
        assert clients["reviewer"].get(address + name)["Location"] == f"/queries/{complete.pk}/"


def test_a_query_without_relevant_images_has_an_empty_page(
    complete: Query, clients: dict[str, Any]
) -> None:
    complete.judgments.update(relevance="not_relevant")
    page = clients["reviewer"].get(f"/queries/{complete.pk}/nature/").content.decode()
    assert "No relevant images" in page
    assert "world-map" not in page


def test_a_release_has_the_same_of_what_was_judged(tmp_path: Path) -> None:
    places = {"latitude": -0.1, "longitude": 179.9}
    images = [
        image(
            1,
            observed_at="2020-05-31T00:00:00+00:00",
            scientific_name="Bufo bufo",
            elevation=-10.0,
            **places,
        ),
        image(2, observed_at="2021-05-01T00:00:00+00:00", scientific_name="=Bufo", **places),
        image(3, observed_at="", scientific_name="", latitude=None, longitude=None),
    ]
    pairs = [pair(q, number, number == q) for q in (1, 2, 3) for number in (1, 2, 3)]
    queries = [query(1, "a", split="val"), query(2, "b"), query(3, "c")]
    snapshot = write_snapshot(
        tmp_path / "s", header=header(), queries=queries, images=images, pairs=pairs
    )
    files = format_files(release_file.write, snapshot, tmp_path / "out")
    assert [(one.name, one.access) for one in files] == [
        ("nature.csv", "labels"), ("nature_val.csv", "open")
    ]  # fmt: skip
    whole = (tmp_path / "out/nature.csv").read_text().splitlines()
    head = ["query_id,what,value,relevant,judged"]
    first = [
        "1,month,5,1,2", "1,year,2020,1,1", "1,elevation,-250,1,1", "1,place,-3 177,1,2",
        "1,species,Bufo bufo,1,1",
    ]  # fmt: skip
    second = ["2,month,5,1,2", "2,year,2021,1,1", "2,place,-3 177,1,2", "2,species,'=Bufo,1,1"]
    assert whole == head + first + second
    assert (tmp_path / "out/nature_val.csv").read_text().splitlines() == head + first


def test_reviewers_find_it_on_a_complete_query(complete: Query, clients: dict[str, Any]) -> None:
    address = f"/queries/{complete.pk}/nature/"
    for role, status in (("annotator", 403), ("reviewer", 200), ("admin", 200)):
        for path in (address, address.rstrip("/") + ".csv"):
            assert clients[role].get(path).status_code == status
    assert clients["anonymous"].get(address)["Location"].startswith("/login/")
    page = f"/queries/{complete.pk}/"
    assert address in clients["reviewer"].get(page).content.decode()
    assert address not in clients["annotator"].get(page).content.decode()
    Query.objects.filter(pk=complete.pk).update(state="open")
    assert clients["reviewer"].get(address)["Location"] == page
    assert address not in clients["reviewer"].get(page).content.decode()

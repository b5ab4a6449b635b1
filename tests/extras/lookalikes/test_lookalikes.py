"""Who is taken for whom: tables in, proposals by embeddings, the graph, species side by side."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command

from core.errors import FileRefused, Invalid
from extras.lookalikes.models import Confusion, DifferenceNote
from extras.lookalikes.selectors import group_pairs, lookalike_groups, side_by_side
from extras.lookalikes.services import (
    confusions_import,
    confusions_propose,
    difference_write,
)
from retrieval.corpus.models import Image, Species
from retrieval.embedding.models import EmbeddingModel
from tests.labeling.conftest import make_images
from tests.retrieval.making import embed_rows, image_row

pytestmark = pytest.mark.django_db

CARDINAL, BROWN, POLAR = "Cardinalis cardinalis", "Ursus arctos", "Ursus maritimus"
TABLE = f"""species,taken_for,count,who
{POLAR},{BROWN},7,x
Brown Bear,{POLAR},2,x
{BROWN},{POLAR},1,x
{CARDINAL},{BROWN},1,x
{CARDINAL},{CARDINAL},9,x
Nessiteras rhombopteryx,{BROWN},3,x
Ursus,{BROWN},3,x
"""


def lines(text: str) -> list[bytes]:
    return text.encode().splitlines(keepends=True)


def stored() -> set[tuple[str, str, int]]:
    rows = Confusion.objects.values_list(
        "species__scientific_name", "taken_for__scientific_name", "count"
    )
    return set(rows)


@pytest.fixture
def named(animals: dict[str, Species]) -> dict[str, Species]:
    confusions_import(lines=lines(TABLE), name="a.csv")
    return {name: Species.objects.get(pk=one.pk) for name, one in animals.items()}


def test_a_table_comes_in_and_makes_groups(animals: dict[str, Species]) -> None:
    report = confusions_import(lines=lines(TABLE), name="a.csv")
    assert stored() == {(POLAR, BROWN, 7), (BROWN, POLAR, 3), (CARDINAL, BROWN, 1)}
    # A genus is no species, and nobody is taken for themselves.
    assert report.unknown == ["Nessiteras rhombopteryx", "Ursus"]
    assert (report.pairs, report.grouped) == (3, 3)
    groups = dict(Species.objects.values_list("scientific_name", "lookalike_group"))
    assert {groups[name] for name in (CARDINAL, BROWN, POLAR)} == {CARDINAL}
    assert groups["Danaus plexippus"] == "orange and black butterflies"

    # A row an identification, in place of the first table; who has a group keeps it.
    table = f"species,taken_for\n{BROWN},{POLAR}\n{BROWN},{POLAR}\nDanaus plexippus,{BROWN}\n"
    report = confusions_import(lines=lines(table), name="b.csv")
    assert stored() == {(BROWN, POLAR, 2), ("Danaus plexippus", BROWN, 1)}
    assert report.grouped == 0


@pytest.mark.parametrize("text", ["", "species\na\n", "species,taken_for,count\na,b,0\n",
                                  "species,taken_for,count\na,b,many\n"])  # fmt: skip
def test_tables_that_are_refused(text: str) -> None:
    with pytest.raises(FileRefused):
        confusions_import(lines=lines(text), name="a.csv")


def test_proposals_by_embeddings(
    toy_model: EmbeddingModel, animals: dict[str, Species], reviewer: Any
) -> None:
    brown, polar, cardinal = (animals[name] for name in (BROWN, POLAR, CARDINAL))
    for first, one, degrees in (
        (1, brown, [0, 1, 2, 80]),
        (5, polar, [78, 80, 82, 84]),
        (9, cardinal, [40]),
    ):
        for number, angle in enumerate(np.deg2rad(degrees), start=first):
            image_row(number, one)
            embed_rows(toy_model, {number: [np.cos(angle), np.sin(angle), 0]})
    call_command("propose_lookalikes", model="toy", least=0.2, verbosity=0)
    assert stored() == {(BROWN, POLAR, 1)}
    report = confusions_propose(model=toy_model, each=50, least=0.3)
    assert (report.pairs, stored()) == (0, set())
    for wrong in ({"model": "none"}, {"least": 0.0}, {"each": 1}):
        with pytest.raises(CommandError):
            call_command("propose_lookalikes", **wrong)


def test_the_groups_and_their_pairs(named: dict[str, Species], reviewer: Any) -> None:
    groups = lookalike_groups()
    assert [(one.name, one.species, one.times) for one in groups] == [
        (CARDINAL, 3, 11), ("orange and black butterflies", 2, 0)
    ]  # fmt: skip
    two = Species.objects.filter(lookalike_group="orange and black butterflies")
    difference_write(one=two[0], other=two[1], text="The *bar*.", by=reviewer)
    assert [(pair.first_for_second, pair.noted) for pair in group_pairs(list(two))] == [(0, True)]
    bears = [named[BROWN], named[POLAR], named[CARDINAL]]
    pairs = {
        (str(pair.first), str(pair.second)): (pair.first_for_second, pair.second_for_first)
        for pair in group_pairs(bears)
    }
    first, second = sorted((named[BROWN], named[POLAR]), key=lambda one: one.pk)
    counts = {BROWN: 3, POLAR: 7}
    assert pairs[str(first), str(second)] == (counts[str(first)], counts[str(second)])


def test_side_by_side(
    named: dict[str, Species], annotator: Any, reviewer: Any, settings: Any
) -> None:
    brown, polar = named[BROWN], named[POLAR]
    for number, month in enumerate((5, 5, 6)):
        image = make_images(1, first=number, species=brown, embedded=False)[0]
        Image.objects.filter(pk=image.pk).update(observed_at=datetime(2021, month, 9, tzinfo=UTC))
    one, other = side_by_side(brown, polar, annotator)
    assert (one.months[4:6], sum(one.months), one.image_count, one.taken) == ([2, 1], 3, 3, 3)
    assert (one.cells, other.cells, other.images) == ([(0, -3, 3)], [], [])
    settings.HIDDEN_PLACES = ["VU"]
    Species.objects.filter(pk=brown.pk).update(conservation_status="VU")
    assert side_by_side(brown, polar, annotator)[0].cells == []
    assert side_by_side(brown, polar, reviewer)[0].cells == [(0, -3, 3)]


def test_the_pages(named: dict[str, Species], clients: dict[str, Any], settings: Any) -> None:
    brown, polar = named[BROWN], named[POLAR]
    page = clients["annotator"].get("/look-alikes/").content.decode()
    assert "Ursus maritimus is taken for Ursus arctos: 7" in page
    assert "lookalike-graph" in page
    other = clients["annotator"].get("/look-alikes/?group=orange and black butterflies")
    assert "confused isn’t known" in other.content.decode()
    address = f"/look-alikes/{brown.pk}/{polar.pk}/"
    for there in ("/look-alikes/", address):
        assert clients["anonymous"].get(there)["Location"].startswith("/login/")
    assert clients["annotator"].get("/corpus/").content.decode().count("/look-alikes/") == 1
    form = clients["reviewer"].get(address).content.decode()
    assert 'data-preview-of="difference"' in form
    assert clients["annotator"].post(address, {"text": "x"}).status_code == 403
    clients["reviewer"].post(address, {"text": "The **hump**.\n<script>"})
    for where in (address, f"/look-alikes/{polar.pk}/{brown.pk}/?part"):
        shown = clients["annotator"].get(where).content.decode()
        assert "<strong>hump</strong>" in shown
        assert "<script>" not in shown.replace('<script type="module"', "")
        assert ("<html" in shown) == (where == address)
    clients["reviewer"].post(address, {"text": "x" * 4001})
    assert DifferenceNote.objects.get().text.startswith("The")
    clients["reviewer"].post(address, {"text": " "})
    assert not DifferenceNote.objects.exists()
    assert clients["annotator"].get(f"/look-alikes/{brown.pk}/{brown.pk}/").status_code == 404
    with pytest.raises(Invalid, match="Two species"):
        difference_write(one=brown, other=brown, text="x", by=None)
    settings.HIDE_SPECIES_NAMES = True
    for hidden in ("/look-alikes/", address):
        assert clients["annotator"].get(hidden).status_code == 403


def test_a_table_is_uploaded(
    animals: dict[str, Species], clients: dict[str, Any], tmp_path: Path
) -> None:
    def sent(text: str, role: str = "admin") -> Any:
        upload = SimpleUploadedFile("a.csv", text.encode())
        return clients[role].post("/look-alikes/", {"file": upload}, follow=True)

    assert sent(TABLE, "reviewer").status_code == 403
    answer = sent(TABLE).content.decode()
    assert "3 pairs; 3 species got a look-alike group." in answer
    assert "Nessiteras rhombopteryx" in answer
    assert "taken_for" in sent("species\nx\n").content.decode()
    assert "is needed" in clients["admin"].post("/look-alikes/", follow=True).content.decode()
    file = tmp_path / "a.csv"
    file.write_text(TABLE)
    call_command("import_lookalikes", file)
    assert len(stored()) == 3
    file.write_text("x")
    for path in (file, tmp_path / "none.csv"):
        with pytest.raises(CommandError):
            call_command("import_lookalikes", path)

"""Folders of any kind: what their names say, what lies beside images, and a second import."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from retrieval.corpus.models import Image, Species, SpeciesName
from retrieval.importing.choices import ImportChoices
from retrieval.importing.records import ImportRefused
from retrieval.importing.services import ImportReport, import_images
from tests.retrieval.making import jpeg

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]


def tree(root: Path, paths: Iterable[str]) -> Path:
    """Write an image at each path, all different."""
    for number, path in enumerate(paths):
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(jpeg(size=(20 + number, 30)))
    return root


def figures(report: ImportReport) -> tuple[int, ...]:
    return report.added, report.updated, report.skipped, report.refused_count


def stored(dataset: str) -> dict[str, tuple[str, str, str]]:
    """Species, taxon text and folder of the images, by their paths."""
    rows = Image.objects.filter(dataset=dataset).values_list(
        "file_name", "species__scientific_name", "taxon_text", "folder"
    )
    return {path: (species or "", text, folder) for path, species, text, folder in rows}


READ: Mapping[str, tuple[str, str, str]] = {
    "top.jpg": ("", "", ""),
    "animals/birds/1.jpg": ("", "", "animals/birds"),
    "animals/birds/Turdus merula/1.jpg": ("Turdus merula", "", "animals/birds"),
    "animals/birds/turdus_merula Linnaeus, 1758/nest/2.jpg": (
        "Turdus merula", "", "animals/birds/nest",
    ),
    "animals/birds/Turdus merula (juv.)/3.jpg": ("Turdus merula", "(juv.)", "animals/birds"),
    "animals/Aves/Turdus/1.jpg": ("", "Turdus", "animals/Aves"),
    "animals/Aves/Amsel/1.jpg": ("", "Amsel", "animals/Aves"),
    "animals/Aves/Turdus/Turdus merula/4.jpg": ("Turdus merula", "", "animals/Aves/Turdus"),
    "Rana temporaria/Grasfrosch/1.jpg": ("Rana temporaria", "", "Grasfrosch"),
    "Rana temporaria/Rana cf. temporaria/1.jpg": ("", "Rana cf. temporaria", ""),
    "Anas platyrhynchos × Anas acuta/1.jpg": ("", "Anas platyrhynchos × Anas acuta", ""),
    "Käfer & Co./1.jpg": ("", "", "Käfer & Co."),
    "2023/1.jpg": ("", "", "2023"),
    "Red fox/1.jpg": ("", "", "Red fox"),
    "train/Bufo bufo/1.jpg": ("Bufo bufo", "", "train"),
    "test/Bufo bufo/1.jpg": ("Bufo bufo", "", "test"),
    "00019_Animalia_Chordata_Amphibia_Anura_Ranidae_Rana_arvalis/1.jpg": (
        "Rana arvalis", "", "",
    ),
}  # fmt: skip


@pytest.fixture
def blackbird() -> None:
    species = Species.objects.create(scientific_name="Turdus merula", genus="Turdus")
    SpeciesName.objects.create(species=species, language="de", name="Amsel", search_text="amsel")


@pytest.mark.usefixtures("blackbird")
def test_folders_of_any_kind_say_what_they_say(tmp_path: Path) -> None:
    root = tree(tmp_path / "mine", READ)
    (root / "Käfer & Co." / "Thumbs.db").write_bytes(b"x")
    (root / "__MACOSX").mkdir()
    (root / "__MACOSX" / "._1.jpg").write_bytes(b"x")
    report = import_images(path=root)
    assert figures(report) == (len(READ), 0, 0, 0)
    assert stored("mine") == READ
    assert report.understood.numbers() == {
        "species": 4, "folder_names": 10, "taxon_texts": 5, "without_species": 9,
    }  # fmt: skip
    assert report.understood.species["Turdus merula"] == 4
    assert Species.objects.get(scientific_name="Rana arvalis").family == "Ranidae"
    before = list(Image.objects.order_by("pk").values())
    assert figures(import_images(path=root)) == (0, 0, len(READ), 0)
    assert list(Image.objects.order_by("pk").values()) == before


def test_folders_that_are_to_be_species_refuse_others_by_name(tmp_path: Path) -> None:
    root = tree(tmp_path / "mine", READ)
    report = import_images(path=root, choices=ImportChoices(folders_are_species=True))
    species = {path: what for path, what in READ.items() if what[0]}
    assert stored("mine") == species
    [reason] = [one for one in report.reasons.listed() if "not a species" in one["reason"]]
    assert (reason["count"], reason["field"]) == (len(READ) - len(species) - 1, "folder")
    assert reason["examples"] == ["2023", "Anas platyrhynchos × Anas acuta", "Käfer & Co."]
    assert reason["reason"].startswith("… is not a species name, and its images are left out.")
    assert "“Rana temporaria”" in reason["reason"]


def test_a_name_that_could_be_a_species_is_one_among_species(tmp_path: Path) -> None:
    """“Hipparchia semele” alone has no ending that no other language has."""
    others = ("Rana temporaria", "Bufo bufo", "Lacerta agilis", "Natrix natrix", "Vipera berus")
    alone = import_images(path=tree(tmp_path / "one", ["Hipparchia semele/1.jpg"]))
    assert (alone.understood.species, alone.understood.without_species) == ({}, 1)
    among = import_images(
        path=tree(tmp_path / "six", [f"{name}/1.jpg" for name in ("Hipparchia semele", *others)])
    )
    assert len(among.understood.species) == 6
    again = import_images(path=tmp_path / "one")
    assert (figures(again), again.understood.species) == ((0, 1, 0, 0), {"Hipparchia semele": 1})


def test_what_was_imported_as_species_before_stays_so(tmp_path: Path) -> None:
    """Earlier any two words of this form were a species."""
    root = tree(tmp_path / "old", ["Rana temporaria/1.jpg", "Red fox/1.jpg", "Rana sp./1.jpg"])
    for name in ("Red fox", "Rana sp."):
        genus, epithet = name.split(" ")
        Species.objects.create(scientific_name=name, genus=genus, specific_epithet=epithet)
    import_images(path=root)
    assert [what for what, *_ in stored("old").values()] == [
        "Rana sp.", "Rana temporaria", "Red fox",
    ]  # fmt: skip
    assert figures(import_images(path=root)) == (0, 0, 3, 0)


def takeout(taken: Any, place: Any, **more: Any) -> str:
    return json.dumps({"photoTakenTime": {"timestamp": taken}, "geoData": place} | more)


def test_takeouts_sidecars_are_counted_in_one_line_and_give_date_and_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "Takeout"
    album = root / "Google Photos" / "Photos from 2023"
    here, zero = {"latitude": 52.5, "longitude": 13.4}, {"latitude": 0.0, "longitude": 0.0}
    sidecars: dict[str, str] = {
        "a.jpg.json": takeout("1700000000", here),
        "b.jpg.supplemental-metadata.json": takeout("1700000001", zero, geoDataExif=here),
        "c.jpg.suppl.json": takeout("1700000002", zero),
        "a.jpg(1).json": takeout("never", here),
        "b(1).jpg.json": takeout("1700000003", {"latitude": 91, "longitude": 0}),
        "d.jpg.json": "[",
        "e.jpg.json": "[]",
        "metadata.json": "{}",
    }
    images = ["a.jpg", "b.jpg", "c.jpg", "a(1).jpg", "b(1).jpg", "d.jpg", "e.jpg", "f.jpg"]
    tree(album, images)
    for name, content in sidecars.items():
        (album / name).write_text(content)
    secret = tmp_path / "secret.json"
    secret.write_text(takeout("1", here))
    (album / "f.jpg.json").symlink_to(secret)
    call_command("import_images", str(root), "--quiet")
    assert capsys.readouterr().out == (
        "passed over 9 other files (.json): are no images; the date or "
        "place of 5 images is theirs\n"
        "Takeout: 8 added, 0 updated, 0 skipped, 0 refused; 8 without a species, 1 folder name\n"
    )
    rows = Image.objects.values_list("file_name", "observed_at__second", "latitude")
    assert {path.rpartition("/")[2]: facts for path, *facts in rows} == {
        "a.jpg": [20, 52.5], "b.jpg": [21, 52.5], "c.jpg": [22, None], "a(1).jpg": [None, 52.5],
        "b(1).jpg": [23, None], "d.jpg": [None, None], "e.jpg": [None, None], "f.jpg": [None, None],
    }  # fmt: skip
    image = Image.objects.get(file_name__endswith="/a.jpg")
    assert image.observed_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    assert image.folder == "Google Photos/Photos from 2023"


def test_a_folder_without_images_is_refused_with_what_it_holds(tmp_path: Path) -> None:
    folder = tmp_path / "notes" / "2023"
    folder.mkdir(parents=True)
    with pytest.raises(CommandError, match=r"There is no image in this folder\.$"):
        call_command("import_images", str(tmp_path / "notes"))
    (folder / "a.json").write_text("{}")
    with pytest.raises(ImportRefused, match=r"in this folder, only 1 other file \(\.json\)\."):
        import_images(path=tmp_path / "notes")

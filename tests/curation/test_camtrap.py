"""Camtrap DP: what becomes a photo of an observation, what is left out, and what is refused."""

from __future__ import annotations

import csv
import datetime as dt
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from PIL import Image as Picture

from curation import splits
from curation.sources import read
from curation.tables import Connection, CurationRefused, connect
from retrieval.corpus.models import Image
from tests.curation.archives import DEPLOYMENT, camtrap, shot, sighting

FOX, BOAR = "Vulpes vulpes", "Sus scrofa Linnaeus, 1758"


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with connect(tmp_path / "curation.duckdb", threads=2) as opened:
        yield opened


def rows(connection: Connection, sql: str) -> list[Any]:
    return connection.execute(sql).fetchall()


EVERYTHING: tuple[list[dict[str, str]], list[dict[str, str]]] = (
    [
        # An event with observations of its photos: foxes, a boar, a blank and what a machine said.
        shot("late", 5),
        shot("early", 1),
        shot("boar", 2),
        shot("blank", 3),
        shot("both", 4),
        shot("machine", 6),
        # An event without: what is said of it counts from its first second to its last.
        shot("first", 30),
        shot("last", 39),
        shot("favorite", 35, favorite="true"),
        shot("after", 40),
        shot("unseen", 31),
        # What is left out, each for its reason.
        shot("person", 50),
        shot("rider", 51),
        shot("car", 52),
        shot("unknown", 53),
        shot("nameless", 54),
        shot("hidden", 55, filePublic="false"),
        shot("film", 56, fileMediatype="video/mp4"),
        shot("sound", 57, fileMediatype="audio/wav"),
        # Another deployment, without a right clock, has an event of the same id.
        shot("deer", 1, deploymentID="d2", filePath="media/deer.jpg"),
    ],
    [
        sighting("late", name=FOX, eventID="e"),
        sighting("early", name=FOX, eventID="e"),
        sighting("boar", name=BOAR, eventID="e"),
        sighting("blank", "blank", eventID="e"),
        sighting("both", name=FOX, eventID="e"),
        sighting("both", name=BOAR, eventID="e"),
        sighting("machine", name=BOAR, classificationMethod="machine", eventID="e"),
        sighting("machine", name=FOX, eventID="e"),
        sighting(name=FOX, eventID="f"),
        sighting("unseen", "unclassified"),
        sighting("person", name="Homo sapiens"),
        sighting("rider", name=FOX),
        sighting("rider", "human", classificationMethod="machine"),
        sighting("car", "vehicle"),
        sighting("unknown", "unknown"),
        sighting("nameless"),
        sighting("hidden", name=FOX),
        sighting("deer", name="Cervidae", deploymentID="d2", eventID="e"),
    ],
)
PLACES = [DEPLOYMENT, {**DEPLOYMENT, "deploymentID": "d2", "timestampIssues": "true"}]


def test_every_kind_of_medium_is_read_or_counted(connection: Connection, tmp_path: Path) -> None:
    path = camtrap(tmp_path / "package", *EVERYTHING, PLACES)
    read(connection, kind="camtrap-dp", path=path)
    found = rows(
        connection, "SELECT observation_id, name, string_agg(photo_id, ' ' ORDER BY position) "
        "FROM photo JOIN observation USING (observation_id) JOIN taxon USING (taxon_id) "
        "GROUP BY ALL ORDER BY ALL",
    )  # fmt: skip
    assert found == [
        ("e · d1 · Sus scrofa Linnaeus, 1758", "Sus scrofa", "boar"),
        ("e · d1 · Vulpes vulpes", "Vulpes vulpes", "early both late machine"),
        ("e · d2 · Cervidae", "Cervidae", "deer"),
        ("f", "Vulpes vulpes", "favorite first unseen last"),
    ]
    counts = {
        reason: (file, count, example)
        for file, reason, count, example in rows(
            connection, "FROM refused WHERE rows > 0 AND reason NOT LIKE 'observations with %'"
        )
    }
    example = "film · https://example.org/film.jpg · CC-BY-4.0"
    assert counts == {
        reason: ("media.csv", count, example)
        for reason, count, example in [
            ("a blank photo", 1, "blank"),
            ("a file that is not public", 1, "hidden"),
            ("a photo of a vehicle", 1, "car"),
            ("a photo of an animal without a name", 1, "nameless"),
            ("a photo whose content is unknown or unclassified", 1, "unknown"),
            ("a photo with a person", 2, "person"),
            ("a photo without an observation", 1, "after"),
            ("a sound, not a photo", 1, example.replace("film", "sound")),
            ("a video, not a photo", 1, example),
            ("date left out: the deployment has timestamp issues", 1, "d2"),
            ("several species on a photo: the first is taken", 1, "both"),
        ]
    }
    # The local time of an event is that of its first photo.
    noon = dt.datetime.fromisoformat("2021-05-02T12:00:30")
    assert rows(connection, "SELECT deployment, observer, day, observed_at, latitude, longitude, "
                "uncertainty FROM observation WHERE observation_id IN ('f', 'e · d2 · Cervidae') "
                "ORDER BY ALL") == [
        ("d1", "d1", noon.date(), noon, 52.5, 13.4, 100.0),
        ("d2", "d2", None, None, 52.5, 13.4, 100.0),
    ]  # fmt: skip
    assert rows(connection, "SELECT url, file_name, license, rights_holder FROM photo "
                "WHERE photo_id IN ('deer', 'last') ORDER BY ALL") == [
        (f"{path}/media/deer.jpg", "media/deer.jpg", "cc-by", "A Forest"),
        ("https://example.org/last.jpg", "", "cc-by", "A Forest"),
    ]  # fmt: skip
    assert rows(connection, "SELECT name, rank, kingdom, class, epithet FROM taxon ORDER BY 1") == [
        ("Cervidae", "family", "", "", ""),
        ("Sus scrofa", "species", "", "", "scrofa"),
        ("Vulpes vulpes", "species", "Animalia", "Mammalia", "vulpes"),
    ]
    assert rows(connection, "FROM vernacular") == [("Vulpes vulpes", "en", "red fox")]


def test_two_licenses_of_media_are_none_and_rounded_places_are_obscured(
    connection: Connection, tmp_path: Path
) -> None:
    licenses = [
        {"name": "CC-BY-4.0", "scope": "media"},
        {"path": "https://creativecommons.org/publicdomain/zero/1.0/", "scope": "media"},
    ]
    rounded = {"licenses": licenses, "coordinatePrecision": 0.1}
    read(
        connection, kind="camtrap-dp", path=camtrap(tmp_path / "p", *EVERYTHING, PLACES, **rounded)
    )
    assert rows(connection, "SELECT DISTINCT license, license_text, obscured FROM photo "
                "JOIN observation USING (observation_id)") == [
        ("", "CC-BY-4.0 / https://creativecommons.org/publicdomain/zero/1.0/", True)
    ]  # fmt: skip


def test_blank_photos_and_photos_with_people_come_in_where_the_source_says_so(
    connection: Connection, tmp_path: Path
) -> None:
    path = camtrap(tmp_path / "package", *EVERYTHING, PLACES)
    shutil.make_archive(str(path), "zip", path)
    read(connection, kind="camtrap-dp", path=path.with_suffix(".zip"), blank=True, human=True)
    photos = "'blank', 'person', 'rider', 'deer'"
    assert rows(connection, "SELECT photo_id, name FROM photo JOIN observation USING "
                "(observation_id) JOIN taxon USING (taxon_id) "
                f"WHERE photo_id IN ({photos}) ORDER BY 1") == [
        ("blank", "Blank"), ("person", "Homo sapiens"), ("rider", "Vulpes vulpes"),
    ]  # fmt: skip
    assert rows(connection, "SELECT rows FROM refused WHERE reason LIKE '%inside a zip%'") == [(1,)]


def broken(table: str, change: dict[str, str], without: str = "") -> Any:
    """EVERYTHING and the places, with a change in the first row of a table, or without a column."""
    tables = dict(zip(("media", "observations", "deployments"), (*EVERYTHING, PLACES), strict=True))
    first, *others = tables[table]
    changed = [first | change, *others]
    tables[table] = [{k: v for k, v in row.items() if k != without} for row in changed]
    return tables


@pytest.mark.parametrize(
    ("package", "sentence"),
    [
        (
            broken("media", {"deploymentID": "d9"}),
            "media.csv: row 2, field deploymentID: “d9” isn't in deployments",
        ),
        (
            broken("observations", {"mediaID": "gone"}),
            "observations.csv: row 2, field mediaID: “gone” isn't in media",
        ),
        (
            broken("deployments", {"latitude": "95"}),
            'deployments.csv: row 2, field latitude: “95”: constraint "maximum" is "90"',
        ),
        (
            broken("observations", {}, without="observationType"),
            "observations.csv: row 1, field observationType: there is no such column",
        ),
        (
            broken("media", {"timestamp": "2021-05-02T12:00:00"}),
            "media.csv: row 2, field timestamp: “2021-05-02T12:00:00”: "
            'type is "datetime/%Y-%m-%dT%H:%M:%S%z"',
        ),
        (
            broken("media", {"filePath": "../secret.jpg"}),
            "media.csv: row 2, field filePath: “../secret.jpg”: constraint",
        ),
        (
            broken("media", {"mediaID": "early"}),
            "media.csv: row 3: ",
        ),
        (
            {"media": [], "observations": [], "licenses": [{"scope": "media"}]},
            'datapackage.json: license requires "path" or "name"',
        ),
        (
            {"media": [], "observations": [], "profile": "https://x/camtrap-dp/0.1.6/p.json"},
            "datapackage.json: isn't of Camtrap DP 1.0; its profile is https://x/camtrap-dp/0.1.6",
        ),
        (
            {"media": [], "observations": [], "resources": [{"name": "media", "path": "a.csv"}]},
            "datapackage.json: isn't a Camtrap DP's: it has no 'deployments'",
        ),
    ],
)
def test_what_is_wrong_is_named_by_file_row_and_field(
    connection: Connection, tmp_path: Path, package: dict[str, Any], sentence: str
) -> None:
    path = camtrap(tmp_path / "package", **package)
    with pytest.raises(CurationRefused) as refused:
        read(connection, kind="camtrap-dp", path=path)
    assert str(refused.value).startswith(sentence)
    assert "\n" not in str(refused.value)
    assert rows(connection, "SELECT count(*) FROM photo") == [(0,)]


def test_no_method_divides_a_deployment(tmp_path: Path) -> None:
    draw = random.Random(7)
    places = [{**DEPLOYMENT, "deploymentID": f"d{n}", "latitude": str(n)} for n in range(40)]
    media = [
        shot(
            f"m{n}", deploymentID=f"d{draw.randrange(40)}",
            timestamp=f"2021-05-{draw.randrange(1, 31):02d}T12:00:00+02:00",
        )
        for n in range(400)
    ]  # fmt: skip
    seen = [
        sighting(one["mediaID"], name=draw.choice((FOX, BOAR)), deploymentID=one["deploymentID"])
        for one in media
    ]
    with connect(tmp_path / "curation.duckdb", threads=2) as connection:
        read(connection, kind="camtrap-dp", path=camtrap(tmp_path / "p", media, seen, places))
        found = {}
        for method, more in {
            "observer": {}, "time": {"since": dt.date(2021, 5, 12)}, "place": {}, "deployment": {},
        }.items():  # fmt: skip
            splits.assign(connection, method=method, seed=3, **more)
            sides = rows(
                connection, "SELECT deployment, count(DISTINCT split), min(split), count(*) "
                "FROM candidate JOIN split USING (photo_id) GROUP BY deployment",
            )  # fmt: skip
            assert {count for _, count, _, _ in sides} == {1}, method
            assert sum(count for *_, count in sides) == 400
            found[method] = {side for _, _, side, _ in sides}
        assert found["deployment"] == found["observer"] == {"train", "val", "test"}
        assert found["time"] == {"train", "test"}
        # Without deployments, observations are divided.
        connection.execute("UPDATE observation SET deployment = ''")
        splits.assign(connection, method="deployment", seed=3, test_share=0.5)
        [(tested,)] = rows(connection, "SELECT count(*) FROM split WHERE split = 'test'")
        assert 160 < tested < 240


@pytest.mark.django_db
def test_a_package_goes_into_the_application(tmp_path: Path, settings: Any) -> None:
    settings.VAR_DIR = tmp_path / "var"
    names = [f"m{n}" for n in range(6)]
    media = [shot(name, n, filePath=f"media/{name}.jpg") for n, name in enumerate(names)]
    seen = [sighting(name, name=FOX, eventID=f"e{n // 2}") for n, name in enumerate(names)]
    folder = camtrap(tmp_path / "package", media, seen)
    (folder / "media").mkdir()
    for n, name in enumerate(names):
        Picture.new("RGB", (600, 400), (40 * n, 90, 30)).save(folder / "media" / f"{name}.jpg")
    config = tmp_path / "corpus.toml"
    config.write_text(
        '[[sources]]\nkind = "camtrap-dp"\npath = "package"\nhuman = false\n'
        "[filters]\nprimary_photo = true\n[splits]\nmethod = 'deployment'\n"
    )
    out = tmp_path / "corpus"
    call_command("curate", "run", config, out)
    call_command("curate", "fetch", out, verbosity=0)
    with (out / "images.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [(row["photo_id"], row["observation_id"], row["deployment"]) for row in table] == [
        ("m0", "e0", "d1"), ("m2", "e1", "d1"), ("m4", "e2", "d1"),
    ]  # fmt: skip
    [split] = {row["split"] for row in table}
    call_command("import_images", out / f"{split}.json", verbosity=0)
    images = Image.objects.order_by("id")
    given = json.loads((out / f"{split}.json").read_text())["images"]
    assert [image.rights_holder for image in images] == ["A Forest"] * 3
    for image, row in zip(images, given, strict=True):
        assert image.species is not None
        assert (image.species.scientific_name, image.species.common_name) == (FOX, "red fox")
        assert (image.latitude, image.longitude) == (52.5, 13.4)
        assert row["date"].startswith("2021-05-02 12:00:0")

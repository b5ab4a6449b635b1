"""A made release loses the bytes of an image that was taken down, and is verified as before."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.test import Client

from annotator.people.services import person_leave
from core import storage
from core.access import Role
from core.jobs.models import Job
from core.jobs.services import Slice, job_slice_run
from evaluation.runs.selectors import release_data
from releases.making import services
from releases.making.services import release_verify
from releases.models import Release
from retrieval.corpus.models import Image
from retrieval.images.storage import image_store
from retrieval.takedown.services import image_take_down
from tests.annotator.addresses import addresses, body_of
from tests.conftest import client_of, person
from tests.retrieval.making import jpeg

pytestmark = pytest.mark.django_db


def bytes_in(path: Path) -> set[int]:
    """The images whose bytes lie in a release's Parquet files."""
    found = set()
    for file in path.rglob("*.parquet"):
        table = pq.ParquetFile(file)
        if {"image", "image_id"} <= set(table.schema_arrow.names):
            for row in table.read(["image", "image_id"]).to_pylist():
                if row["image"] and row["image"]["bytes"]:
                    found.add(row["image_id"])
    return found


def stored_texts() -> Iterator[tuple[str, str]]:
    """All that files below VAR_DIR hold, Parquet and archives as what they hold, and all rows of
    the database, each as text with its name."""

    def read(name: str, data: bytes) -> Iterator[tuple[str, str]]:
        if name.endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                for member in archive.namelist():
                    yield from read(f"{name}/{member}", archive.read(member))
        elif name.endswith(".parquet"):
            yield name, str(pq.read_table(io.BytesIO(data)).to_pylist())
        else:
            yield name, data.decode("latin-1")

    for path in Path(settings.VAR_DIR).rglob("*"):
        if path.is_file():
            yield from read(str(path), path.read_bytes())
    for table in connection.introspection.table_names():
        with connection.cursor() as cursor:
            cursor.execute(f'SELECT t::text FROM "{table}" t')
            for (row,) in cursor.fetchall():
                yield table, row


def served_texts(client: Client) -> Iterator[tuple[str, str]]:
    """The answer to every address."""
    for address in addresses():
        if not address.startswith("api/schema"):
            yield address, body_of(client.get(f"/{address}")).decode("latin-1")


@pytest.fixture
def release(query: Any, judge: Any, annotator: Any, var_dir: Path, tmp_path: Path) -> Release:
    for number, color in [(1, "red"), (2, "green")]:
        stored = image_store(jpeg(color))
        Image.objects.filter(pk=number).update(
            sha256=stored.sha256, license_url="https://creativecommons.org/licenses/by/4.0/"
        )
        judge(query, number, annotator, "relevant")
    options = {"include_images": True, "test_labels": "public"}
    return services.release_export(
        name="Birds", directory=tmp_path / "one", new=True, options=options
    )


def take_down(pk: int, by: Any) -> None:
    image_take_down(image=Image(pk=pk), reason="A face", by=by)
    job = Job.objects.get(kind="take_down", params__images=[pk])
    while job_slice_run(job_id=job.pk) is Slice.MORE:
        pass
    job.refresh_from_db()
    assert job.state == Job.State.DONE, job.error


def test_its_bytes_go_and_the_release_verifies(
    release: Release, admin: Any, clients: dict[str, Client]
) -> None:
    assert bytes_in(release.directory) == {1, 2}
    before = {entry["name"]: entry["sha256"] for entry in release.file_list}
    take_down(1, admin)
    release.refresh_from_db()
    assert bytes_in(release.directory) == {2}
    needle = jpeg("red")[-200:]
    for path in release.directory.rglob("*"):
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                assert not any(needle in archive.read(name) for name in archive.namelist())
        elif path.is_file():
            assert needle not in path.read_bytes()
    assert release_verify(release=release) == []
    (takedown,) = release.takedowns
    now = {entry["name"]: entry["sha256"] for entry in release.file_list}
    assert takedown["images"] == [1]
    assert takedown["former"] == {
        name: sha256 for name, sha256 in before.items() if now.get(name) != sha256
    }
    # The labels are as they were.
    assert all(
        now[name] == before[name]
        for name in before
        if name.startswith(("inquire_", "judgments", "trec", "certificates"))
    )
    manifest = json.loads((release.directory / "manifest.json").read_text())
    assert manifest["takedowns"] == [{"moment": takedown["moment"], "images": [1]}]
    page = clients["reviewer"].get(f"/releases/{release.pk}/").content.decode()
    assert "1 image (1) was removed from its files" in page
    assert "It never changes" not in page


@pytest.mark.parametrize("with_images", [True, False])
def test_nothing_tells_of_whom_it_is(
    query: Any,
    judge: Any,
    annotator: Any,
    admin: Any,
    images: Any,
    var_dir: Path,
    with_images: bool,
) -> None:
    """Of a test query whose labels are hidden, in a release with and without images."""
    stored = image_store(jpeg("red"))
    holder, day = "Maya Fernbrook", "1997-08-23"
    needles = [holder, day, "-31.40625", "77.28125", "471.5", "2718.25", stored.sha256]
    Image.objects.filter(pk=1).update(
        sha256=stored.sha256, rights_holder=holder, observed_at=f"{day}T10:00:00Z",
        latitude=-31.40625, longitude=77.28125, location_uncertainty=471.5, elevation=2718.25,
        license_url="https://creativecommons.org/licenses/by/4.0/",
    )  # fmt: skip
    for number in (1, 2):
        judge(query, number, annotator, "relevant")
    release = services.release_make(
        release=services.release_claim(
            name="Birds", created_by=admin, options={"include_images": with_images}
        )
    )

    def found(texts: Iterator[tuple[str, str]]) -> dict[str, set[str]]:
        by_place = {place: {one for one in needles if one in text} for place, text in texts}
        return {place: those for place, those in by_place.items() if those}

    client = client_of(admin)
    before = set().union(*found(stored_texts()).values())
    assert before >= set(needles)
    assert found(served_texts(client))
    take_down(1, admin)
    # By its checksum an import refuses the file.
    assert found(stored_texts()) == {"retrieval_imagetakedown": {stored.sha256}}
    assert found(served_texts(client)) == {
        "admin/retrieval/imagetakedown/1/change/": {stored.sha256}
    }
    release.refresh_from_db()
    assert release_verify(release=release) == []
    assert [(one["images"], one["open"]) for one in release.takedowns] == [([1], [])]
    for name, shown in (("manifest.json", True), ("manifest_open.json", False)):
        assert ("takedowns" in json.loads((release.directory / name).read_text())) is shown


def test_one_that_comes_while_a_release_is_made(
    query: Any, judge: Any, annotator: Any, admin: Any, images: Any, var_dir: Path
) -> None:
    Image.objects.filter(pk=1).update(rights_holder="Maya Fernbrook")
    judge(query, 1, annotator, "relevant")
    release = services.release_claim(name="Birds", created_by=admin)
    begun = False

    def report(steps: Any) -> None:
        nonlocal begun
        if not begun and steps[-1].state == "running":
            begun = True
            take_down(1, admin)

    services.release_make(release=release, report=report)
    assert begun
    assert not [place for place, text in stored_texts() if "Maya Fernbrook" in text]


def test_a_second_one_and_a_repeated_one(
    release: Release, query: Any, admin: Any, tmp_path: Path
) -> None:
    take_down(1, admin)
    take_down(2, admin)
    release.refresh_from_db()
    assert [one["images"] for one in release.takedowns] == [[1], [2]]
    assert bytes_in(release.directory) == set()
    assert release_verify(release=release) == []
    files = release.file_list
    Job.objects.filter(kind="take_down").update(state=Job.State.QUEUED, cursor={})
    for job in Job.objects.filter(kind="take_down"):
        while job_slice_run(job_id=job.pk) is Slice.MORE:
            pass
    release.refresh_from_db()
    assert release.file_list == files


def test_nothing_else_of_a_made_release_may_change(release: Release) -> None:
    rows = Release.objects.filter(pk=release.pk)
    added = [{"images": [1]}]
    for change in [
        {"file_list": []},
        {"takedowns": added, "name": "Fish"},
        {"header": {}},
        {"takedowns": added * 2},
    ]:
        with pytest.raises(IntegrityError, match="never changes"), transaction.atomic():
            rows.update(**change)
    rows.update(takedowns=added)
    with pytest.raises(IntegrityError, match="never changes"), transaction.atomic():
        rows.update(takedowns=[{"images": [2]}, {"images": [3]}])
    rows.update(takedowns=[*added, {"images": [2]}])


def test_the_name_of_a_maker_who_left_goes(
    query: Any, judge: Any, annotator: Any, admin: Any, var_dir: Path
) -> None:
    judge(query, 1, annotator, "relevant")
    other = person("anastasia", Role.ADMIN)
    release = services.release_make(release=services.release_claim(name="Birds", created_by=other))
    assert b"anastasia" in (release.directory / "manifest.json").read_bytes()
    pseudonym = person_leave(user=other, by=admin)
    job = Job.objects.get(kind="take_down")
    while job_slice_run(job_id=job.pk) is Slice.MORE:
        pass
    job.refresh_from_db()
    assert job.state == Job.State.DONE, job.error
    release.refresh_from_db()
    assert release.header["made_by"] == pseudonym
    for path in release.directory.rglob("*"):
        if path.is_file():
            assert b"anastasia" not in path.read_bytes()
    assert pseudonym.encode() in (release.directory / "manifest.json").read_bytes()
    assert release_verify(release=release) == []


def test_its_bytes_leave_the_bucket(
    in_bucket: dict[str, str], release: Release, admin: Any, settings: Any, tmp_path: Path
) -> None:
    assert not release.directory.exists()
    assert release_data(release).header.corpus_images == 6

    def held() -> dict[str, bytes]:
        found = {}
        for path in storage.names_below(Path(settings.VAR_DIR) / "releases"):
            with storage.reading(path) as file:
                found[storage.name_of(path)] = file.read()
        return found

    def archives() -> Iterator[bytes]:
        for name, data in held().items():
            if name.endswith(".zip"):
                with zipfile.ZipFile(io.BytesIO(data)) as archive:
                    yield from map(archive.read, archive.namelist())

    red, green = jpeg("red")[-200:], jpeg("green")[-200:]
    for needle in (red, green):
        assert any(needle in data for data in archives())
    # Another machine does it.
    settings.VAR_DIR = tmp_path / "two"
    settings.VAR_DIR.mkdir()
    take_down(1, admin)
    release.refresh_from_db()
    assert any(green in data for data in archives())
    assert not any(red in data for data in [*held().values(), *archives()])
    listed = {entry["name"] for entry in release.file_list}
    listed |= {release.archive["name"], release.archive["open"]["name"]}
    assert {name.removeprefix(f"releases/{release.pk}/") for name in held()} == listed
    assert release_verify(release=release) == []
    assert not any(red in p.read_bytes() for p in settings.VAR_DIR.rglob("*") if p.is_file())
    settings.VAR_DIR = tmp_path / "three"
    settings.VAR_DIR.mkdir()
    assert release_data(release).header.corpus_images == 6

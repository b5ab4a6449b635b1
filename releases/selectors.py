"""Finding releases, and the files of a release that a user may have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import floor
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
from django.db.models import QuerySet
from django.http import Http404

from core import storage
from core.errors import Missing
from core.ids import id_of
from core.jobs.models import Job
from releases.access import file_visible_to, labels_visible_to
from releases.difference.difference import without_test_labels
from releases.formats.base import Access
from releases.formats.certificates import (
    RELEASE_CERTIFICATE_FILE,
    VAL_RELEASE_CERTIFICATE_FILE,
)
from releases.formats.huggingface import REFUSED_FILE
from releases.formats.registry import all_formats
from releases.models import Release
from releases.snapshot.release_certificate import ReleaseCertificate, waiting_images
from releases.snapshot.snapshot import Snapshot
from retrieval.corpus.models import Image
from retrieval.datasets.selectors import Finding, findings_among

#: The formats' keys of files that no format wrote.
SNAPSHOT_KEY = "snapshot"
RELEASE_KEY = "release"
#: Long fields that a list of releases doesn't show.
LONG_FIELDS = ("header", "difference", "file_list", "archive")
#: How a text names one version of a benchmark, as `Release.__str__` writes it.
VERSIONED: Final = re.compile(r"(.+) v([1-9][0-9]{0,8})", re.DOTALL)


class UnknownRelease(Missing):
    """No made release has that name; the text says which there are."""


@dataclass(frozen=True, slots=True)
class FileGroup:
    """The files of a release that one format wrote."""

    title: str
    about: str
    files: list[dict[str, Any]]
    """Entries of the release's `file_list` that the person may have."""
    withheld: int
    """How many more there are."""


def releases() -> QuerySet[Release]:
    """All releases with their makers and jobs, the newest first."""
    # Pages only name the version before, and its other fields are long.
    long = (f"previous__{name}" for name in LONG_FIELDS)
    related = ("created_by", "job", "previous", "benchmark")
    return Release.objects.select_related(*related).defer(*long)


def release_versions(release: Release) -> list[Release]:
    """All versions of a release's benchmark, the newest first."""
    versions = releases().defer(*LONG_FIELDS).filter(name=release.name)
    return list(versions.order_by("-version"))


def release_names() -> list[str]:
    """The names of the releases that were made here, which can have a next version; sorted."""
    made = Release.objects.filter(origin=Release.Origin.MADE)
    return sorted(set(made.values_list("name", flat=True)))


def released_queries_by_id() -> dict[int, str]:
    """Query id -> the title of the newest release made here that has it, since a release doesn't
    follow a later draw of the splits. A release whose files are missing is passed over.
    """
    titles: dict[int, str] = {}
    made = Release.objects.made().filter(origin=Release.Origin.MADE)
    for release in made.order_by("made_at"):
        path = Snapshot(release.snapshot_directory).path("queries")
        if path.is_file():
            ids = pq.read_table(path, columns=["query_id"])["query_id"].to_pylist()
            titles |= dict.fromkeys(ids, str(release))
    return titles


def release_find(*, name: str, version: int | None = None) -> Release | None:
    """The made release of that name: its latest version, or the one of that version."""
    made = Release.objects.made().filter(name=name.strip())
    if version is not None:
        made = made.filter(version=version)
    return made.order_by("-version").first()


def release_named(text: str) -> Release:
    """The made release that a person names: "Demo" for the latest version of that benchmark,
    "Demo v1" for one version, or the number in its page's address. An exact name goes first.

    UnknownRelease: there is none.
    """
    name = text.strip()
    release = release_find(name=name)
    if release is None and (versioned := VERSIONED.fullmatch(name)):
        release = release_find(name=versioned[1], version=int(versioned[2]))
    if release is None and (number := id_of(name)) is not None:
        release = Release.objects.made().filter(pk=number).first()
    if release is None:
        made = Release.objects.made().order_by("name", "version").only("name", "version")
        known = ", ".join(map(str, made))
        raise UnknownRelease(
            f'There is no release "{name}". '
            + (f"Releases are: {known}." if known else "None is made yet.")
        )
    return release


def get_release(text: str) -> Release:
    """The made release that a parameter of an address names, see `release_named`. Http404: there is
    none."""
    try:
        return release_named(text)
    except UnknownRelease as error:
        raise Http404(str(error)) from error


def release_steps(release: Release) -> list[dict[str, Any]]:
    """The steps of making a release, in order: title, state, done and total; none before it
    begins."""
    steps: list[dict[str, Any]] = release.job.result.get("steps", []) if release.job else []
    return steps


def release_error(release: Release) -> str:
    """Why making a release failed; empty where it didn't."""
    if release.state not in (Job.State.FAILED, Job.State.CANCELED):
        return ""
    if release.job is None or release.job.state == Job.State.DONE:
        return "The command that made it was cut short."
    return release.job.error or "It was canceled."


def files_for(user: Any, release: Release) -> list[dict[str, Any]]:
    """The entries of the files that the user may have."""
    return [
        entry for entry in release.file_list if file_visible_to(user, release, access_of(entry))
    ]


def difference_for(user: Any, release: Release) -> dict[str, Any]:
    """What changed since the version before, as far as the user may know it."""
    difference: dict[str, Any] = release.difference
    if labels_visible_to(user, release, "test"):
        return difference
    return without_test_labels(difference)


def snapshot_for(user: Any, release: Release) -> Snapshot | None:
    """The snapshot of a made release, without the labels that are hidden from the user; None where
    its files are lost, or the user may see none."""
    snapshot = Snapshot(release.snapshot_directory)
    if not snapshot.directory.is_dir():
        return None
    if labels_visible_to(user, release, "test"):
        return snapshot
    return snapshot.open if snapshot.open is not snapshot else None


def releases_of_image(image: Image) -> list[Release]:
    """The made releases that have an image in a pair or a fixed list, the newest first."""
    return list(_releases_with([image.pk]))


@dataclass(frozen=True, slots=True)
class ReleaseOfDataset:
    """A release with images of a data set, and how many of them an earlier version may have read
    wrongly."""

    release: Release
    images: int
    license_read: int
    exact_locations: int


def releases_of_dataset(dataset: str) -> list[ReleaseOfDataset]:
    """The made releases that have images of a data set, the newest first. Reads the ids of each
    release's images, and looks those of the data set up.
    """
    found = []
    for release in Release.objects.made().defer(*LONG_FIELDS):
        snapshot = Snapshot(release.snapshot_directory)
        if not snapshot.directory.is_dir():
            continue
        filters = [("dataset", "=", dataset)]
        table = pq.read_table(snapshot.path("images"), columns=["image_id"], filters=filters)
        if ids := table["image_id"].to_pylist():
            counts = findings_among(ids)
            found.append(
                ReleaseOfDataset(
                    release, len(ids), counts[Finding.LICENSE], counts[Finding.LOCATION]
                )
            )
    return found


def releases_name(image_ids: Sequence[int]) -> bool:
    """Whether a made release has any of these images."""
    return any(_releases_with(image_ids))


def _releases_with(image_ids: Sequence[int]) -> Iterator[Release]:
    for release in Release.objects.made().defer(*LONG_FIELDS):
        snapshot = Snapshot(release.snapshot_directory)
        if snapshot.directory.is_dir() and snapshot.contained(image_ids):
            yield release


def refused_images_for(user: Any, release: Release) -> dict[str, Any] | None:
    """The entry of the list of images that the export left out; None where there is none, or the
    user may not have it."""
    entries = files_for(user, release)
    return next((entry for entry in entries if entry["name"] == REFUSED_FILE), None)


def release_certificate_for(user: Any, release: Release) -> dict[str, Any] | None:
    """The release's own certificate, that of the validation split where the user may not see the
    test labels; None where there is none. It has the members of `ReleaseCertificate`, the recall
    and the confidence in percent, rounded down, `complete`, and `waiting`, see `waiting_images`.
    """
    whole = labels_visible_to(user, release, "test")
    certificate = release_certificate_read(release, whole=whole)
    if certificate is None or not file_visible_to(user, release, Access.OPEN):
        return None
    percents = {
        f"{name}_percent": f"{floor(1000 * value + 1e-9) / 10:g}"
        for name, value in (
            ("recall", certificate.recall_at_least),
            ("confidence", certificate.confidence),
        )
        if value is not None
    }
    waiting = images_waiting(release, certificate, whole=whole)
    return asdict(certificate) | percents | {"complete": certificate.complete, "waiting": waiting}


def images_waiting(release: Release, certificate: ReleaseCertificate, *, whole: bool) -> int:
    """How many drawn images of a release, or of its validation split, `waiting_images` counts; 0
    where the snapshot is lost."""
    snapshot = Snapshot(release.snapshot_directory)
    if not certificate.not_judged or not snapshot.directory.is_dir():
        return 0
    return waiting_images(snapshot if whole else snapshot.open)


def release_certificate_read(release: Release, *, whole: bool) -> ReleaseCertificate | None:
    """The release's own certificate, or that of its validation split; None where there is none."""
    name = RELEASE_CERTIFICATE_FILE if whole else VAL_RELEASE_CERTIFICATE_FILE
    path = release_file_path(release=release, name=name)
    if path is None:
        return None
    with storage.reading(path) as file:
        return ReleaseCertificate(**json.load(file))


def access_of(entry: dict[str, Any]) -> Access:
    """Who may have a listed file."""
    return Access(entry["access"])


def release_file_path(*, release: Release, name: str) -> Path | None:
    """The path of a file of a release; None if the release isn't made, doesn't list the name (so
    that a name from outside leads nowhere else), or lost the file."""
    if release_file_entry(release=release, name=name) is None:
        return None
    path = release.directory / name
    return path if storage.exists(path) else None


def release_file_entry(*, release: Release, name: str) -> dict[str, Any] | None:
    """The entry of a file in a made release's `file_list`; None for other names."""
    entries: list[dict[str, Any]] = release.file_list if release.files_ready else []
    return next((entry for entry in entries if entry["name"] == name), None)


def archive_for(user: Any, release: Release) -> dict[str, Any] | None:
    """Name, size and SHA-256 of the archive that the user may have, of all files or of the open
    ones; None where there is none.
    """
    if not release.files_ready or not release.archive:
        return None
    if file_visible_to(user, release, Access.LABELS):
        return {key: release.archive[key] for key in ("name", "size", "sha256")}
    archive: dict[str, Any] | None = release.archive.get("open")
    return archive if file_visible_to(user, release, Access.OPEN) else None


def file_groups_for(user: Any, release: Release) -> list[FileGroup]:
    """A release's files by the format that wrote them, in the formats' order, with the number of
    those that the user may not have.
    """
    kinds = [(written.key, written.title, written.about) for written in all_formats()]
    kinds += [
        (
            RELEASE_KEY,
            "About this release",
            "All files with their checksums (manifest and Croissant), and what changed.",
        ),
        (SNAPSHOT_KEY, "Snapshot", "What every other file was written from, in Parquet."),
    ]
    groups = []
    for key, title, about in kinds:
        entries = [entry for entry in release.file_list if entry["format"] == key]
        seen = [entry for entry in entries if file_visible_to(user, release, access_of(entry))]
        if entries:
            groups.append(FileGroup(title, about, seen, len(entries) - len(seen)))
    return groups

"""Releases on the Hugging Face Hub: their open files are published there, and read from there.

The token is the one that huggingface_hub finds: HF_TOKEN, or what `hf auth login` stored.
HF_ENDPOINT is the address of another Hub.
"""

from __future__ import annotations

import glob
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from huggingface_hub import HfApi, constants, snapshot_download
from huggingface_hub.errors import (  # type: ignore[attr-defined]
    HfHubHTTPError,
    HTTPError,
    RevisionNotFoundError,
)
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils.sha import git_hash

from core import storage
from core.errors import Conflict, Refused
from releases.formats.base import Access
from releases.formats.datasheet import DATASHEET_FILE
from releases.formats.huggingface import FOLDER, repository_front_matter
from releases.models import Release
from releases.selectors import access_of, release_file_entry

#: What a benchmark's place begins with where it is on the Hub, as in hf:org/name@revision.
SCHEME: Final = "hf:"
CARD_FILE: Final = "README.md"
MTEB: Final = "mteb"
#: What may be published: all open files, or the folder for MTEB alone.
LAYOUTS: Final = ("release", MTEB)
#: The files of a release that an import doesn't read, and which may hold its images.
_NOT_IMPORTED: Final = (f"{FOLDER}/*", f"{MTEB}/*", "coco/*", "darwin_core/*", "trec/*", "beir/*")
_KIND: Final = "dataset"
_REPOSITORY: Final = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*", re.ASCII)
#: A file that the Hub writes, and keeps.
_HUBS_FILE: Final = ".gitattributes"


class HubRefused(Refused):
    """The Hub doesn't do what it was asked, or can't be reached; the text says why, and what to
    do."""


@dataclass(frozen=True, slots=True)
class Publication:
    """What a repository of the Hub will hold of a release."""

    release: Release
    files: dict[str, dict[str, Any]]
    """Name there -> entry of the release's `file_list`."""
    card: bytes
    """The file CARD_FILE; empty where it is one of the files."""
    withheld: list[str]
    """Names of files that stay here, since they hold labels of the test split."""

    @property
    def sizes(self) -> dict[str, int]:
        """Name there -> bytes, by name."""
        card = {CARD_FILE: len(self.card)} if self.card else {}
        return dict(
            sorted(({name: one["size"] for name, one in self.files.items()} | card).items())
        )


@dataclass(frozen=True, slots=True)
class Published:
    """The result of a publication."""

    address: str
    private: bool
    sent: list[str]
    """Names of the files that the Hub didn't have."""
    removed: list[str]
    """Names of files of an earlier publication that this one hasn't."""


def publication_of(release: Release, layout: str) -> Publication:
    """What would be published of a made release, in one of LAYOUTS. Conflict: it has no files in
    that layout."""
    folder = f"{MTEB}/" if layout == MTEB else ""
    listed = [entry for entry in release.file_list if entry["name"].startswith(folder)]
    files = {
        entry["name"].removeprefix(folder): entry
        for entry in listed
        if access_of(entry) == Access.OPEN
    }
    withheld = [entry["name"] for entry in listed if access_of(entry) != Access.OPEN]
    datasheet = release_file_entry(release=release, name=DATASHEET_FILE)
    if datasheet is None or (layout == MTEB and CARD_FILE not in files):
        raise Conflict(
            f"{release} has no files for {layout}: make a version with --include-images."
        )
    card = b""
    if layout != MTEB:
        images = release.header.get("include_images", False)
        matter = repository_front_matter(str(release), files, images=images)
        with storage.reading(release.directory / DATASHEET_FILE) as text:
            card = "\n".join([*matter, ""]).encode() + text.read()
    return Publication(release, files | {DATASHEET_FILE: datasheet}, card, withheld)


def release_publish(*, publication: Publication, repository: str, public: bool) -> Published:
    """Make a data set of the Hub hold exactly a publication; a new one is made `public` or private,
    and who sees one that is there doesn't change.

    Files that it has already aren't sent again, so that a repeat goes on where the last one was cut
    short. Raises HubRefused, and Conflict where the data set holds something else than a
    publication, or is public and `public` doesn't say so, or a file is lost here.
    """
    api = HfApi()
    with tempfile.TemporaryDirectory() as folder:
        sources, new = _sources(publication, Path(folder)), Path(folder, "new")
        new.mkdir()
        with hub_errors(repository):
            url = api.create_repo(repository, repo_type=_KIND, private=not public, exist_ok=True)
            private = bool(api.repo_info(repository, repo_type=_KIND).private)
            there = {
                file.path: file
                for file in api.list_repo_tree(repository, repo_type=_KIND, recursive=True)
                if isinstance(file, RepoFile) and file.path != _HUBS_FILE
            }
        if not (private or public):
            raise Conflict(f"{repository} is public: --public publishes there for everybody.")
        removed = sorted(there.keys() - sources.keys())
        if removed and DATASHEET_FILE not in there:
            raise Conflict(f"{repository} holds {removed[0]}, and no release: choose another name.")
        sent = [
            name
            for name, path in sources.items()
            if not _is_same(there.get(name), path, publication.files.get(name, {}).get("sha256"))
        ]
        for name in sent:
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            (new / name).symlink_to(sources[name])
        if sent or removed:
            with hub_errors(repository):
                api.upload_folder(
                    repo_id=repository,
                    repo_type=_KIND,
                    folder_path=new,
                    delete_patterns=[glob.escape(name) for name in removed] or None,
                    commit_message=f"Publish {publication.release}",
                )
    return Published(str(url), private, sent, removed)


def _sources(publication: Publication, folder: Path) -> dict[str, Path]:
    """Each file's name there -> where it lies here; the card is written to a folder."""
    sources = {}
    for name, entry in publication.files.items():
        path = publication.release.directory / entry["name"]
        sources[name] = storage.local_file(path, entry["sha256"]).resolve()
        if not sources[name].is_file():
            raise Conflict(f"{publication.release} has lost its file {entry['name']}.")
    if publication.card:
        sources[CARD_FILE] = folder / CARD_FILE
        sources[CARD_FILE].write_bytes(publication.card)
    return sources


def _is_same(there: RepoFile | None, path: Path, sha256: str | None) -> bool:
    """Whether the Hub has a file's bytes. It knows large files by their SHA-256, which the release
    knows too, and small ones as Git does."""
    if there is None or there.size != path.stat().st_size:
        return False
    if there.lfs is not None:
        return bool(there.lfs.sha256 == sha256)
    return bool(there.blob_id == git_hash(path.read_bytes()))


@contextmanager
def benchmark_fetched(place: str) -> Iterator[Path]:
    """The files of a benchmark on the Hub, "org/name" or "org/name@revision", in a folder of that
    name, which is removed on leaving. Raises HubRefused."""
    repository, _, revision = place.partition("@")
    validate_repository(repository)
    Path(settings.VAR_DIR).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=settings.VAR_DIR, prefix=".hub-") as folder:
        directory = Path(folder) / repository.rpartition("/")[2]
        with hub_errors(repository, revision):
            snapshot_download(
                repository,
                repo_type=_KIND,
                revision=revision or None,
                # Not the cache, which holds links.
                local_dir=directory,
                ignore_patterns=list(_NOT_IMPORTED),
            )
        yield directory


def validate_repository(repository: str) -> None:
    """HubRefused: that is no name of a repository."""
    if not _REPOSITORY.fullmatch(repository):
        raise HubRefused(f"“{repository}” is no name of a data set on the Hub, as “org/name” is.")


@contextmanager
def hub_errors(repository: str, revision: str = "") -> Iterator[None]:
    """HubRefused: the Hub can't be reached, doesn't know the person or the repository, or doesn't
    let them do that."""
    try:
        yield
    # Uploads wrap what they met in a RuntimeError.
    except (HTTPError, OSError, RuntimeError, ValueError) as error:
        raise HubRefused(_sentence(error, repository, revision)) from error


def _sentence(error: BaseException, repository: str, revision: str) -> str:
    causes = [error]
    while (cause := causes[-1].__cause__) is not None:
        causes.append(cause)
    answer = next((one for one in causes if isinstance(one, HfHubHTTPError)), None)
    where, why = constants.ENDPOINT, _line(answer or causes[-1])
    if answer is None:
        return f"{where} can't be reached, or broke off: {why}. Run the command again."
    status = answer.response.status_code
    if isinstance(answer, RevisionNotFoundError):
        return f"{repository} on {where} has no revision {revision!r}."
    if status == 401:
        return (
            f"{where} doesn't know you, or has no {repository}: set HF_TOKEN, or log in by "
            "“hf auth login”."
        )
    if status == 403:
        return f"Your token isn't allowed to do that with {repository} on {where}."
    if status == 404:
        return f"{where} has no data set {repository}, or your token may not see it."
    return f"{where} answered with status {status}: {why}."


def _line(error: BaseException) -> str:
    text = getattr(error, "server_message", None) or str(error) or type(error).__name__
    return str(text).strip().splitlines()[0].rstrip(".")

"""The state that several machines may share: files that are named by their paths below VAR_DIR.

They are those files; or, with STORAGE_URL, objects of an S3 bucket. Then VAR_DIR/fetched holds
copies of those that must be files on this machine: they can be deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from django.conf import settings
from django.core.files.base import File
from django.core.files.storage import FileSystemStorage, default_storage

from core.files import atomic_directory, whole_file

if TYPE_CHECKING:
    from core.bucket import Bucket

FETCHED: Final = "fetched"
BUFFER: Final = 1 << 20
_LATEST: Final = "latest"

logger = logging.getLogger(__name__)


class Disk(FileSystemStorage):
    """The files below a folder, or below VAR_DIR."""

    def __init__(self, folder: Path | None = None) -> None:
        super().__init__()
        self._folder = folder

    @property
    def base_location(self) -> Any:
        """The folder."""
        return self._folder or settings.VAR_DIR

    @property
    def location(self) -> Any:
        """The folder's absolute path."""
        return os.path.abspath(self.base_location)

    @contextmanager
    def reading(self, name: str) -> Iterator[File[bytes]]:
        """Open a file, with its `size`, to be read once. Raises FileNotFoundError, OSError."""
        with open(self.path(name), "rb") as opened:
            file = File(opened)
            file.size = os.fstat(opened.fileno()).st_size
            yield file

    def writing(self, name: str, *, durable: bool = True) -> AbstractContextManager[BinaryIO]:
        """Write a file that appears whole or not at all; see `whole_file`."""
        return whole_file(Path(self.path(name)), durable=durable)

    def names(self, folder: str) -> Iterator[str]:
        """The names of all files below a folder."""
        for path in Path(self.path(folder)).rglob("*"):
            if path.is_file():
                yield path.relative_to(self.location).as_posix()


def storage_at(place: Path | str) -> Disk | Bucket:
    """The storage of a folder, or of s3://bucket/prefix."""
    if str(place).startswith("s3://"):
        # Loading what reads buckets is slow, and most installations have none.
        from core.bucket import Bucket

        return Bucket(str(place))
    return Disk(Path(place))


def storage_of(location: Path | str) -> tuple[Disk | Bucket, str]:
    """The storage of a file's folder, by the file's path or s3://bucket/prefix/name, and its name
    there.
    """
    text = str(location)
    folder, _, name = (text if text.startswith("s3://") else os.path.abspath(text)).rpartition("/")
    return storage_at(folder or "/"), name


def is_shared() -> bool:
    """Whether the files are in a bucket."""
    return bool(settings.STORAGE_URL)


def name_of(path: Path) -> str:
    """The name of a path below VAR_DIR."""
    return path.relative_to(settings.VAR_DIR).as_posix()


def shown(path: Path) -> str:
    """Where a file is, for people."""
    return f"{settings.STORAGE_URL}/{name_of(path)}" if is_shared() else str(path)


def _storage() -> Disk | Bucket:
    return cast("Disk | Bucket", default_storage)


def exists(path: Path) -> bool:
    """Whether there is such a file."""
    return _storage().exists(name_of(path))


def reading(path: Path) -> AbstractContextManager[File[bytes]]:
    """Open a file, with its `size`, to be read once from its beginning. Raises FileNotFoundError,
    OSError, StorageAway.
    """
    return _storage().reading(name_of(path))


def writing(path: Path, *, durable: bool = True) -> AbstractContextManager[BinaryIO]:
    """Write a file that appears whole or not at all, and replaces one that is there; what an error
    ends is not written. Raises OSError, StorageAway.
    """
    return _storage().writing(name_of(path), durable=durable)


def modified_at(path: Path) -> datetime:
    """When a file was written. Raises FileNotFoundError, StorageAway."""
    return _storage().get_modified_time(name_of(path))


def remove(path: Path) -> None:
    """Delete a file, and what was fetched of it here; one that isn't there is no error."""
    _storage().delete(name_of(path))
    if is_shared():
        shutil.rmtree(_copies(path), ignore_errors=True)


def names_below(path: Path) -> Iterator[Path]:
    """The paths of all files below a folder."""
    for name in _storage().names(name_of(path)):
        yield Path(settings.VAR_DIR) / name


@contextmanager
def writing_directory(path: Path) -> Iterator[Path]:
    """Give an empty directory to be filled, whose files replace those of `path` on leaving; see
    `atomic_directory`. In a bucket they appear one after the other, and nothing stays here.
    """
    with atomic_directory(path, replace=True, replaceable=None) as partial:
        yield partial
        if is_shared():
            _publish(partial, path)
    if is_shared():
        shutil.rmtree(path)


def _publish(folder: Path, path: Path) -> None:
    files = {path / one.relative_to(folder): one for one in folder.rglob("*") if one.is_file()}
    for target, file in sorted(files.items()):
        publish(file, target)
    for left in names_below(path):
        if left not in files:
            remove(left)


def publish(file: Path, path: Path) -> None:
    """Store a file of this machine in the bucket as `path`. Raises StorageAway, OSError."""
    with file.open("rb") as source:
        cast("Bucket", default_storage).send(source, name_of(path))


def local_file(path: Path, sha256: str = "") -> Path:
    """Where a file can be opened on this machine; nothing is there where it is missing.

    From a bucket it is fetched whole: once for each `sha256`, and each time where that is unknown.
    One that differs from its `sha256` counts as missing. Raises StorageAway, OSError.
    """
    if not is_shared():
        return path
    version = sha256 or _LATEST
    copy = _copies(path) / version / path.name
    if sha256 and copy.is_file():
        return copy
    try:
        with reading(path) as source, whole_file(copy, durable=False) as target:
            found = copied(source, target)
            if sha256 and found != sha256:
                logger.error("%s in the bucket has another SHA-256 than the database", path)
                raise FileNotFoundError(path)
    except FileNotFoundError:
        version = ""
    _keep(path, version)
    return copy


def local_directory(path: Path, sha256s: Mapping[str, str]) -> Path:
    """Where files of a directory can be opened on this machine: those whose names below it are
    given. Nothing is there where one is missing.

    From a bucket they are fetched together, once for the same `sha256s`, by which a later version
    of the directory is known; they aren't compared with them. Raises StorageAway, OSError.
    """
    if not is_shared():
        return path
    version = hashlib.sha256(json.dumps(sorted(sha256s.items())).encode()).hexdigest()
    copy = _copies(path) / version
    if sha256s and not copy.is_dir():
        with suppress(FileNotFoundError):
            with atomic_directory(copy, replace=True, replaceable=None) as partial:
                for name in sha256s:
                    (partial / name).parent.mkdir(parents=True, exist_ok=True)
                    with reading(path / name) as source, (partial / name).open("wb") as target:
                        copied(source, target)
            _keep(path, version)
    return copy


def copied(source: Any, target: BinaryIO) -> str:
    """Copy a file to its end; the SHA-256 of what was copied."""
    digest = hashlib.sha256()
    while data := source.read(BUFFER):
        digest.update(data)
        target.write(data)
    return digest.hexdigest()


def _copies(path: Path) -> Path:
    """The folder of what was fetched of a file or directory, by version."""
    return Path(settings.VAR_DIR) / FETCHED / name_of(path)


def _keep(path: Path, version: str) -> None:
    """Delete other versions that were fetched; not those that are being fetched now."""
    if (folder := _copies(path)).is_dir():
        for other in folder.iterdir():
            if other.name != version and not other.name.startswith("."):
                shutil.rmtree(other, ignore_errors=True)


def signed_address(path: Path, *, content_type: str) -> str:
    """An address at which a browser downloads an object of the bucket for some minutes."""
    parameters = {
        "ResponseContentDisposition": f'attachment; filename="{path.name}"',
        "ResponseContentType": content_type,
        "ResponseCacheControl": "private, no-store",
    }
    address: str = cast("Bucket", default_storage).url(name_of(path), parameters=parameters)
    return address

"""Reading pictures where they are: below a folder, or in an S3 bucket below a prefix.

Nothing here knows the database. What is read is only ever below the place: a name cannot climb out
of it, nor can a link that lies in it.
"""

from __future__ import annotations

import errno
import os
import re
import threading
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Protocol

from django.conf import settings

from core.files import NotRegular, is_below, open_regular
from retrieval.images.decoding import MAX_BYTES

REQUESTS: Final = 32
"""How many threads may ask a bucket at once, each over a connection that is kept."""
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_LONGEST: Final = 1000
_NOWHERE: Final = {
    errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.ELOOP,
    errno.ENAMETOOLONG, errno.ENXIO,
}  # fmt: skip


class RootRefused(ValueError):
    """What cannot be a place of pictures; the text says why, for people."""


class ImageGone(Exception):
    """A picture whose bytes are not to be had, or are no picture; the text says why, for people,
    without its name or place, which may tell the species.
    """


class RootUnavailable(ImageGone):
    """The place itself doesn't answer: its pictures may be there again later."""


class ImageChanged(ImageGone):
    """The file is another one than it was when its SHA-256 was taken."""


class RootFiles(Protocol):
    """A place of pictures; safe to use from several threads."""

    location: str
    """As it is kept: one text for one place."""
    near: bool
    """Whether reading a file costs no more than reading a copy of it."""

    def look(self) -> None:
        """Raise RootRefused, with the reason, unless the place is there."""

    def read(self, name: str) -> bytes:
        """Return the bytes of the file with that path below the place.

        Raises ImageGone where there is no such file, or one of more than MAX_BYTES bytes, and
        RootUnavailable where the place doesn't answer.
        """


def root_files(location: str) -> RootFiles:
    """Return the place that a location names: an absolute folder, or s3://bucket/prefix.

    One object a place and process. Raises RootRefused for what is neither.
    """
    key = (location, settings.S3_ENDPOINT_URL)
    with _lock:
        if key not in _known:
            _known[key] = _made(location)
        return _known[key]


class _Folder:
    near = True

    def __init__(self, location: str) -> None:
        if "\0" in location:
            raise RootRefused("A folder's name holds no NUL.")
        self.location = os.path.normpath(location)

    def look(self) -> None:
        if not os.path.isdir(self.location):
            raise RootRefused(f"There is no folder {self.location}.")
        if not os.access(self.location, os.R_OK | os.X_OK):
            raise RootRefused(f"The folder {self.location} cannot be read.")

    def read(self, name: str) -> bytes:
        if not is_below(name):
            raise ImageGone("The image's path leads out of the folder of its data set.")
        try:
            root = Path(self.location).resolve(strict=True)
        except OSError as error:
            raise RootUnavailable("The folder of the image's data set isn't there now.") from error
        try:
            path = (root / name).resolve(strict=True)
            if not path.is_relative_to(root):
                raise ImageGone("The image's path leads out of the folder of its data set.")
            return _bytes_of(path)
        except RuntimeError as error:
            raise ImageGone("The image's path is a link that leads to itself.") from error
        except OSError as error:
            if error.errno not in _NOWHERE:
                raise RootUnavailable(
                    f"The image's file cannot be read now: {error.strerror}."
                ) from error
            if error.errno in (errno.EACCES, errno.EPERM):
                raise ImageGone("The image's file may not be read.") from error
            raise ImageGone("The image's file is gone from its folder.") from error


class _Bucket:
    near = False

    def __init__(self, location: str) -> None:
        bucket, _, prefix = location.removeprefix("s3://").partition("/")
        self._prefix = prefix.strip("/")
        if not _BUCKET.fullmatch(bucket):
            raise RootRefused(f"“{bucket}” is no name of a bucket. Write s3://bucket/prefix.")
        if self._prefix and not is_below(self._prefix):
            raise RootRefused("The prefix of a bucket's keys holds no “..”.")
        self._bucket = bucket
        self.location = f"s3://{bucket}/{self._prefix}" if self._prefix else f"s3://{bucket}"

    @cached_property
    def _client(self) -> Any:
        """The client of boto3, which threads may share. Without credentials requests go unsigned,
        as to a bucket that is open to all.
        """
        # Loading them takes longer than starting a process without a bucket may.
        import boto3
        from botocore.config import Config
        from storages.backends.s3 import S3Storage

        storage = S3Storage(
            bucket_name=self._bucket,
            endpoint_url=settings.S3_ENDPOINT_URL or None,
            client_config=Config(
                connect_timeout=5,
                read_timeout=10,
                max_pool_connections=REQUESTS,
                retries={"mode": "standard", "total_max_attempts": 2},
            ),
        )
        session = boto3.Session(profile_name=storage.session_profile)
        signed = storage.access_key or session.get_credentials()
        connection = storage.connection if signed else storage.unsigned_connection
        return connection.meta.client

    def look(self) -> None:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            self._client.head_bucket(Bucket=self._bucket)
        except ClientError as error:
            # Who may read a bucket's objects may not always look at the bucket.
            if _status(error) != 403:
                raise RootRefused(f"The bucket {self._bucket} isn't there: {error}") from error
        except BotoCoreError as error:
            raise RootRefused(f"The bucket {self._bucket} doesn't answer: {error}") from error

    def read(self, name: str) -> bytes:
        from botocore.exceptions import BotoCoreError, ClientError

        if not is_below(name):
            raise ImageGone("The image's path leads out of the place of its data set.")
        key = f"{self._prefix}/{name}" if self._prefix else name
        try:
            answer = self._client.get_object(Bucket=self._bucket, Key=key)
            _check_size(answer["ContentLength"])
            data: bytes = answer["Body"].read()
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") == "NoSuchKey":
                raise ImageGone("The image's file is gone from its bucket.") from error
            raise RootUnavailable("The bucket of the image doesn't give it out now.") from error
        except BotoCoreError as error:
            raise RootUnavailable("The bucket of the image doesn't answer now.") from error
        return data


def _made(location: str) -> RootFiles:
    if len(location) > _LONGEST:
        raise RootRefused(f"A location has at most {_LONGEST} letters.")
    if location.startswith("s3://"):
        return _Bucket(location)
    if not location.startswith("/"):
        raise RootRefused(f"“{location}” is neither an absolute folder nor s3://bucket/prefix.")
    return _Folder(location)


def _bytes_of(path: Path) -> bytes:
    """The bytes of a regular file; the path is resolved, so its last part is no link."""
    try:
        with open_regular(path, flags=os.O_NOFOLLOW) as file:
            _check_size(os.fstat(file.fileno()).st_size)
            return file.read()
    except NotRegular as error:
        raise ImageGone("The image's path leads to no file.") from error


def _check_size(size: int) -> None:
    if size > MAX_BYTES:
        raise ImageGone(f"The image's file has {size} bytes; at most {MAX_BYTES} are allowed.")


def _status(error: Any) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


_lock = threading.Lock()
_known: dict[tuple[str, str], RootFiles] = {}
# Connections are not shared with a parent process.
os.register_at_fork(after_in_child=_known.clear)

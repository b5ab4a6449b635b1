"""Roots: the folders, and the S3 buckets with a prefix, of images that are not copied.

Only files below a root are read: neither names nor symbolic links can lead out of it.
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

from core.errors import Refused
from core.files import NotRegular, is_below, open_regular
from core.outages import StorageAway
from core.outside import BUCKET
from retrieval.corpus.models import ImageRoot
from retrieval.images.decoding import MAX_BYTES

REQUESTS: Final = 32
"""The number of simultaneous requests to a bucket, each over a persistent connection."""
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_LONGEST: Final = 1000
_NO_FILE: Final = {
    errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.ELOOP,
    errno.ENAMETOOLONG, errno.ENXIO,
}  # fmt: skip


class RootRefused(Refused):
    """The location can't be a root; the message is for people."""


class ImageGone(Exception):
    """The image's file is missing or is no image. The message is for people and does not contain
    the file's name or place, which may reveal the species.
    """


class RootUnavailable(ImageGone):
    """The root itself doesn't answer; its images may be available later."""


class ImageChanged(ImageGone):
    """The file differs from the one whose SHA-256 is known."""


class RootFiles(Protocol):
    """Access to the files of a root; safe to use from several threads."""

    location: str
    """The normalized location: equal for equal roots."""
    near: bool
    """Whether reading a file is as fast as reading a local copy."""

    def check(self) -> None:
        """Raise RootRefused, with the reason, if the root isn't there."""

    def read(self, name: str) -> bytes:
        """Return the bytes of the file with that path below the root.

        Raises ImageGone if there is no such file or it has more than MAX_BYTES bytes, and
        RootUnavailable if the root doesn't answer.
        """


def root_files(location: str) -> RootFiles:
    """Return the files of a location: an absolute folder, or s3://bucket/prefix.

    There is one object per root and process. Raises RootRefused for any other location.
    """
    key = (location, settings.S3_ENDPOINT_URL)
    with _lock:
        if key not in _by_location:
            _by_location[key] = _make_files(location)
        return _by_location[key]


def image_root_get_or_create(*, location: str) -> ImageRoot:
    """Return the root of a location: an absolute folder, or s3://bucket/prefix.

    Raises RootRefused, with the reason for people, for anything else, and for a new root that isn't
    there.
    """
    files = root_files(location)
    root = ImageRoot.objects.filter(location=files.location).first()
    if root is not None:
        return root
    files.check()
    return ImageRoot.objects.get_or_create(location=files.location)[0]


class _Folder:
    near = True

    def __init__(self, location: str) -> None:
        if "\0" in location:
            raise RootRefused("A folder's name can't contain NUL.")
        self.location = os.path.normpath(location)

    def check(self) -> None:
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
            # Not strictly: what is outside is refused alike, whether it is there or not.
            path = (root / name).resolve()
            if not path.is_relative_to(root):
                raise ImageGone("The image's path leads out of the folder of its data set.")
            return _bytes_of(path)
        except RuntimeError as error:
            raise ImageGone("The image's path is a link that leads to itself.") from error
        except OSError as error:
            if error.errno not in _NO_FILE:
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
            raise RootRefused(f"“{bucket}” is not a bucket's name. Write s3://bucket/prefix.")
        if self._prefix and not is_below(self._prefix):
            raise RootRefused("The prefix of a bucket's keys can't contain “..”.")
        self._bucket = bucket
        self.location = f"s3://{bucket}/{self._prefix}" if self._prefix else f"s3://{bucket}"

    @cached_property
    def _client(self) -> Any:
        """The client of boto3, which threads share. Without credentials requests are unsigned, for
        public buckets.
        """
        # Imported here since loading these is slow and most processes read no bucket.
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

    def check(self) -> None:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            self._client.head_bucket(Bucket=self._bucket)
        except ClientError as error:
            # Credentials that may read a bucket's objects may lack the right to HEAD the bucket.
            if _status(error) != 403:
                raise RootRefused(f"The bucket {self._bucket} isn't there: {error}") from error
        except BotoCoreError as error:
            raise RootRefused(f"The bucket {self._bucket} doesn't answer: {error}") from error

    def read(self, name: str) -> bytes:
        from botocore.exceptions import BotoCoreError, ClientError

        if not is_below(name):
            raise ImageGone("The image's path leads out of the bucket's prefix.")
        key = f"{self._prefix}/{name}" if self._prefix else name
        try:
            return BUCKET.ask(lambda: self._read(key))
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") == "NoSuchKey":
                raise ImageGone("The image's file is gone from its bucket.") from error
            raise RootUnavailable("The bucket refuses to send the image now.") from error
        except (BotoCoreError, StorageAway) as error:
            raise RootUnavailable("The bucket of the image doesn't answer now.") from error

    def _read(self, key: str) -> bytes:
        answer = self._client.get_object(Bucket=self._bucket, Key=key)
        _check_size(answer["ContentLength"])
        data: bytes = answer["Body"].read()
        return data


def _make_files(location: str) -> RootFiles:
    if len(location) > _LONGEST:
        raise RootRefused(f"A location has at most {_LONGEST} characters.")
    if location.startswith("s3://"):
        return _Bucket(location)
    if not location.startswith("/"):
        raise RootRefused(f"“{location}” is neither an absolute folder nor s3://bucket/prefix.")
    return _Folder(location)


def _bytes_of(path: Path) -> bytes:
    """Return the bytes of a regular file; the path is resolved, so its last part isn't a link."""
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
_by_location: dict[tuple[str, str], RootFiles] = {}
# Connections are not shared with a parent process.
os.register_at_fork(after_in_child=_by_location.clear)

"""S3 buckets as storage of files."""

from __future__ import annotations

import io
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from copy import copy
from datetime import datetime
from functools import cached_property, partial
from typing import Any, BinaryIO, Final, TypeVar, cast
from urllib.parse import urlsplit

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.conf import settings
from django.core.files.base import File
from storages.backends.s3 import S3Storage

from core.log_lines import request_id
from core.outages import StorageAway
from core.outside import BUCKET

ADDRESS_SECONDS: Final = 300
"""How long a signed address works."""
LIMITS_OF_REQUESTS: Final = Config(connect_timeout=2, read_timeout=3)
_CONNECTIONS: Final = 32
_IN_MEMORY: Final = 8 << 20
_PIECE: Final = 1 << 20

_T = TypeVar("_T")


class Bucket(S3Storage):
    """The objects of s3://bucket/prefix, or of STORAGE_URL. Threads share its connections.

    A request waits for it as `core.outside` says, and everything else as long as the client does.
    """

    def __init__(self, url: str = "") -> None:
        place = urlsplit(url or settings.STORAGE_URL)
        super().__init__(
            bucket_name=place.netloc,
            location=place.path.strip("/"),
            endpoint_url=settings.S3_ENDPOINT_URL or None,
            querystring_expire=ADDRESS_SECONDS,
            client_config=Config(
                signature_version="s3v4",
                connect_timeout=5,
                read_timeout=20,
                max_pool_connections=_CONNECTIONS,
                retries={"mode": "standard", "total_max_attempts": 2},
            ),
        )

    @property
    def client(self) -> Any:
        """The client of boto3, with shorter limits where a request waits."""
        return self._patient if request_id.get() is None else self._for_requests

    @cached_property
    def _patient(self) -> Any:
        return self.connection.meta.client

    @cached_property
    def _for_requests(self) -> Any:
        other = copy(self)
        other.client_config = self.client_config.merge(LIMITS_OF_REQUESTS)
        return other.connection.meta.client

    def key(self, name: str) -> str:
        """The key of a name."""
        return f"{self.location}/{name}".strip("/")

    def check(self) -> None:
        """Raise StorageAway where the bucket can't be read."""
        _answer(
            lambda: self.client.list_objects_v2(
                Bucket=self.bucket_name, Prefix=self.key(""), MaxKeys=1
            )
        )

    @contextmanager
    def reading(self, name: str) -> Iterator[File[bytes]]:
        """As `Disk.reading`. Raises StorageAway besides."""
        found = _answer(lambda: self._object(name))
        with closing(found["Body"]) as body:
            file = File(cast(BinaryIO, _Body(body)), name)
            file.size = found["ContentLength"]
            yield file

    def _object(self, name: str) -> Any:
        try:
            return self.client.get_object(Bucket=self.bucket_name, Key=self.key(name))
        except self.client.exceptions.NoSuchKey:
            raise FileNotFoundError(f"There is no {name} in the bucket.") from None

    @contextmanager
    def writing(self, name: str, *, durable: bool = True) -> Iterator[BinaryIO]:
        """As `Disk.writing`; a large file lies in VAR_DIR until it is sent. Raises StorageAway
        besides.
        """
        with tempfile.SpooledTemporaryFile(_IN_MEMORY, dir=str(settings.VAR_DIR)) as draft:
            yield cast(BinaryIO, draft)
            draft.seek(0)
            self.send(draft, name)

    def send(self, file: Any, name: str) -> None:
        """Store an open file, which it closes. Raises StorageAway."""
        heard = time.monotonic()

        def hear(_bytes: int) -> None:
            nonlocal heard
            heard = time.monotonic()

        _answer(
            lambda: self.client.upload_fileobj(
                file, self.bucket_name, self.key(name), Callback=hear
            ),
            heard=lambda: heard,
        )

    def exists(self, name: str) -> bool:
        """Whether there is such an object."""
        return _answer(lambda: self._head(name)) is not None

    def get_modified_time(self, name: str) -> datetime:
        """When an object was written. Raises FileNotFoundError, StorageAway."""
        if (found := _answer(lambda: self._head(name))) is None:
            raise FileNotFoundError(f"There is no {name} in the bucket.")
        return cast(datetime, found["LastModified"])

    def _head(self, name: str) -> Any:
        """What the server says of an object; None where there is none."""
        try:
            return self.client.head_object(Bucket=self.bucket_name, Key=self.key(name))
        except ClientError as error:
            if error.response["Error"]["Code"] == "404":
                return None
            raise

    def delete(self, name: str) -> None:
        """Delete an object; one that isn't there is no error."""
        _answer(lambda: self.client.delete_object(Bucket=self.bucket_name, Key=self.key(name)))

    def url(self, name: str | None, *args: Any, **kwargs: Any) -> str:
        """A signed address; the credentials that it takes may have to be fetched."""
        return str(_answer(partial(super().url, name, *args, **kwargs)))

    def names(self, folder: str) -> Iterator[str]:
        """As `Disk.names`."""
        pages = self.client.get_paginator("list_objects_v2")
        above = f"{self.location}/" if self.location else ""
        below = f"{above}{folder}/" if folder else above
        found = iter(pages.paginate(Bucket=self.bucket_name, Prefix=below))
        while page := _answer(partial(next, found, None)):
            for one in page.get("Contents", ()):
                yield one["Key"].removeprefix(above)


class _Body(io.RawIOBase):
    """What an object holds, read as it comes. Its methods raise StorageAway."""

    def __init__(self, body: Any) -> None:
        self._body = body

    def readable(self) -> bool:
        """It can be read."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fill a buffer as far as the object goes; the number of bytes."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def read(self, size: int | None = -1, /) -> bytes:
        """So many bytes, or all that are left."""
        data, most = bytearray(), sys.maxsize if size is None or size < 0 else size
        while len(data) < most:
            piece = _answer(partial(self._body.read, min(_PIECE, most - len(data))))
            if not piece:
                break
            data += piece
        return bytes(data)


def _answer(call: Callable[[], _T], *, heard: Callable[[], float] = lambda: 0.0) -> _T:
    """What the server answers. Raises StorageAway where it can't be reached, fails, or gives no
    access.
    """
    try:
        return BUCKET.ask(call, heard=heard)
    except (BotoCoreError, ClientError) as error:
        raise StorageAway(str(error)) from error

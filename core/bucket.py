"""S3 buckets as storage of files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from typing import Any, BinaryIO, Final, cast
from urllib.parse import urlsplit

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.conf import settings
from django.core.files.base import File
from storages.backends.s3 import S3Storage

from core.outages import StorageAway

ADDRESS_SECONDS: Final = 300
"""How long a signed address works."""
_CONNECTIONS: Final = 32
_IN_MEMORY: Final = 8 << 20


class Bucket(S3Storage):
    """The objects of s3://bucket/prefix, or of STORAGE_URL. Threads share its connections."""

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

    @cached_property
    def client(self) -> Any:
        """The client of boto3."""
        return self.connection.meta.client

    def key(self, name: str) -> str:
        """The key of a name."""
        return f"{self.location}/{name}".strip("/")

    def check(self) -> None:
        """Raise StorageAway where the bucket can't be read."""
        with _answering():
            self.client.list_objects_v2(Bucket=self.bucket_name, Prefix=self.key(""), MaxKeys=1)

    @contextmanager
    def reading(self, name: str) -> Iterator[File[bytes]]:
        """As `Disk.reading`. Raises StorageAway besides."""
        with _answering():
            try:
                found = self.client.get_object(Bucket=self.bucket_name, Key=self.key(name))
            except self.client.exceptions.NoSuchKey:
                raise FileNotFoundError(f"There is no {name} in the bucket.") from None
            with closing(found["Body"]) as body:
                file = File(body, name)
                file.size = found["ContentLength"]
                yield file

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
        with _answering():
            self.client.upload_fileobj(file, self.bucket_name, self.key(name))

    def exists(self, name: str) -> bool:
        """Whether there is such an object."""
        with _answering():
            try:
                self.client.head_object(Bucket=self.bucket_name, Key=self.key(name))
            except ClientError as error:
                if error.response["Error"]["Code"] == "404":
                    return False
                raise
        return True

    def delete(self, name: str) -> None:
        """Delete an object; one that isn't there is no error."""
        with _answering():
            self.client.delete_object(Bucket=self.bucket_name, Key=self.key(name))

    def names(self, folder: str) -> Iterator[str]:
        """As `Disk.names`."""
        pages = self.client.get_paginator("list_objects_v2")
        above = f"{self.location}/" if self.location else ""
        below = f"{above}{folder}/" if folder else above
        with _answering():
            for page in pages.paginate(Bucket=self.bucket_name, Prefix=below):
                for found in page.get("Contents", ()):
                    yield found["Key"].removeprefix(above)


@contextmanager
def _answering() -> Iterator[None]:
    """Raise StorageAway where the server can't be reached, fails, or gives no access."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise StorageAway(str(error)) from error

"""A real S3 server on this machine, to keep images in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from moto.server import ThreadedMotoServer

KEYS = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "tests"}


@contextmanager
def bucket_server() -> Iterator[str]:
    """An S3 server without buckets; its address."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        _, port = server.get_host_and_port()
        yield f"http://127.0.0.1:{port}"
    finally:
        server.stop()


def client(address: str) -> Any:
    """A client that makes buckets and puts images into them."""
    return boto3.client(
        "s3",
        endpoint_url=address,
        region_name="us-east-1",
        aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
    )


def bucket(address: str, name: str, files: dict[str, bytes]) -> Any:
    """Make a bucket with these files; returns a client for more."""
    made = client(address)
    made.create_bucket(Bucket=name)
    for key, data in files.items():
        made.put_object(Bucket=name, Key=key, Body=data)
    return made

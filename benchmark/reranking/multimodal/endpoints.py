"""Addresses of servers with multimodal models."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

MAX_LENGTH: Final = 300


class BadAddress(ValueError):
    """Not the base address of a server; the text says why."""


def base_address(text: str) -> str:
    """The base address as it is kept, without a slash at its end: what stands before
    /chat/completions.

    BadAddress: not http or https, no host, or with a password, a query or a fragment, which would
    be stored and shown.
    """
    address = text.strip().rstrip("/")
    try:
        parts = urlsplit(address)
        host, _port = parts.hostname, parts.port
    except ValueError as error:
        raise BadAddress(f"{address!r} is not an address: {error}.") from None
    if parts.scheme not in ("http", "https") or not host:
        raise BadAddress(f"{address!r} is not an address such as http://127.0.0.1:8001/v1.")
    if parts.username is not None or parts.query or parts.fragment:
        raise BadAddress(
            "The address holds a user name, a query or a fragment; a key goes into the environment "
            "variable MULTIMODAL_API_KEY."
        )
    if len(address) > MAX_LENGTH:
        raise BadAddress(f"The address has more than {MAX_LENGTH} characters.")
    return address

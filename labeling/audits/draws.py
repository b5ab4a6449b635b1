"""Which unjudged images audits draw: by a keyed hash, so that nobody can choose them, and everybody
can check it once the key is published.

The number of an image is the BLAKE2b hash of the text "QUERY,IMAGE" (both ids in decimal digits)
under the key, 8 bytes long, read as a big-endian integer. A query's draw order and a release's
selection have different keys: under the same one, a query's first draws would be those selected.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

KEY_BYTES: Final = 32
"""The length of a key, which `secrets.token_bytes` makes."""


def draw_number(key: bytes, query_id: int, image_id: int) -> int:
    """The number of an image, from 0 to 2^64 − 1. ValueError: a key of another length."""
    if len(key) != KEY_BYTES:
        raise ValueError(f"key must have {KEY_BYTES} bytes: {len(key)}")
    text = f"{query_id},{image_id}".encode()
    return int.from_bytes(hashlib.blake2b(text, key=key, digest_size=8).digest())


def draw_order(key: bytes, query_id: int, image_ids: Iterable[int]) -> list[int]:
    """The images in the order in which a query's audit draws them: by number, then by id."""
    return sorted(image_ids, key=lambda image_id: (draw_number(key, query_id, image_id), image_id))


def selected(key: bytes, query_id: int, image_id: int, fraction: float) -> bool:
    """Whether a release whose audits take `fraction` of the unjudged, from 0 to 1, takes this one.
    What a fraction selects, a larger one selects too.
    """
    return draw_number(key, query_id, image_id) < fraction * 2.0**64

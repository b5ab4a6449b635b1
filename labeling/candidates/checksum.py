"""The fingerprint of a candidate list."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable


def list_checksum(rows: Iterable[tuple[int, float]]) -> str:
    """SHA-256 (hexadecimal) over a ranking of (image id, score), best first.

    Each row goes in as a little-endian 64-bit id and a little-endian float64 score, so two rankings
    agree in this exactly when they agree bit for bit.
    """
    digest = hashlib.sha256()
    for image_id, score in rows:
        digest.update(struct.pack("<qd", image_id, score))
    return digest.hexdigest()

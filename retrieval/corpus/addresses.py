"""Signed addresses of images. One shows its image to whoever has it, for half a day to a day."""

from __future__ import annotations

import time
from typing import Final

from django.core.signing import BadSignature, TimestampSigner, b62_encode

_HALF_DAY: Final = 12 * 60 * 60


class _Signer(TimestampSigner):
    """Signs with the last midnight or noon (UTC), so that a browser keeps what it has fetched."""

    def timestamp(self) -> str:
        """The moment, in seconds since 1970."""
        return b62_encode(int(time.time()) // _HALF_DAY * _HALF_DAY)


def signed(path: str) -> str:
    """Return the path with a signature, which anybody may be shown who may see the image."""
    signature = _signer().sign(path)[len(path) + 1 :]
    return f"{path}?signature={signature}"


def is_signed(path: str, signature: str) -> bool:
    """Whether `signed` has made this signature of the path within a day."""
    try:
        _signer().unsign(f"{path}:{signature}", max_age=2 * _HALF_DAY)
    except BadSignature:
        return False
    return True


def _signer() -> _Signer:
    return _Signer(salt="image")

"""Pictures as they are sent."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from PIL import Image as PillowImage

from retrieval.imaging import jpeg_bytes
from retrieval.storage import display_path

_QUALITY: Final = 92


@dataclass(frozen=True, slots=True)
class Picture:
    """A stored picture, and the longest side in pixels at which it is sent."""

    sha256: str
    """Of its source file."""
    width: int
    height: int
    side: int

    @property
    def fingerprint(self) -> str:
        """By which an answer knows what was sent: the source's SHA-256, or one of that and the
        size if it is sent smaller. Needs no file, so that a kept answer is found without one.
        """
        if not self._smaller:
            return self.sha256
        return hashlib.sha256(f"{self.sha256} {self.side}".encode()).hexdigest()

    def jpeg(self) -> bytes:
        """The picture upright, as a browser shows it, no longer than `side`.

        FileNotFoundError, OSError: its file is gone or can't be read.
        """
        path = display_path(self.sha256)
        if not self._smaller:
            return path.read_bytes()
        with PillowImage.open(path) as shown:
            return jpeg_bytes(shown.convert("RGB"), longest_side=self.side, quality=_QUALITY)

    @property
    def _smaller(self) -> bool:
        return max(self.width, self.height) > self.side

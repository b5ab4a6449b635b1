"""Pictures as they are sent."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from retrieval.images.decoding import DISPLAY_SIDE, ImageRefused, jpeg_bytes, open_picture
from retrieval.images.stored import PictureGone, PictureRef, display_file

_QUALITY: Final = 92


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture, and the longest side in pixels at which it is sent."""

    ref: PictureRef
    width: int
    height: int
    side: int

    @property
    def fingerprint(self) -> str:
        """By which an answer knows what was sent: the source's SHA-256, or one of that and the
        size if it is sent smaller. Needs no file, so that a kept answer is found without one. Empty
        while nobody has read the file.
        """
        if not self.ref.sha256 or not self._smaller:
            return self.ref.sha256
        return hashlib.sha256(f"{self.ref.sha256} {self.side}".encode()).hexdigest()

    def jpeg(self) -> bytes:
        """The picture upright, as a browser shows it, no longer than `side`.

        PictureGone: its file isn't there, or its place doesn't answer.
        """
        with display_file(self.ref) as file:
            if not self._smaller:
                return file.read()
            data = file.read()
        try:
            with open_picture(data, max_pixels=DISPLAY_SIDE**2, at_least=self.side) as shown:
                return jpeg_bytes(shown.pixels, longest_side=self.side, quality=_QUALITY)
        except ImageRefused as error:
            raise PictureGone(str(error)) from error

    @property
    def _smaller(self) -> bool:
        return max(self.width, self.height) > self.side

"""An index of a COCO file's images and their categories, in arrays.

It takes 8 bytes per image and 20 per annotation; if they are not in ascending order of the images'
ids, 8 more per image and, during sorting, 28 per annotation.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

NO_KEY: Final = -1
"""The key of a record without a valid id; integer ids are 0 or more, those of texts -2 or less."""
NOT_ANNOTATED: Final = -1
SEVERAL: Final = -2
"""The category of an image with several annotations; see `annotations_of`."""
NO_CATEGORY: Final = -3
"""The number of an annotation without a category."""

_AT_ONCE: Final = 65_536


class CocoIndex:
    """An index that is filled with images and annotations, closed, and then read.

    Images have keys, 64-bit integers; categories have numbers, 0 or more.
    """

    def __init__(self) -> None:
        self._keys = array("q")
        self._by_image, self._numbers, self._own_ids = array("q"), array("i"), array("q")

    def image_add(self, key: int) -> None:
        """Add the next image of the file, NO_KEY if it has no valid id."""
        self._keys.append(key)

    def annotation_add(self, key: int, number: int, own_id: int) -> None:
        """Add an annotation: the image's key, the category's number or NO_CATEGORY, and the
        annotation's own id or -1.
        """
        self._by_image.append(key)
        self._numbers.append(number)
        self._own_ids.append(own_id)

    def close(self) -> None:
        """Sort everything by image for look-up."""
        self.keys: NDArray[np.int64] = np.frombuffer(self._keys, dtype=np.int64)
        """(images,) in the file's order."""
        self._sorted = self.keys if _ascends(self.keys) else np.sort(self.keys)
        by_image = np.frombuffer(self._by_image, dtype=np.int64)
        numbers = np.frombuffer(self._numbers, dtype=np.int32)
        own_ids = np.frombuffer(self._own_ids, dtype=np.int64)
        if not _ascends(by_image):
            order = np.argsort(by_image, kind="stable")
            by_image, numbers, own_ids = by_image[order], numbers[order], own_ids[order]
        self._annotated, self._category, self._annotation = by_image, numbers, own_ids
        del self._keys, self._by_image, self._numbers, self._own_ids

    @property
    def count(self) -> int:
        """The number of images, including those without a valid id."""
        return len(self.keys)

    def repeated(self) -> frozenset[int]:
        """Return the keys that several images have."""
        again = self._sorted[1:][self._sorted[1:] == self._sorted[:-1]]
        return frozenset(np.unique(again).tolist()) - {NO_KEY}

    def highest(self, limit: int) -> int:
        """Return the highest key up to `limit` that is an integer id, or -1."""
        below = int(np.searchsorted(self._sorted, limit, side="right"))
        return max(int(self._sorted[below - 1]), -1) if below else -1

    def without_image(self) -> Iterator[tuple[int, int]]:
        """Yield (image's key, own id or -1) of annotations whose image is missing."""
        for start in range(0, len(self._annotated), _AT_ONCE):
            keys = self._annotated[start : start + _AT_ONCE]
            missing = np.ones(len(keys), dtype=bool)
            if len(self._sorted):
                places = np.minimum(np.searchsorted(self._sorted, keys), len(self._sorted) - 1)
                missing = self._sorted[places] != keys
            for at in np.flatnonzero(missing):
                yield int(keys[at]), int(self._annotation[start + at])

    def categories(self, start: int, stop: int) -> list[int]:
        """Return the category's number of each image from position `start` to before `stop`.

        It is NOT_ANNOTATED, SEVERAL or NO_CATEGORY for images without a single category.
        """
        if not len(self._annotated):
            return [NOT_ANNOTATED] * (stop - start)
        keys = self.keys[start:stop]
        first = np.searchsorted(self._annotated, keys, side="left")
        counts = np.searchsorted(self._annotated, keys, side="right") - first
        numbers = self._category[np.minimum(first, len(self._category) - 1)]
        numbers = np.where(counts == 1, numbers, np.where(counts == 0, NOT_ANNOTATED, SEVERAL))
        listed: list[int] = numbers.tolist()
        return listed

    def annotations_of(self, key: int) -> list[tuple[int, int]]:
        """Return (category's number, own id) of an image's annotations, in the file's order."""
        first, last = np.searchsorted(self._annotated, [key, key + 1])
        return list(
            zip(
                self._category[first:last].tolist(),
                self._annotation[first:last].tolist(),
                strict=True,
            )
        )


def _ascends(keys: NDArray[np.int64]) -> bool:
    return bool((keys[1:] >= keys[:-1]).all())

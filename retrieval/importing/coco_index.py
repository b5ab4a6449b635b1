"""Which images a COCO file has, and which category each is annotated with, in arrays.

8 bytes an image and 20 an annotation. Of those that don't come in ascending order of their images'
ids, 8 more an image, and, while they are sorted, 28 an annotation.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

NO_KEY: Final = -1
"""The key of a record without a valid id; ids are 0 or more, texts' numbers -2 or less."""
NOT_ANNOTATED: Final = -1
SEVERAL: Final = -2
"""Of an image with several annotations: `annotations_of` tells them."""
NO_CATEGORY: Final = -3
"""The number of an annotation without a category."""

_AT_ONCE: Final = 65_536


class CocoIndex:
    """Filled image by image and annotation by annotation, closed, and then asked.

    An image goes by its key, an integer of 64 bits; a category by its number, 0 or more.
    """

    def __init__(self) -> None:
        self._keys = array("q")
        self._by_image, self._numbers, self._own_ids = array("q"), array("i"), array("q")

    def image_add(self, key: int) -> None:
        """Take in the next image of the file, NO_KEY where it has no valid id."""
        self._keys.append(key)

    def annotation_add(self, key: int, number: int, own_id: int) -> None:
        """Take in an annotation: the image's key, the category's number or NO_CATEGORY, and the
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
        """How many images there are, with those without a valid id."""
        return len(self.keys)

    def repeated(self) -> frozenset[int]:
        """Return the keys that several images have."""
        again = self._sorted[1:][self._sorted[1:] == self._sorted[:-1]]
        return frozenset(np.unique(again).tolist()) - {NO_KEY}

    def highest(self, limit: int) -> int:
        """Return the highest key up to `limit` that is an integer id, or -1."""
        below = int(np.searchsorted(self._sorted, limit, side="right"))
        return max(int(self._sorted[below - 1]), -1) if below else -1

    def strangers(self) -> Iterator[tuple[int, int]]:
        """Yield (image's key, annotation's own id or -1) of annotations without an image."""
        for start in range(0, len(self._annotated), _AT_ONCE):
            keys = self._annotated[start : start + _AT_ONCE]
            missing = np.ones(len(keys), dtype=bool)
            if len(self._sorted):
                places = np.minimum(np.searchsorted(self._sorted, keys), len(self._sorted) - 1)
                missing = self._sorted[places] != keys
            for at in np.flatnonzero(missing):
                yield int(keys[at]), int(self._annotation[start + at])

    def categories(self, start: int, stop: int) -> list[int]:
        """Return the category's number of each image from one position of the file to another.

        NOT_ANNOTATED, SEVERAL and NO_CATEGORY stand for those that have no single one.
        """
        if not len(self._annotated):
            return [NOT_ANNOTATED] * (stop - start)
        keys = self.keys[start:stop]
        first = np.searchsorted(self._annotated, keys, side="left")
        found = np.searchsorted(self._annotated, keys, side="right") - first
        numbers = self._category[np.minimum(first, len(self._category) - 1)]
        numbers = np.where(found == 1, numbers, np.where(found == 0, NOT_ANNOTATED, SEVERAL))
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

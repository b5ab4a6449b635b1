"""Relevance of judged images, as arrays that scoring works on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Qrels:
    """The judged images of each query; n pairs of q queries.

    `image_ids` ascend within a query, the queries' parts follow each other.
    """

    query_ids: npt.NDArray[np.int64]
    """(q,) ascending; queries without any judged image included."""
    offsets: npt.NDArray[np.int64]
    """(q + 1,): the images of query i are [offsets[i], offsets[i + 1])."""
    image_ids: npt.NDArray[np.int64]
    """(n,)"""
    relevant: npt.NDArray[np.bool_]
    """(n,)"""
    gains: npt.NDArray[np.int64] | None = None
    """(n,) from 0, the gain of an image in nDCG and ERR; None where only relevance is known."""

    @classmethod
    def from_pairs(cls, query_ids: Iterable[int], pairs: Iterable[tuple[int, int, bool]]) -> Qrels:
        """From (query id, image id, relevant) in any order.

        ValueError: a pair twice, or of a query that `query_ids` doesn't name.
        """
        table = np.fromiter(
            pairs, dtype=[("query", np.int64), ("image", np.int64), ("relevant", np.bool_)]
        )
        return cls.from_arrays(query_ids, table["query"], table["image"], table["relevant"])

    @classmethod
    def from_arrays(
        cls,
        query_ids: Iterable[int],
        pair_queries: npt.ArrayLike,
        image_ids: npt.ArrayLike,
        relevant: npt.ArrayLike,
        gains: npt.ArrayLike | None = None,
    ) -> Qrels:
        """From the columns (n,) of pairs in any order; sorted ones are quicker.

        ValueError: a pair twice, or of a query that `query_ids` doesn't name.
        """
        queries = np.array(sorted(set(query_ids)), dtype=np.int64)
        owners = np.asarray(pair_queries, dtype=np.int64)
        images = np.asarray(image_ids, dtype=np.int64)
        flags = np.asarray(relevant, dtype=np.bool_)
        pair_gains = None if gains is None else np.asarray(gains, dtype=np.int64)
        if not _ascending(owners, images).all():
            order = np.lexsort((images, owners))
            owners, images, flags = owners[order], images[order], flags[order]
            pair_gains = None if pair_gains is None else pair_gains[order]
            if not _ascending(owners, images).all():
                raise ValueError("A pair is there twice.")
        starts = np.searchsorted(owners, queries, side="left")
        ends = np.searchsorted(owners, queries, side="right")
        if int((ends - starts).sum()) != len(owners):
            raise ValueError("A pair is of a query that isn't named.")
        return cls(
            query_ids=queries,
            offsets=np.append(starts, len(owners)).astype(np.int64),
            image_ids=np.ascontiguousarray(images),
            relevant=np.ascontiguousarray(flags),
            gains=None if pair_gains is None else np.ascontiguousarray(pair_gains),
        )

    def of(self, query_id: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """The judged image ids of a query and their relevance; KeyError for an unknown query."""
        part = self._part(query_id)
        return self.image_ids[part], self.relevant[part]

    def gains_of(self, query_id: int) -> npt.NDArray[np.int64]:
        """The gains of a query's judged images, in the order of `of`; without gains, 1 for a
        relevant image and 0 for another. KeyError for an unknown query."""
        part = self._part(query_id)
        return self.relevant[part].astype(np.int64) if self.gains is None else self.gains[part]

    def gains_at(self, query_id: int, image_ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """(m,) the gains of any images for a query; 0 for one that wasn't judged."""
        part = self._part(query_id)
        images, gains = self.image_ids[part], self.gains_of(query_id)
        if not len(images):
            return np.zeros(len(image_ids), dtype=np.int64)
        places = np.minimum(np.searchsorted(images, image_ids), len(images) - 1)
        return np.where(images[places] == image_ids, gains[places], 0)

    def _part(self, query_id: int) -> slice:
        index = int(np.searchsorted(self.query_ids, query_id))
        if index == len(self.query_ids) or self.query_ids[index] != query_id:
            raise KeyError(query_id)
        return slice(self.offsets[index], self.offsets[index + 1])

    @property
    def pair_queries(self) -> npt.NDArray[np.int64]:
        """(n,) the query id of each pair."""
        return np.repeat(self.query_ids, self.sizes())

    def rows(self, *, graded: bool = False) -> Iterator[tuple[int, int, int]]:
        """(query id, image id, 1 or 0, or with `graded` the gain) of each pair, by both ids."""
        values = self.relevant.astype(np.int64)
        if graded and self.gains is not None:
            values = self.gains
        return zip(
            self.pair_queries.tolist(), self.image_ids.tolist(), values.tolist(), strict=True
        )

    def only(self, query_ids: npt.ArrayLike) -> Qrels:
        """The qrels of these queries; queries that it doesn't have are left out."""
        kept = self.query_ids[np.isin(self.query_ids, query_ids)]
        return self._selected(kept, np.isin(self.pair_queries, kept))

    def where(self, kept: npt.NDArray[np.bool_]) -> Qrels:
        """All of its queries, with only the pairs that `kept` (n,) marks."""
        return self._selected(self.query_ids, kept)

    def _selected(self, query_ids: npt.NDArray[np.int64], pairs: npt.NDArray[np.bool_]) -> Qrels:
        return Qrels.from_arrays(
            query_ids.tolist(),
            self.pair_queries[pairs],
            self.image_ids[pairs],
            self.relevant[pairs],
            None if self.gains is None else self.gains[pairs],
        )

    def totals(self) -> npt.NDArray[np.int64]:
        """(q,) R, the number of relevant images of each query."""
        sums = np.concatenate(([0], np.cumsum(self.relevant, dtype=np.int64)))
        return sums[self.offsets[1:]] - sums[self.offsets[:-1]]

    def sizes(self) -> npt.NDArray[np.int64]:
        """(q,) how many images of each query are judged."""
        return np.diff(self.offsets)


def _ascending(
    owners: npt.NDArray[np.int64], images: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """(n - 1,) whether each pair follows the one before in (query, image)."""
    same: npt.NDArray[np.bool_] = owners[1:] == owners[:-1]
    return (owners[1:] > owners[:-1]) | (same & (images[1:] > images[:-1]))


def is_rerankable(relevant: Iterable[bool]) -> bool:
    """Whether a query's fixed list can be re-ranked to any effect.

    `relevant` says of each image of the list whether it is relevant; one that nobody judged is
    not. At least one must be, and no more than half of them. Source: INQUIRE, section 3
    (INQUIRE-Rerank).
    """
    flags = [bool(flag) for flag in relevant]
    return 0 < sum(flags) <= len(flags) / 2

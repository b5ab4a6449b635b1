"""Which queries the re-ranking task keeps."""

from __future__ import annotations

from collections.abc import Iterable


def fit(relevant: Iterable[bool]) -> bool:
    """Whether a query's fixed list can be re-ranked to any effect.

    `relevant` says of each image of the list whether it is relevant; one that nobody judged is
    not. At least one must be, and no more than half of them. Source: INQUIRE, section 3
    (INQUIRE-Rerank).
    """
    flags = [bool(flag) for flag in relevant]
    return 0 < sum(flags) <= len(flags) / 2

"""Things that pairs link."""

from __future__ import annotations

import numpy as np


def components(count: int, pairs: list[tuple[int, int]]) -> list[list[int]]:
    """The groups of at least two of `count` things that pairs link, each ascending."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not pairs:
        return []
    rows, columns = np.array(pairs).T
    links = coo_array((np.ones(len(rows), bool), (rows, columns)), shape=(count, count))
    labels = connected_components(links, directed=False)[1]
    order = np.argsort(labels, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    return [group.tolist() for group in groups if len(group) > 1]

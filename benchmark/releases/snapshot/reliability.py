"""How far people agree on a release's pairs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from benchmark.releases.snapshot.snapshot import Snapshot
from labeling.candidates.stopping import RELEVANT
from labeling.judging.reliability import Reliability, reliability


def release_reliability(snapshot: Snapshot) -> Reliability:
    """The agreement over the pairs that two people or more judged. Unsure counts as not relevant,
    as in a release."""
    table = pq.read_table(snapshot.path("judgments"), columns=["query_id", "image_id", "relevance"])
    owners, images = table["query_id"].to_numpy(), table["image_id"].to_numpy()
    relevances = table["relevance"].to_numpy(zero_copy_only=False)
    pair = pair_places(owners, images)
    counts = np.zeros((int(pair.max(initial=-1)) + 1, 2))
    np.add.at(counts, (pair, (relevances == RELEVANT).astype(np.int64)), 1)
    return reliability(counts)


def pair_places(
    owners: npt.NDArray[np.int64], images: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Of each judgment (n,) the place of its pair among the judged ones. Rows come by query and
    image, so that a pair's judgments are adjacent."""
    begins = np.ones(len(owners), dtype=np.int64)
    begins[1:] = (owners[1:] != owners[:-1]) | (images[1:] != images[:-1])
    places: npt.NDArray[np.int64] = np.cumsum(begins) - 1
    return places

"""model_ranks.csv: where each model of a query's candidate list ranked the judged images;
model_ranks_val.csv: the same of the validation split alone.

    query_id, image_id   a judged pair
    model                a model of the query's candidate list
    rank                 the image's under this model, from 1
    score                its cosine similarity to the query's text

A judged image without a row was ranked by none of them as deep as the list goes: a search or "more
like this" brought it. Rows go by query id, then image id, then the order of the list's models.
"""

from __future__ import annotations

from typing import Final

from releases.formats.base import Files
from releases.snapshot.snapshot import Snapshot

COLUMNS: Final = ("query_id", "image_id", "model", "rank", "score")


def write(snapshot: Snapshot, files: Files) -> None:
    """Write the ranks; nothing where the snapshot doesn't hold them."""
    if snapshot.has_table("model_ranks"):
        rows = snapshot.rows("model_ranks", COLUMNS)
        files.csv(f"model_ranks{files.labels}.csv", COLUMNS, rows)

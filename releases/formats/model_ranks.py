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

from operator import attrgetter
from pathlib import Path
from typing import Final

from releases.formats.base import Access, Format, ImageFiles, WrittenFile
from releases.formats.writing import write_csv
from releases.snapshot.snapshot import Snapshot

MODEL_RANKS_FILE: Final = "model_ranks.csv"
VAL_MODEL_RANKS_FILE: Final = "model_ranks_val.csv"
COLUMNS: Final = ("query_id", "image_id", "model", "rank", "score")


def write(snapshot: Snapshot, directory: Path, image_files: ImageFiles) -> list[WrittenFile]:
    """Write both files; none where the snapshot doesn't hold the ranks."""
    if not snapshot.path("model_ranks").exists():
        return []
    row, val = attrgetter(*COLUMNS), snapshot.queries_of("val")
    everything = map(row, snapshot.model_ranks())
    of_val = (row(one) for one in snapshot.model_ranks() if one.query_id in val)
    return [
        write_csv(directory, MODEL_RANKS_FILE, Access.LABELS, COLUMNS, everything),
        write_csv(directory, VAL_MODEL_RANKS_FILE, Access.OPEN, COLUMNS, of_val),
    ]


FORMAT = Format(
    key="model-ranks",
    title="Ranks by model",
    about="Where each model of a query’s candidate list ranked the judged images.",
    write=write,
)

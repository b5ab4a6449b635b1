"""The table `read_images` of a snapshot, and readers.csv: the judged images that came to people
through a reader; readers_val.csv: those of the validation queries.

query_id,image_id,reader,family,how
3,1012,night reader,qwen2.5-vl,queue
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from django.db.models import Exists

from core.csv_rows import spreadsheet_text
from extras.reading.models import Calibration, ReaderPick
from extras.reading.order import PREFIX
from labeling.judging.blind import votes_on_item
from labeling.judging.models import BlindItem, Judgment
from labeling.judging.sources import JudgmentSource
from labeling.queries.models import Benchmark, Query
from releases.formats.base import Files
from releases.making.labels import complete_queries
from releases.snapshot.snapshot import Snapshot

TABLE: Final = "read_images"
COLUMNS: Final = ("query_id", "image_id", "reader", "family", "how")


@dataclass(frozen=True, order=True, slots=True)
class ReadImage:
    """A judged image that came to people through a reader."""

    query_id: int
    image_id: int
    reader: str
    """Its name."""
    family: str
    """Of its model; empty where it isn't said."""
    how: str
    """In the order that learns "order", and "screening" where the reader left images out; judged
    blindly "queue", "spent" or "opinions" (`ReaderPick.How`)."""


def read_images(benchmark: Benchmark | None = None) -> Iterator[ReadImage]:
    """Those of the complete queries, by query id and image id; three SQL queries."""
    queries = Query.objects.filter(pk__in=complete_queries(benchmark).order_by().values("pk"))
    items = BlindItem.objects.filter(
        Exists(votes_on_item()), query__in=queries, displayed_at__isnull=False
    )
    picks = ReaderPick.objects.filter(item__in=items).values_list(
        *("item__query__query_id", "item__image", "reader__name", "reader__family", "how")
    )
    found = {ReadImage(*pick) for pick in picks}
    calibrations = Calibration.objects.select_related("reader").in_bulk()
    met = Judgment.objects.filter(query__in=queries, revision__feature__startswith=PREFIX)
    columns = ("query__query_id", "image", "source", "revision__feature")
    for query_id, image_id, source, key in met.order_by().values_list(*columns).distinct():
        _, calibration, _, order, threshold = key.split(":")
        reader = calibrations[int(calibration)].reader
        # Every fourth image is the frozen order's.
        learned = source == JudgmentSource.LEARNED
        hows = {"order": learned and order == "1", "screening": threshold != ""}
        for how in (how for how, met in hows.items() if met):
            found.add(ReadImage(query_id, image_id, reader.name, reader.family, how))
    yield from sorted(found)


def write(snapshot: Snapshot, files: Files) -> None:
    """Write the file; none where no image came through a reader."""
    rows = snapshot.rows(TABLE) if snapshot.has_table(TABLE) else ()
    lines = [(*row[:2], *map(spreadsheet_text, row[2:])) for row in rows]
    if lines:
        files.csv(f"readers{files.labels}.csv", COLUMNS, lines)

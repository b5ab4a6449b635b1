"""The data sets: their numbers of images, their licenses, and what earlier versions read wrongly.

Two findings concern images that were imported before licenses' texts were kept: a license that
`curate` may have read from a sentence, and the location of a table, which may be obscured without
saying so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.db.migrations.recorder import MigrationRecorder
from django.db.models import TextChoices

from core.errors import Missing
from core.licenses import CURATED_NAMES
from core.sql import fetch_all
from retrieval.corpus.models import DatasetMark, Image
from retrieval.corpus.selectors import ImagePage, datasets

#: With more images a page counts only if that is asked for.
COUNTED_AT_ONCE: Final = 100_000
MOST_LICENSES: Final = 5
_KEEPING_TEXTS: Final = "0004_first_hour"


class Finding(TextChoices):
    """What may be wrong with images that an earlier version imported."""

    LICENSE = "license", "license read from the source before its words were kept"
    LOCATION = "location", "location of a table that may be obscured"


@dataclass(frozen=True, slots=True)
class Counted:
    """A license as images have it, empty for none, and the number of images."""

    license: str
    images: int


@dataclass(frozen=True, slots=True)
class DatasetFigures:
    """A data set in numbers, withdrawn images among them, and what an admin has said of it."""

    dataset: str
    images: int
    licenses: list[Counted]
    """The MOST_LICENSES most frequent."""
    more_licenses: int
    """How many others there are."""
    license_read: int
    """Images with the finding LICENSE."""
    exact_locations: int
    """Images with the finding LOCATION."""
    mark: DatasetMark = field(default_factory=DatasetMark)


_IMAGE = Image._meta.db_table
#: An older file that is imported again has the name that `curate` wrote for its text.
_FOUND = {
    Finding.LICENSE: "(i.created_at < %(before)s AND i.license = ANY(%(names)s)"
    " AND i.license_text IN ('', i.license))",
    Finding.LOCATION: "(i.created_at < %(before)s AND i.source_id = i.file_name"
    " AND i.latitude IS NOT NULL AND NOT i.coordinates_obscured)",
}
_FIGURES = f"""
WITH licensed AS (
    SELECT dataset, license, count(*) AS images,
           count(*) FILTER (WHERE {_FOUND[Finding.LICENSE]}) AS license_read,
           count(*) FILTER (WHERE {_FOUND[Finding.LOCATION]}) AS exact_locations
      FROM {_IMAGE} i WHERE %(dataset)s::text IS NULL OR dataset = %(dataset)s
     GROUP BY dataset, license
)
SELECT dataset, sum(images)::bigint, sum(license_read)::bigint, sum(exact_locations)::bigint,
       count(*), (array_agg(license ORDER BY images DESC, license))[:{MOST_LICENSES}],
       (array_agg(images ORDER BY images DESC, license))[:{MOST_LICENSES}]
  FROM licensed GROUP BY dataset ORDER BY dataset
"""
_FIGURES_OF_ONE = _FIGURES.replace("%(dataset)s::text IS NULL OR ", "")


def texts_kept_since() -> datetime | None:
    """Return when this installation began to keep licenses' own words."""
    applied = MigrationRecorder.Migration.objects.filter(app="retrieval", name=_KEEPING_TEXTS)
    moment: datetime | None = applied.values_list("applied", flat=True).first()
    return moment


def dataset_figures(dataset: str | None = None) -> list[DatasetFigures]:
    """Return the figures of all data sets by name, or of one. Raises Missing for an unknown one.

    One grouped statement over the images, which takes 1.4 seconds for a million where the table is
    in memory; two short ones beside it.
    """
    values = {"dataset": dataset, **_values()}
    rows = fetch_all(_FIGURES if dataset is None else _FIGURES_OF_ONE, values)
    if dataset is not None and not rows:
        raise Missing(f"The corpus has no data set {dataset!r}.")
    marks = {mark.dataset: mark for mark in DatasetMark.objects.all()}
    return [
        DatasetFigures(
            dataset=name,
            images=images,
            licenses=[Counted(*pair) for pair in zip(licenses, counts, strict=True)],
            more_licenses=different - len(licenses),
            license_read=license_read,
            exact_locations=exact,
            mark=marks.get(name) or DatasetMark(dataset=name),
        )
        for name, images, license_read, exact, different, licenses, counts in rows
    ]


def dataset_mark_of(dataset: str) -> DatasetMark:
    """Return what was said of a data set. Raises Missing for one that was never there."""
    mark = DatasetMark.objects.filter(dataset=dataset).first()
    if mark is None and dataset not in datasets():
        raise Missing(f"The corpus has no data set {dataset!r}.")
    return mark or DatasetMark(dataset=dataset)


def found_images(
    dataset: str, finding: Finding, *, after: int | None = None, limit: int
) -> ImagePage:
    """Return images with a finding by their ids in the data set, those that follow `after`. It
    reads the data set's images up to the last of these.
    """
    statement = f"""
SELECT id FROM {_IMAGE} i
 WHERE dataset = %(dataset)s AND {_FOUND[finding]}
   AND source_id > coalesce((SELECT source_id FROM {_IMAGE} WHERE id = %(after)s), '')
 ORDER BY dataset, source_id LIMIT %(limit)s
"""
    values = {"dataset": dataset, "after": after, "limit": limit + 1, **_values()}
    ids = [image_id for (image_id,) in fetch_all(statement, values)]
    images = Image.objects.select_related("species").prefetch_related("species__names")
    by_id = images.in_bulk(ids[:limit])
    return ImagePage(
        images=[by_id[image_id] for image_id in ids[:limit] if image_id in by_id],
        after=ids[limit - 1] if len(ids) > limit else None,
    )


def findings_among(image_ids: list[int]) -> dict[Finding, int]:
    """Return how many of these images have each finding; an index look-up for each."""
    counts = ", ".join(f"count(*) FILTER (WHERE {condition})" for condition in _FOUND.values())
    statement = f"SELECT {counts} FROM {_IMAGE} i WHERE id = ANY(%(ids)s)"
    [row] = fetch_all(statement, {"ids": image_ids, **_values()})
    return dict(zip(_FOUND, row, strict=True))


def _values() -> dict[str, Any]:
    return {"before": texts_kept_since(), "names": list(CURATED_NAMES.values())}

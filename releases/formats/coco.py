"""COCO JSON of the images, in the layout that iNat24's train.json has.

Categories are species with their lineage, numbered from 0 in the order of their lineage;
annotations say which species an image shows, and an image without a species has none. Images carry
their rights holder, their license (null where none is given) and a line of attribution. Labels of
queries aren't here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

from core.licenses import NOT_GIVEN, license_of
from releases.formats.base import Files
from releases.snapshot.snapshot import Snapshot

_LINEAGE: Final = ("kingdom", "phylum", "class_name", "order", "family", "genus")
_SPECIES: Final = (*_LINEAGE, "scientific_name", "iconic_group", "vernacular_name")
_LICENSE: Final = ("license", "license_url")
_IMAGE: Final = (
    "image_id",
    "file_name",
    "width",
    "height",
    "rights_holder",
    "observed_at",
    "latitude",
    "longitude",
    "location_uncertainty",
    "dataset",
    "source_id",
    *_LICENSE,
    "scientific_name",
)


def write(snapshot: Snapshot, files: Files) -> None:
    """Write the document, piece by piece; it is never held as a whole."""
    files.text(f"coco/images{files.images}.json", _parts(snapshot))


def _parts(snapshot: Snapshot) -> Iterator[str]:
    stated = (row for row in _distinct(snapshot, _LICENSE) if any(row))
    licenses = {row: number for number, row in enumerate(stated, start=1)}
    species = {row[6]: row for row in _distinct(snapshot, _SPECIES) if row[6]}
    numbers = {name: number for number, name in enumerate(species)}
    categories: list[tuple[int, int]] = []
    yield '{\n"info": ' + _json(_info(snapshot))
    yield from _array(
        "licenses", (_license(row[0], row[1], number) for row, number in licenses.items())
    )
    yield from _array("categories", (_category(row, numbers[row[6]]) for row in species.values()))
    yield from _array("images", _images(snapshot, licenses, numbers, categories))
    yield from _array(
        "annotations",
        (
            {"id": number, "image_id": image_id, "category_id": category}
            for number, (image_id, category) in enumerate(categories, start=1)
        ),
    )
    yield "\n}\n"


def _info(snapshot: Snapshot) -> dict[str, Any]:
    header = snapshot.header
    return {
        "description": f"{header.name}: the images that its judgments and fixed lists name",
        "version": str(header.version),
        "year": int(header.made_at[:4]) if header.made_at[:4].isdigit() else None,
        "contributor": header.made_by,
        "date_created": header.made_at,
    }


def _distinct(snapshot: Snapshot, columns: Iterable[str]) -> list[tuple[str, ...]]:
    """The distinct rows of some columns of the images, sorted."""
    names = list(columns)
    rows: set[tuple[str, ...]] = set()
    for batch in snapshot.batches("images", names):
        groups = pa.Table.from_batches([batch]).group_by(names).aggregate([])
        rows.update(zip(*(groups[name].to_pylist() for name in names), strict=True))
    return sorted(rows)


def _license(license: str, url: str, number: int) -> dict[str, Any]:
    known = license_of(license, url)
    return {"id": number, "name": license or known.name, "url": url or known.url}


def _category(row: tuple[str, ...], number: int) -> dict[str, Any]:
    *lineage, name, group, common_name = row
    kingdom, phylum, class_name, order, family, genus = lineage
    return {
        "id": number,
        "name": name,
        "common_name": common_name,
        "supercategory": group,
        "kingdom": kingdom,
        "phylum": phylum,
        "class": class_name,
        "order": order,
        "family": family,
        "genus": genus,
        "specific_epithet": name.removeprefix(f"{genus} ") if name != genus else "",
    }


def _images(
    snapshot: Snapshot,
    licenses: dict[tuple[str, ...], int],
    numbers: dict[str, int],
    categories: list[tuple[int, int]],
) -> Iterator[dict[str, Any]]:
    """Each image; (image id, category id) of those with a species are added to `categories`."""
    for (
        image_id, file_name, width, height, holder, date, latitude, longitude, uncertainty,
        dataset, source_id, license, url, species,
    ) in snapshot.rows("images", _IMAGE):  # fmt: skip
        if species:
            categories.append((image_id, numbers[species]))
        yield {
            "id": image_id,
            "file_name": file_name,
            "width": width or None,
            "height": height or None,
            "license": licenses.get((license, url)),
            "rights_holder": holder,
            "attribution": _attribution(holder, license, url),
            "date": date or None,
            "date_captured": date or None,
            "latitude": latitude,
            "longitude": longitude,
            "location_uncertainty": uncertainty,
            "dataset": dataset,
            "source_id": source_id,
        }


def _attribution(holder: str, license: str, url: str) -> str:
    known = license_of(license, url)
    if known is NOT_GIVEN:
        terms = "no licence given"
    else:
        terms = known.name if known.may_redistribute else license or url
    return f"{holder}, {terms}" if holder else terms


def _array(key: str, items: Iterable[dict[str, Any]]) -> Iterator[str]:
    yield f',\n"{key}": ['
    separator = "\n"
    for item in items:
        yield separator + _json(item)
        separator = ",\n"
    yield "\n]"


_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode

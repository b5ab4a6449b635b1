"""A snapshot of the real photographs, with their captions as queries."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path
from typing import Any

from PIL import Image

from releases.formats.base import ImageFiles
from releases.snapshot.snapshot import Snapshot
from retrieval.importing.coco import CocoSource
from retrieval.importing.records import Refusal
from tests.releases.snapshots import BARE, header, image, judgment, pair, query, write_snapshot

QUERIES = 10


def photo_snapshot(
    directory: Path, photos: Path, *, changes: dict[str, Any], **values: Any
) -> tuple[Snapshot, ImageFiles]:
    """The photographs below `photos`, and what finds their files.

    The captions of the first images that have different ones are queries, in turn of the validation
    and the test split; an image is relevant to its own caption, and the next one is not. `changes`
    are made to every image, `values` to the header.
    """
    refusals: list[Refusal] = []
    source = CocoSource(photos / "train.json", refusals.append)
    species = {one.scientific_name: one for one in source.species()}
    files: dict[str, bytes] = {}
    images = []
    for record in source.images():
        path = photos / record.file_name
        data = path.read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        files[digest] = data
        with Image.open(path) as opened:
            width, height = opened.size
        lineage = species[record.scientific_name]
        facts = {
            **BARE,
            "dataset": "photos",
            "file_name": record.file_name,
            "sha256": digest,
            "width": width,
            "height": height,
            "scientific_name": lineage.scientific_name,
            "vernacular_name": dict(lineage.names).get("en", ""),
            "kingdom": lineage.kingdom,
            "phylum": lineage.phylum,
            "class_name": lineage.class_name,
            "order": lineage.order,
            "family": lineage.family,
            "genus": lineage.genus,
            "iconic_group": lineage.iconic_group,
            "license": record.license,
            "license_url": record.license_url,
            "rights_holder": record.rights_holder,
        }
        images.append(image(int(record.source_id), **{**facts, **changes}))
    images.sort(key=lambda one: one.image_id)
    assert refusals == []
    with (photos / "captions.csv").open(encoding="utf-8", newline="") as file:
        captions = {row["caption"]: int(row["image_id"]) for row in csv.DictReader(file)}
    chosen = sorted((image_id, text) for text, image_id in captions.items())[:QUERIES]
    pairs = [
        pair(number, image_id + step, step == 0)
        for number, (image_id, _) in enumerate(chosen, start=1)
        for step in (0, 1)
    ]
    snapshot = write_snapshot(
        directory,
        header=header(rerank_model="", **values),
        queries=[
            query(number, text, split="test" if number % 2 else "val")
            for number, (_, text) in enumerate(chosen, start=1)
        ],
        pairs=pairs,
        judgments=[
            judgment(one.query_id, one.image_id, "relevant" if one.relevant else "not_relevant")
            for one in pairs
        ],
        images=images,
    )
    return snapshot, lambda image_id, file_name, sha256: files.get(sha256)

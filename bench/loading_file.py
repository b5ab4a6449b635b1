"""A made-up COCO file in iNat21's layout, the same each time. Neighboring images are of
different categories.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def category_of(image: int, species: int) -> int:
    """The category's id of an image."""
    return image * 7919 % species


def write_coco(path: Path, *, images: int, species: int) -> None:
    """Write a file of so many images and species; ids begin at 0."""
    categories = [_category(number) for number in range(species)]
    pairs = ((number, category_of(number, species)) for number in range(images))
    sections = {
        "images": _images(images, [one["image_dir_name"] for one in categories]),
        "categories": iter(categories),
        "annotations": ({"id": i, "image_id": i, "category_id": of} for i, of in pairs),
        "licenses": (
            {"id": i, "name": f"License {i}", "url": f"https://example.org/{i}/"} for i in range(8)
        ),
    }
    with path.open("w", encoding="utf-8") as file:
        file.write('{"info": {"description": "made up", "year": 2024}')
        for name, records in sections.items():
            file.write(f', "{name}": [')
            for number, record in enumerate(records):
                file.write((", " if number else "") + json.dumps(record))
            file.write("]")
        file.write("}")


def _images(count: int, folders: list[str]) -> Iterator[dict[str, Any]]:
    drawn = random.Random(24)
    for number in range(count):
        folder = folders[category_of(number, len(folders))]
        yield {
            "id": number,
            "width": 500,
            "height": 375 + number % 125,
            "file_name": f"train/{folder}/{drawn.getrandbits(128):032x}.jpg",
            "license": number % 8,
            "rights_holder": f"Observer {drawn.randrange(100_000)}",
            "date": f"2019-{number % 12 + 1:02}-{number % 28 + 1:02} {number % 24:02}:00:00+00:00",
            "latitude": round(drawn.random() * 170 - 85, 10),
            "longitude": round(drawn.random() * 358 - 179, 10),
            "location_uncertainty": number % 1000 if number % 4 else None,
        }


def _category(number: int) -> dict[str, Any]:
    ranks = {
        "kingdom": "Animalia",
        "phylum": "Chordata",
        "class": "Aves",
        "order": f"Order{number // 400}",
        "family": f"Family{number // 40}",
        "genus": f"Genus{number // 5}",
        "specific_epithet": f"species{number}",
    }
    return {
        "id": number,
        "name": f"Genus{number // 5} species{number}",
        "common_name": f"Common Thing {number}",
        "supercategory": "Birds",
        **ranks,
        "image_dir_name": f"{number:05}_" + "_".join(ranks.values()),
    }

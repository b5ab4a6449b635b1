"""A made-up COCO file in iNat21's layout, the same each time, on one line.

Neighbouring images are of different categories. Rows are written as they are drawn, so
that a file of any size needs no memory.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

GROUPS: Final = (
    ("Plants", "Plantae", "Tracheophyta", "Magnoliopsida"),
    ("Insects", "Animalia", "Arthropoda", "Insecta"),
    ("Birds", "Animalia", "Chordata", "Aves"),
    ("Fungi", "Fungi", "Basidiomycota", "Agaricomycetes"),
    ("Mammals", "Animalia", "Chordata", "Mammalia"),
)
LICENSES: Final = 8
OBSERVERS: Final = 100_000


def category_of(image: int, species: int) -> int:
    """The category's id of an image."""
    return image * 7919 % species


def write_coco(path: Path, *, images: int, species: int) -> None:
    """Write a file of so many images and species; ids begin at 0."""
    categories = [_category(number) for number in range(species)]
    sections: list[tuple[str, Iterator[dict[str, Any]]]] = [
        ("images", _images(images, [one["image_dir_name"] for one in categories])),
        ("categories", iter(categories)),
        ("annotations", _annotations(images, species)),
        ("licenses", map(_license, range(LICENSES))),
    ]
    with path.open("w", encoding="utf-8") as file:
        file.write('{"info": {"description": "made up", "year": 2024}')
        for name, records in sections:
            file.write(f', "{name}": [')
            for number, record in enumerate(records):
                file.write((", " if number else "") + json.dumps(record))
            file.write("]")
        file.write("}")


def _images(count: int, folders: list[str]) -> Iterator[dict[str, Any]]:
    drawn = random.Random(24)
    for number in range(count):
        place = drawn.random()
        moment = (
            f"20{number % 12 + 10}-{number % 12 + 1:02}-{number % 28 + 1:02} "
            f"{number % 24:02}:{number % 60:02}:{number % 59:02}+00:00"
        )
        yield {
            "id": number,
            "width": 500,
            "height": 375 + number % 125,
            "file_name": f"train/{folders[category_of(number, len(folders))]}/"
            f"{drawn.getrandbits(128):032x}.jpg",
            "license": number % LICENSES,
            "rights_holder": f"Observer {drawn.randrange(OBSERVERS)}",
            "date": moment,
            "latitude": round(place * 170 - 85, 10),
            "longitude": round(drawn.random() * 358 - 179, 10),
            "location_uncertainty": number % 1000 if number % 4 else None,
        }


def _annotations(count: int, species: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield {"id": number, "image_id": number, "category_id": category_of(number, species)}


def _category(number: int) -> dict[str, Any]:
    group, kingdom, phylum, class_name = GROUPS[number % len(GROUPS)]
    ranks = {
        "kingdom": kingdom,
        "phylum": phylum,
        "class": class_name,
        "order": f"Order{number // 400}",
        "family": f"Family{number // 40}",
        "genus": f"Genus{number // 5}",
        "specific_epithet": f"species{number}",
    }
    return {
        "id": number,
        "name": f"{ranks['genus']} {ranks['specific_epithet']}",
        "common_name": f"Common Thing {number}",
        "supercategory": group,
        **ranks,
        "image_dir_name": f"{number:05}_" + "_".join(ranks.values()),
    }


def _license(number: int) -> dict[str, Any]:
    return {"id": number, "name": f"Licence {number}", "url": f"https://example.org/{number}/"}

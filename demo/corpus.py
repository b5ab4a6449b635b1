"""Writes the demo collection to a directory in the iNat24 layout."""

from __future__ import annotations

import csv
import datetime
import hashlib
import io
import json
import os
import random
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from demo.attributes import ATTRIBUTE_NAMES, Scene, scene
from demo.draw.compose import jpeg
from demo.draw.ink import SIZE
from demo.kinds import Species
from demo.queries import MOTIFS
from demo.species import SPECIES

DEFAULT_COUNT = 3000
DEFAULT_SEED = 2024
STAMP_NAME = "corpus.json"
LAYOUT_VERSION = 1
_CHUNK = 25

LICENSES: tuple[dict[str, Any], ...] = (
    {
        "id": 0,
        "name": "Attribution-NonCommercial License",
        "url": "https://creativecommons.org/licenses/by-nc/4.0/",
    },
    {"id": 1, "name": "Attribution License", "url": "https://creativecommons.org/licenses/by/4.0/"},
    {
        "id": 2,
        "name": "Attribution-ShareAlike License",
        "url": "https://creativecommons.org/licenses/by-sa/4.0/",
    },
    {
        "id": 3,
        "name": "Public Domain Dedication",
        "url": "https://creativecommons.org/publicdomain/zero/1.0/",
    },
)
_FIRST_NAMES = (
    "Ada",
    "Bruno",
    "Chika",
    "Dario",
    "Elif",
    "Farid",
    "Greta",
    "Hana",
    "Ines",
    "Jonas",
    "Kofi",
    "Lena",
    "Mateo",
    "Noor",
    "Oskar",
    "Priya",
)
_LAST_NAMES = (
    "Almgren",
    "Bergdorf",
    "Castellan",
    "Dufresne",
    "Eklund",
    "Farrow",
    "Gruber",
    "Holloway",
    "Ivarsen",
    "Jansen",
    "Kimura",
    "Lindqvist",
)
_REGIONS = (
    (47.6, 9.4),
    (-33.9, 18.6),
    (35.1, 136.9),
    (51.3, -0.4),
    (-2.9, -60.1),
    (61.2, 10.5),
    (37.8, -122.3),
    (-41.3, 174.8),
)


def corpus_scene(index: int, seed: int = DEFAULT_SEED) -> Scene:
    """Return the scene of image ``index`` of the collection."""
    return scene(index, seed, motifs=MOTIFS)


def image_dir_name(position: int, kind: Species) -> str:
    """Return the folder of a species' images, as iNat24 names it."""
    lineage = (
        kind.kingdom,
        kind.phylum,
        kind.klass,
        kind.order,
        kind.family,
        kind.genus,
        kind.epithet,
    )
    return f"{position:05d}_" + "_".join(lineage)


def file_name(index: int, seed: int) -> str:
    """Return an image's path relative to the collection's directory."""
    digest = hashlib.sha256(f"image:{seed}:{index}".encode()).hexdigest()
    position = index % len(SPECIES)
    folder = image_dir_name(position, SPECIES[position])
    return f"train/{folder}/{uuid.UUID(digest[:32])}.jpg"


def _write_atomically(path: Path, content: bytes) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.write_bytes(content)
    part.replace(path)


def _draw_images(task: tuple[str, int, tuple[int, ...]]) -> dict[str, int]:
    directory, seed, indices = task
    sizes = {}
    for index in indices:
        name = file_name(index, seed)
        content = jpeg(corpus_scene(index, seed))
        _write_atomically(Path(directory) / name, content)
        sizes[name] = len(content)
    return sizes


def categories() -> list[dict[str, Any]]:
    """Return the categories of ``train.json``, with vernacular names and look-alike groups."""
    listed = []
    for position, kind in enumerate(SPECIES):
        entry: dict[str, Any] = {
            "id": position,
            "name": kind.scientific_name,
            "common_name": kind.common_name,
            "supercategory": kind.iconic_group,
            "kingdom": kind.kingdom,
            "phylum": kind.phylum,
            "class": kind.klass,
            "order": kind.order,
            "family": kind.family,
            "genus": kind.genus,
            "specific_epithet": kind.epithet,
            "image_dir_name": image_dir_name(position, kind),
            "vernacular_names": {
                "en": [kind.common_name, *kind.other_names],
                "de": [kind.german_name],
            },
        }
        if kind.lookalike_group:
            entry["lookalike_group"] = kind.lookalike_group
        listed.append(entry)
    return listed


def _image(index: int, seed: int) -> dict[str, Any]:
    rng = random.Random(f"record:{seed}:{index}")
    day = datetime.date(2017, 1, 1) + datetime.timedelta(days=rng.randrange(2500))
    latitude, longitude = (near + rng.gauss(0, 2.5) for near in rng.choice(_REGIONS))
    longitude = (longitude + 180) % 360 - 180  # a region may reach across the date line
    return {
        "id": index,
        "file_name": file_name(index, seed),
        "width": SIZE,
        "height": SIZE,
        "license": rng.choices(range(len(LICENSES)), (6, 2, 1, 1))[0],
        "rights_holder": f"{rng.choice(_FIRST_NAMES)} {rng.choice(_LAST_NAMES)}",
        "date": f"{day.isoformat()} 00:00:00+00:00",
        "latitude": round(latitude, 5),
        "longitude": round(longitude, 5),
        "location_uncertainty": rng.choice((5, 10, 30, 100, 250, 1000, None)),
    }


def _annotation_file(count: int, seed: int) -> bytes:
    content = {
        "info": {
            "description": "Drawn scenes of invented species, in the iNat24 layout",
            "version": "1",
        },
        "licenses": list(LICENSES),
        "categories": categories(),
        "images": [_image(index, seed) for index in range(count)],
        "annotations": [
            {"id": index, "image_id": index, "category_id": index % len(SPECIES)}
            for index in range(count)
        ],
    }
    return (json.dumps(content, ensure_ascii=False) + "\n").encode()


def _truth_file(count: int, seed: int) -> bytes:
    held = io.StringIO(newline="")
    writer = csv.writer(held, lineterminator="\n")
    writer.writerow(["image_id", *ATTRIBUTE_NAMES])
    for index in range(count):
        writer.writerow([index, *corpus_scene(index, seed).combination()])
    return held.getvalue().encode()


def _read_stamp(directory: Path, count: int, seed: int) -> dict[str, int]:
    """Return the sizes of the images drawn so far; empty unless they are of this collection."""
    try:
        stamp = json.loads((directory / STAMP_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(stamp, dict) or (stamp.get("version"), stamp.get("seed")) != (
        LAYOUT_VERSION,
        seed,
    ):
        return {}
    wanted = {file_name(index, seed) for index in range(count)}
    return {name: size for name, size in stamp.get("sizes", {}).items() if name in wanted}


def _sizes_on_disk(directory: Path) -> Iterator[tuple[str, int]]:
    for position, kind in enumerate(SPECIES):
        folder = f"train/{image_dir_name(position, kind)}"
        with os.scandir(directory / folder) as entries:
            for entry in entries:
                yield f"{folder}/{entry.name}", entry.stat().st_size


def write_corpus(
    directory: Path,
    count: int = DEFAULT_COUNT,
    seed: int = DEFAULT_SEED,
    progress: Callable[[int, int], None] | None = None,
    processes: int | None = None,
) -> Path:
    """Write ``count`` images, ``train.json`` and ``scenes.csv``; return the directory.

    Files appear under their names only when complete. A second run draws only what is missing
    or has another size than it should, and is quick when nothing is. ``progress`` is called
    with the number of finished images and the total. ``processes`` is the number of processes
    that draw, by default one for each processor and at most two. ValueError for a count below 1.
    """
    if count < 1:
        raise ValueError("a collection needs at least one image")
    for position, kind in enumerate(SPECIES):
        (directory / "train" / image_dir_name(position, kind)).mkdir(parents=True, exist_ok=True)
    known = _read_stamp(directory, count, seed)
    present = dict(_sizes_on_disk(directory))
    sizes = {name: size for name, size in known.items() if present.get(name) == size}
    missing = [index for index in range(count) if file_name(index, seed) not in sizes]
    if progress:
        progress(count - len(missing), count)
    if (
        not missing
        and (directory / "train.json").is_file()
        and (directory / "scenes.csv").is_file()
    ):
        return directory
    (directory / "train.json").unlink(missing_ok=True)
    tasks = [
        (str(directory), seed, tuple(missing[start : start + _CHUNK]))
        for start in range(0, len(missing), _CHUNK)
    ]
    for drawn in _drawn(tasks, processes):
        sizes.update(drawn)
        stamp = {"version": LAYOUT_VERSION, "seed": seed, "sizes": sizes}
        _write_atomically(directory / STAMP_NAME, json.dumps(stamp).encode())
        if progress:
            progress(len(sizes), count)
    _write_atomically(directory / "scenes.csv", _truth_file(count, seed))
    _write_atomically(directory / "train.json", _annotation_file(count, seed))
    return directory


def _drawn(
    tasks: list[tuple[str, int, tuple[int, ...]]], processes: int | None
) -> Iterator[dict[str, int]]:
    workers = processes or min(2, os.cpu_count() or 1)
    if workers < 2 or len(tasks) < 2:
        yield from map(_draw_images, tasks)
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(_draw_images, tasks)

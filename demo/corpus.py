"""Writing the demo corpus to a directory in the iNat24 layout."""

from __future__ import annotations

import csv
import datetime
import hashlib
import io
import json
import os
import random
import uuid
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from core.files import whole_file
from demo.drawing import SIZE, jpeg
from demo.queries import MOTIFS
from demo.scenes import ATTRIBUTES, Scene, scene
from demo.species import SPECIES

DEFAULT_COUNT = 3000
DEFAULT_SEED = 2024
LICENSES = (
    ("Attribution-NonCommercial License", "licenses/by-nc/4.0", 6),
    ("Attribution License", "licenses/by/4.0", 2),
    ("Attribution-ShareAlike License", "licenses/by-sa/4.0", 1),
    ("Public Domain Dedication", "publicdomain/zero/1.0", 1),
)
"""Name, address on creativecommons.org, and how often it occurs."""
FIRST_NAMES = ("Ada", "Bruno", "Chika", "Dario", "Elif", "Farid", "Greta", "Hana", "Ines", "Jonas")
LAST_NAMES = ("Almgren", "Castellan", "Dufresne", "Eklund", "Farrow", "Holloway", "Kimura")
REGIONS = ((47, 9), (-34, 19), (35, 137), (51, 0), (-3, -60), (61, 10), (38, -122), (-41, 175))
"""Latitudes and longitudes, in degrees, that images lie around."""
RANKS = ("kingdom", "phylum", "class", "order", "family", "genus", "specific_epithet")


def corpus_scene(index: int, seed: int = DEFAULT_SEED) -> Scene:
    """Return the scene of image `index` of the corpus."""
    return scene(index, seed, motifs=MOTIFS)


def image_folder(position: int) -> str:
    """Return the folder of a species' images, as iNat24 names it."""
    return f"{position:05d}_" + "_".join(SPECIES[position].lineage)


def file_name(index: int, seed: int) -> str:
    """Return an image's path relative to the corpus's directory."""
    digest = hashlib.sha256(f"image:{seed}:{index}".encode()).hexdigest()
    return f"train/{image_folder(index % len(SPECIES))}/{uuid.UUID(digest[:32])}.jpg"


def write_corpus(
    directory: Path,
    count: int = DEFAULT_COUNT,
    seed: int = DEFAULT_SEED,
    progress: Callable[[int, int], None] | None = None,
    processes: int | None = None,
) -> Path:
    """Write `count` images, `scenes.csv` and, last, `train.json`; return the directory.

    Files get their names only when complete. A second run draws only the images that are missing or
    truncated, and changes nothing if there are none. `progress` is called with the number of
    finished images and the total. `processes` draw at once, by default one for each processor but
    at most two. ValueError for a count below 1.
    """
    if count < 1:
        raise ValueError("a corpus needs at least one image")
    for position in range(len(SPECIES)):
        (directory / "train" / image_folder(position)).mkdir(parents=True, exist_ok=True)
    missing = [index for index in range(count) if not _is_whole(directory / file_name(index, seed))]
    if missing:
        (directory / "train.json").unlink(missing_ok=True)
    if progress:
        progress(count - len(missing), count)
    workers = min(processes or min(2, os.cpu_count() or 1), len(missing))
    draw = partial(_draw_image, directory, seed)
    # Pages and jobs come first.
    with ProcessPoolExecutor(max(1, workers), initializer=os.nice, initargs=(10,)) as pool:
        drawn = pool.map(draw, missing, chunksize=25) if workers > 1 else map(draw, missing)
        for number, _ in enumerate(drawn, count - len(missing) + 1):
            if progress and (number % 25 == 0 or number == count):
                progress(number, count)
    _write(directory / "scenes.csv", _truth_file(count, seed))
    _write(directory / "train.json", _annotation_file(count, seed))
    return directory


def _is_whole(image: Path) -> bool:
    return image.is_file() and image.read_bytes().endswith(b"\xff\xd9")


def _draw_image(directory: Path, seed: int, index: int) -> None:
    _write(directory / file_name(index, seed), jpeg(corpus_scene(index, seed)))


def _write(path: Path, content: bytes) -> None:
    """Write a file whole, unless it holds this already."""
    if path.is_file() and path.read_bytes() == content:
        return
    with whole_file(path, durable=False) as draft:
        draft.write(content)


def _truth_file(count: int, seed: int) -> bytes:
    file = io.StringIO(newline="")
    rows = ([index, *corpus_scene(index, seed).combination()] for index in range(count))
    csv.writer(file, lineterminator="\n").writerows([["image_id", *ATTRIBUTES], *rows])
    return file.getvalue().encode()


def _annotation_file(count: int, seed: int) -> bytes:
    content = {
        "info": {
            "description": "Drawn scenes of invented species, in the iNat24 layout",
            "version": "1",
        },
        "licenses": [
            {"id": number, "name": name, "url": f"https://creativecommons.org/{address}/"}
            for number, (name, address, _) in enumerate(LICENSES)
        ],
        "categories": [_category(position) for position in range(len(SPECIES))],
        "images": [_image(index, seed) for index in range(count)],
        "annotations": [
            {"id": index, "image_id": index, "category_id": index % len(SPECIES)}
            for index in range(count)
        ],
    }
    return (json.dumps(content, ensure_ascii=False) + "\n").encode()


def _category(position: int) -> dict[str, Any]:
    kind = SPECIES[position]
    english = [kind.english, *filter(None, [kind.other_name])]
    return {
        "id": position,
        "name": kind.scientific_name,
        "common_name": kind.english,
        "supercategory": kind.body_plan.iconic_group,
        **dict(zip(RANKS, kind.lineage, strict=True)),
        "image_dir_name": image_folder(position),
        "vernacular_names": {"en": english, "de": [kind.german]},
        **({"lookalike_group": kind.lookalikes} if kind.lookalikes else {}),
    }


def _image(index: int, seed: int) -> dict[str, Any]:
    rng = random.Random(f"record:{seed}:{index}")
    day = datetime.date(2017, 1, 1) + datetime.timedelta(days=rng.randrange(2500))
    latitude, longitude = (near + rng.gauss(0, 2.5) for near in rng.choice(REGIONS))
    return {
        "id": index,
        "file_name": file_name(index, seed),
        "width": SIZE,
        "height": SIZE,
        "license": rng.choices(range(len(LICENSES)), [often for *_, often in LICENSES])[0],
        "rights_holder": f"{rng.choice(FIRST_NAMES)} {rng.choice(LAST_NAMES)}",
        "date": f"{day.isoformat()} 00:00:00+00:00",
        "latitude": round(latitude, 5),
        "longitude": round((longitude + 180) % 360 - 180, 5),
        "location_uncertainty": rng.choice((5, 10, 30, 100, 250, 1000, None)),
    }

"""Makes the small images, data sets and models that the tests of retrieval use."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from django.db import connection
from PIL import Image as PillowImage

from retrieval.corpus.models import Image, Species
from retrieval.embedding.models import EmbeddingModel
from retrieval.images.decoding import DecodedImage, open_image
from retrieval.images.storage import image_store
from retrieval.importing.records import SpeciesRecord
from retrieval.importing.species import species_upsert
from retrieval.ranking.selectors import half_rounded


def jpeg(colour: Any = "teal", size: tuple[int, int] = (40, 30), **options: Any) -> bytes:
    """A JPEG of one colour."""
    return encoded(PillowImage.new("RGB", size, colour), "JPEG", **options)


def unsigned(address: str) -> str:
    """An image's address without its signature: only people who are logged in see it."""
    return address.partition("?")[0]


def encoded(image: PillowImage.Image, kind: str, **options: Any) -> bytes:
    """An image's bytes in the format `kind`."""
    target = io.BytesIO()
    image.save(target, kind, **options)
    return target.getvalue()


def decoded(data: bytes, **options: Any) -> DecodedImage:
    """An image as `open_image` gives it, after its context has ended."""
    with open_image(data, **{"max_pixels": 10**9, **options}) as image:
        return image


def coco(root: Path, *, name: str = "train.json", **parts: Any) -> Path:
    """Write a COCO file of two species and, unless told, three images with their files."""
    colours = {1: "red", 2: "green", 3: "blue"}
    for number, colour in colours.items():
        path = root / f"train/{number}.jpg"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(jpeg(colour))
    whole = {
        "info": {"description": "toy"},
        "licenses": [{"id": 1, "name": "CC BY 4.0", "url": "https://example.org/by"}],
        "categories": [
            {"id": 10, "name": "Rana temporaria", "common_name": "Common Frog",
             "supercategory": "Amphibians", "family": "Ranidae", "genus": "Rana"},
            {"id": 11, "name": "Ursus arctos", "common_name": "Brown Bear",
             "supercategory": "Mammals", "family": "Ursidae", "genus": "Ursus"},
        ],
        "images": [coco_image(number) for number in colours],
        "annotations": [
            {"id": 100 + number, "image_id": number, "category_id": 10 + number % 2}
            for number in colours
        ],
        **parts,
    }  # fmt: skip
    path = root / name
    path.write_text(json.dumps(whole))
    return path


def coco_image(number: int, **fields: Any) -> dict[str, Any]:
    """One image of a COCO file."""
    return {
        "id": number,
        "file_name": f"train/{number}.jpg",
        "width": 40,
        "height": 30,
        "license": 1,
        "rights_holder": "Ada",
        "date": "2021-05-30 14:05:00+02:00",
        "latitude": 52.5,
        "longitude": 13.4,
        "location_uncertainty": 12,
        **fields,
    }


def scene(seed: int, side: int = 160) -> PillowImage.Image:
    """A smooth image of its own."""
    grays = np.random.default_rng(seed).uniform(0, 255, (6, 6)).astype(np.uint8)
    return PillowImage.fromarray(grays).resize((side, side), PillowImage.Resampling.BICUBIC)


def stored_turned(image: PillowImage.Image, orientation: int) -> PillowImage.Image:
    """An image as a camera stores it that was held so that `orientation` puts it upright."""
    undo = {
        2: PillowImage.Transpose.FLIP_LEFT_RIGHT,
        3: PillowImage.Transpose.ROTATE_180,
        4: PillowImage.Transpose.FLIP_TOP_BOTTOM,
        5: PillowImage.Transpose.TRANSPOSE,
        6: PillowImage.Transpose.ROTATE_90,
        7: PillowImage.Transpose.TRANSVERSE,
        8: PillowImage.Transpose.ROTATE_270,
    }
    return image.transpose(undo[orientation]) if orientation in undo else image


def new_image(number: int, **fields: Any) -> Image:
    """An image that isn't in the database yet, without a file in the store."""
    usual: dict[str, Any] = {
        "id": number,
        "dataset": "toy",
        "source_id": str(number),
        "file_name": f"{number}.jpg",
        "sha256": f"{number:064x}",
        "format": "JPEG",
        "width": 4,
        "height": 3,
        "size_bytes": 100,
    }
    return Image(**usual | fields)


def image_row(number: int, species: Species | None = None, **fields: Any) -> Image:
    """An image in the database without a file in the store."""
    image = new_image(number, species=species, **fields)
    image.save(force_insert=True)
    return image


def repeated_images(count: int, colors: Sequence[str], size: tuple[int, int]) -> None:
    """Images from id 0 on, whose files in the store are of these colors in turn."""
    stored = [image_store(jpeg(color, size)) for color in colors]
    Image.objects.bulk_create(
        new_image(
            number,
            sha256=stored[number % len(colors)].sha256,
            size_bytes=stored[number % len(colors)].size_bytes,
            width=size[0],
            height=size[1],
        )
        for number in range(count)
    )


def embed_rows(model: EmbeddingModel, vectors: dict[int, Any]) -> None:
    """Give images, made where they are missing, their vectors, scaled and rounded as usual."""
    with connection.cursor() as cursor:
        for image_id, vector in vectors.items():
            if not Image.objects.filter(pk=image_id).exists():
                image_row(image_id)
            cursor.execute(
                "INSERT INTO retrieval_embedding (model_id, image_id, vector, created_at) "
                "VALUES (%s, %s, %s::halfvec, clock_timestamp())",
                [model.pk, image_id, str(half_rounded(vector))],
            )


def random_vectors(count: int, dimension: int, seed: int = 1) -> np.ndarray:
    """Random vectors (count, dimension), the same for the same seed."""
    return np.random.default_rng(seed).normal(size=(count, dimension))


def species_create(*, record: SpeciesRecord) -> Species:
    """Store one species with its names; one that is known is brought up to date."""
    return species_upsert(records=[record])[record.scientific_name]

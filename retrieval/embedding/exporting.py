"""Export of embeddings, in the layout of clip-retrieval."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from core.files import TargetRefused, atomic_directory
from core.sql import fetch_all, repeatable_read
from retrieval.embedding.files import METADATA_SCHEMA, LayoutWriter, chunk_rows, layout_paths
from retrieval.embedding.models import EmbeddingModel
from retrieval.embedding.selectors import embedding_count, embeddings_after

DTYPES: Final = ("float16", "float32")

_IMAGES: Final = """
SELECT i.id, i.source_id, i.dataset, regexp_replace(i.file_name, %s, ''),
    coalesce(s.scientific_name, '')
FROM retrieval_image i LEFT JOIN retrieval_species s ON s.id = i.species_id
WHERE i.id = ANY(%s)
"""
_SUFFIX: Final = r"\.[^./]*$"
_NO_SUFFIX: Final = "$"

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class EmbeddingExportReport:
    """What was written."""

    rows: int
    files: int
    dimension: int


def export_embeddings(
    *,
    model: EmbeddingModel,
    directory: Path,
    per_file: int = 1_000_000,
    dtype: str = "float16",
    withdrawn: bool = False,
    without_suffix: bool = False,
    replace: bool = False,
    progress: Progress | None = None,
) -> EmbeddingExportReport:
    """Write a model's embeddings, by image id, as `retrieval.embedding.files` describes.

    The export shows the database as of one moment; about 20,000 rows are in memory at a time, and
    the folder appears whole or not at all. Withdrawn images are left out unless `withdrawn` is set.
    `without_suffix` drops .jpg and the like from `image_path`. `replace` replaces the files of an
    earlier export.

    Raises TargetRefused if the folder holds something else, the disk has too little space, or the
    model has no embeddings.
    """
    replaceable = layout_paths(directory) if replace else ()
    with (
        repeatable_read(),
        atomic_directory(directory, replace=replace, replaceable=replaceable) as partial,
    ):
        rows = embedding_count(model, withdrawn=withdrawn)
        if not rows:
            raise TargetRefused(f"No image of the corpus is embedded with {model.name}.")
        _room_check(partial, rows, model.dimension, dtype)
        with (
            LayoutWriter(
                partial, rows=rows, dimension=model.dimension, dtype=dtype, per_file=per_file
            ) as writer,
            ThreadPoolExecutor(max_workers=1) as thread,
        ):
            done, last = 0, -1
            writing: Future[None] | None = None
            while done < rows:
                # The next rows are read while these are written.
                ids, vectors = embeddings_after(
                    model, last, limit=chunk_rows(model.dimension), withdrawn=withdrawn
                )
                metadata = _metadata(ids.tolist(), without_suffix=without_suffix)
                if writing is not None:
                    writing.result()
                writing = thread.submit(writer.write, vectors, metadata)
                done, last = done + len(ids), int(ids[-1])
                if progress is not None:
                    progress(done, rows)
            if writing is not None:
                writing.result()
        return EmbeddingExportReport(rows, writer.files, model.dimension)


def _metadata(image_ids: list[int], *, without_suffix: bool) -> pa.Table:
    rows = fetch_all(_IMAGES, [_SUFFIX if without_suffix else _NO_SUFFIX, image_ids])
    columns = list(zip(*sorted(rows), strict=True))
    return pa.table(
        [pa.array(values, f.type) for values, f in zip(columns, METADATA_SCHEMA, strict=True)],
        schema=METADATA_SCHEMA,
    )


def _room_check(directory: Path, rows: int, dimension: int, dtype: str) -> None:
    needed = rows * dimension * (2 if dtype == "float16" else 4)
    free = shutil.disk_usage(directory).free
    if needed > free:
        raise TargetRefused(
            f"The vectors take {needed / 1e9:.1f} GB, and the disk has {free / 1e9:.1f} GB left."
        )

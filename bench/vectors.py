"""How fast embeddings come in from files and go out: `python -m bench.vectors`.

Made-up embeddings are in files of clip-retrieval's layout, which name the images as INQUIRE's do:
by a path without a suffix, in another order than their ids. `import_embeddings` is compared with a
bare binary COPY of the same rows into a partition of the same kind, `export_embeddings` with a bare
binary COPY of that partition to a file; a fifth of the rows shows how memory grows. Imported and
exported vectors are compared bit for bit.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from bench import harness
from bench.rows import STEP, clustered, make_images, make_species

HEAD: Final = "What | Vectors | Seconds | Vectors a second | × bare COPY | Peak memory"
PER_FILE: Final = 1_000_000


def main(options: Any) -> tuple[bool, list[str]]:
    """Whether imported and exported vectors equal those of the files, and the time and memory."""
    count, few = options.images, options.images // 5
    with harness.database() as (folder, database):

        def fastest(prepare: Any, number: int, repeats: int) -> harness.Measured:
            harness.log(f"{prepare.__name__.strip('_')} of {number:,} …")
            runs = []
            for _ in range(repeats):
                database(harness.sql, "CHECKPOINT")
                runs.append(harness.measured(folder, prepare, folder, number))
            return min(runs, key=lambda run: run.seconds)

        harness.log(f"Making {count:,} images and their embeddings …")
        database(_make, folder, count, few, options.dimension)
        came = fastest(_import, count, options.repeats)
        again = fastest(_import_again, count, 1)
        bare_in = fastest(_copy_in, count, options.repeats).result
        came_few = fastest(_import, few, 1)
        bare_out = fastest(_copy_out, count, options.repeats).seconds
        went, went_few = fastest(_export, count, options.repeats), fastest(_export, few, 1)
        right = np.array_equal(
            _vectors(folder / f"{count}"),
            _vectors(folder / f"exported {count}")[_order(count) - 1],
        )
    rows = [
        [what, number, spent, int(number / spent), spent / bare if bare else None, peak]
        for what, number, spent, bare, peak in (
            ("bare binary COPY into a partition", count, bare_in, bare_in, None),
            ("`import_embeddings`", count, came.seconds, bare_in, came.peak),
            ("`import_embeddings` again, all there", count, again.seconds, bare_in, again.peak),
            ("`import_embeddings` of a fifth", few, came_few.seconds, None, came_few.peak),
            ("bare binary COPY of the partition to a file", count, bare_out, bare_out, None),
            ("`export_embeddings`", count, went.seconds, bare_out, went.peak),
            ("`export_embeddings` of a fifth", few, went_few.seconds, None, went_few.peak),
        )
    ]
    for row in rows:
        row[-1] = harness.megabytes(row[-1]) if row[-1] else None
    equal = "equal to the files, bit for bit." if right else "**not equal to the files.**"
    stored = (*came.result, *again.result) == (count, 0, 0, count)
    return right and stored, [
        f"{options.dimension:,} dimensions, float16; the fastest of {options.repeats} runs.",
        harness.table(HEAD, rows),
        f"What came in and went out again is {equal}",
    ]


def _order(count: int) -> np.ndarray:
    """The images' ids (count,), 1 to `count`, in the order of the files."""
    return np.arange(count, dtype=np.int64) * STEP % count + 1


def _vectors(folder: Path) -> np.ndarray:
    """All vectors (n, d) of a layout's files, read by NumPy alone."""
    return np.concatenate([np.load(path) for path in sorted((folder / "img_emb").iterdir())])


def _make(folder: Path, count: int, few: int, dimension: int) -> None:
    """Images 1 to `count`, and files of the embeddings of all and of a few."""
    import pyarrow as pa

    from retrieval.embedding.embedding_models import embedding_model_get_or_create
    from retrieval.embedding.files import METADATA_SCHEMA, LayoutWriter

    for name in ("bare", str(count), str(few)):
        embedding_model_get_or_create(name=name, dimension=dimension)
    make_species(1)
    make_images(1, count)
    harness.sql("VACUUM ANALYZE")
    paths = dict(
        harness.sql("SELECT id, regexp_replace(file_name, '[.]jpg$', '') FROM retrieval_image")
    )
    shape: Any = {"dimension": dimension, "dtype": "float16", "per_file": PER_FILE}
    for number in (count, few):
        remaining_ids = iter(_order(number).tolist())
        with LayoutWriter(folder / str(number), rows=number, **shape) as writer:
            for vectors in clustered(number, dimension, seed=11):
                columns = {"image_path": pa.array([paths[next(remaining_ids)] for _ in vectors])}
                arrays = [
                    columns.get(field.name, pa.nulls(len(vectors), field.type))
                    for field in METADATA_SCHEMA
                ]
                writer.write(vectors, pa.table(arrays, schema=METADATA_SCHEMA))


def _import(folder: Path, count: int) -> Callable[[], tuple[int, int]]:
    harness.sql(f"TRUNCATE {_partition(count)}")
    return _import_again(folder, count)


def _import_again(folder: Path, count: int) -> Callable[[], tuple[int, int]]:
    """The numbers of vectors stored and of vectors that were there before."""
    from retrieval.embedding.importing import import_embeddings

    def run() -> tuple[int, int]:
        report = import_embeddings(model_name=str(count), directory=folder / str(count))
        return report.stored, report.present

    return run


def _export(folder: Path, count: int) -> Callable[[], None]:
    from retrieval.embedding.exporting import export_embeddings
    from retrieval.embedding.models import EmbeddingModel

    model, directory = EmbeddingModel.objects.get(name=str(count)), folder / f"exported {count}"

    def run() -> None:
        export_embeddings(model=model, directory=directory, replace=True, per_file=PER_FILE)

    return run


def _copy_in(folder: Path, count: int) -> Callable[[], float]:
    """Seconds of the imported rows' bare COPY into another model's empty partition."""
    bare, columns, file = _partition("bare"), "image_id, created_at, vector", folder / "copied"
    number = bare.rpartition("_")[2]
    rows = f"SELECT {number}::bigint, {columns} FROM {_partition(count)}"
    harness.sql(f"TRUNCATE {bare}")
    harness.copy(f"COPY ({rows}) TO STDOUT (FORMAT binary)", file)
    harness.sql("CHECKPOINT")
    copy = f"COPY {bare} (model_id, {columns}) FROM STDIN (FORMAT binary)"
    return lambda: harness.copy(copy, file)


def _copy_out(folder: Path, count: int) -> Callable[[], None]:
    """The imported partition by one bare COPY to a file, which is on the disk afterwards."""
    rows, file = f"SELECT image_id, vector FROM {_partition(count)}", folder / "copied"

    def run() -> None:
        harness.copy(f"COPY ({rows}) TO STDOUT (FORMAT binary)", file)
        with file.open("rb+") as written:
            os.fsync(written.fileno())

    return run


def _partition(name: int | str) -> str:
    from retrieval.embedding.models import EmbeddingModel

    return f"retrieval_embedding_{EmbeddingModel.objects.get(name=str(name)).pk}"


if __name__ == "__main__":
    packages = ("Django", "numpy", "pyarrow", "psycopg2-binary", "pgvector")
    title = "Embeddings from files and to files"
    harness.run(main, title, packages, images=200_000, dimension=1024, repeats=2)

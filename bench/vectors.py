"""How fast embeddings come in from files and go out: `python -m bench.vectors`.

Made-up embeddings are in files of clip-retrieval's layout, which name the images as INQUIRE's do:
by a path without a suffix, in another order than their ids. `import_embeddings` is compared with a
bare binary COPY of the same rows into a partition of the same kind, `export_embeddings` with a bare
binary COPY of that partition to a file; a fifth of the rows shows how memory grows. What came
in and went out is compared bit for bit.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from bench import harness
from bench.rows import STEP, clustered, make_images, make_species

HEAD: Final = ("What", "Vectors", "Seconds", "Vectors a second", "× bare COPY", "Peak memory")
PER_FILE: Final = 1_000_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 if the vectors that came in or went out aren't those of the files."""
    options = harness.parse(
        "vectors", __doc__, arguments, images=200_000, dimension=1024, repeats=2
    )
    count, few = options.images, options.images // 5
    with (
        harness.temporary_folder("vectors") as folder,
        harness.process(folder / "var", migrate=True) as database,
    ):

        def measured(what: Any, path: Path) -> dict[str, Any]:
            harness.log(f"{what.__name__.strip('_')} {path.name} …")
            database(harness.sql, "CHECKPOINT")
            with harness.process(folder / "var") as child:
                found: dict[str, Any] = child(what, path)
            return found

        def fastest(what: Any, path: Path) -> dict[str, Any]:
            runs = [measured(what, path) for _ in range(options.repeats)]
            return min(runs, key=lambda run: float(run["seconds"]))

        harness.log(f"Making {count:,} images and their embeddings …")
        database(_make_images, count, options.dimension)
        for number in (count, few):
            database(_make_files, folder / str(number), number, options.dimension)
        came = fastest(_import, folder / str(count))
        again = measured(_import_again, folder / str(count))
        bare_in = fastest(_copy_in, folder / f"copied.{count}")
        came_few = measured(_import, folder / str(few))
        bare_out = fastest(_copy_out, folder / f"copied.{count}")
        went = fastest(_export, folder / f"exported.{count}")
        went_few = measured(_export, folder / f"exported.{few}")
        right = np.array_equal(
            _vectors(folder / str(count)), _vectors(folder / f"exported.{count}")[_order(count) - 1]
        )
    matching = {"seconds": came["matching"]}
    rows = [
        _row("bare binary COPY into a partition", count, bare_in, bare_in),
        _row("`import_embeddings`", count, came, bare_in),
        _row("of that: finding each row's image", count, matching, bare_in),
        _row("`import_embeddings` again, all there", count, again, bare_in),
        _row("`import_embeddings` of a fifth", few, came_few),
        _row("bare binary COPY of the partition to a file", count, bare_out, bare_out),
        _row("`export_embeddings`", count, went, bare_out),
        _row("`export_embeddings` of a fifth", few, went_few),
    ]
    equal = "equal to the files, bit for bit." if right else "**not equal to the files.**"
    print(
        harness.section(
            "Embeddings from files and to files",
            options.command,
            ("Django", "numpy", "pyarrow", "psycopg2-binary", "pgvector"),
            f"{options.dimension:,} dimensions, float16; the fastest of {options.repeats} runs.",
            harness.table(HEAD, rows),
            f"What came in and went out again is {equal}",
        )
    )
    stored = (came["stored"], again["stored"], again["present"]) == (count, 0, count)
    return 0 if right and stored else 1


def _row(
    name: str, count: int, run: dict[str, Any], bare: dict[str, Any] | None = None
) -> list[str]:
    spent = run["seconds"]
    ratio = f"{spent / bare['seconds']:.2f}" if bare else ""
    peak = harness.megabytes(run["peak"]) if "peak" in run else ""
    return [name, f"{count:,}", f"{spent:.2f}", f"{count / spent:,.0f}", ratio, peak]


def _order(count: int) -> np.ndarray:
    """The images' ids (count,), 1 to `count`, in the order of the files."""
    return np.arange(count, dtype=np.int64) * STEP % count + 1


def _vectors(folder: Path) -> np.ndarray:
    """All vectors (n, d) of a layout's files, read by NumPy alone."""
    return np.concatenate([np.load(path) for path in sorted((folder / "img_emb").iterdir())])


def _make_images(count: int, dimension: int) -> None:
    from retrieval.embedding.embedding_models import embedding_model_get_or_create

    embedding_model_get_or_create(name="bare", dimension=dimension)
    make_species(1)
    make_images(1, count)
    harness.sql("VACUUM ANALYZE")


def _make_files(folder: Path, count: int, dimension: int) -> None:
    """Write the embeddings of images 1 to `count`, as published ones name them."""
    import pyarrow as pa

    from retrieval.embedding.files import METADATA_SCHEMA, LayoutWriter

    paths = dict(
        harness.sql("SELECT id, regexp_replace(file_name, '[.]jpg$', '') FROM retrieval_image")
    )
    ids = _order(count).tolist()
    with LayoutWriter(
        folder, rows=count, dimension=dimension, dtype="float16", per_file=PER_FILE
    ) as writer:
        first = 0
        for vectors in clustered(count, dimension, seed=11):
            names = [paths[number] for number in ids[first : first + len(vectors)]]
            columns = {"image_path": pa.array(names)}
            arrays = [
                columns.get(field.name, pa.nulls(len(names), field.type))
                for field in METADATA_SCHEMA
            ]
            writer.write(vectors, pa.table(arrays, schema=METADATA_SCHEMA))
            first += len(vectors)


def _import(path: Path, *, empty: bool = True) -> dict[str, Any]:
    from retrieval.embedding.importing import import_embeddings

    if empty:
        harness.sql(f"TRUNCATE retrieval_embedding_{_model(path.name).pk}")
    stages = [time.perf_counter()]
    report = import_embeddings(
        model_name=path.name,
        directory=path,
        on_stage=lambda text: stages.append(time.perf_counter()),
    )
    # The stages are the files, the columns, all rows, and storing.
    return {
        "seconds": time.perf_counter() - stages[0],
        "matching": stages[4] - stages[2],
        "stored": report.stored,
        "present": report.present,
        "peak": harness.peak_bytes(),
    }


def _import_again(path: Path) -> dict[str, Any]:
    return _import(path, empty=False)


def _export(path: Path) -> dict[str, Any]:
    from retrieval.embedding.exporting import export_embeddings

    began = time.perf_counter()
    export_embeddings(
        model=_model(path.suffix[1:]), directory=path, replace=True, per_file=PER_FILE
    )
    return {"seconds": time.perf_counter() - began, "peak": harness.peak_bytes()}


def _copy_in(path: Path) -> dict[str, Any]:
    """The imported rows by one bare COPY into another model's empty partition."""
    from django.db import connection

    source, bare = _model(path.suffix[1:]), _model("bare")
    columns = "image_id, created_at, vector"
    harness.sql(f"TRUNCATE retrieval_embedding_{bare.pk}")
    with connection.cursor() as cursor:
        with path.open("wb") as file:
            cursor.copy_expert(
                f"COPY (SELECT {bare.pk}::bigint, {columns} FROM retrieval_embedding_{source.pk})"
                " TO STDOUT (FORMAT binary)",
                file,
            )
        harness.sql("CHECKPOINT")
        copy = f"COPY retrieval_embedding_{bare.pk} (model_id, {columns}) FROM STDIN"
        with path.open("rb") as file:
            return {
                "seconds": harness.seconds(
                    cursor.copy_expert, f"{copy} (FORMAT binary)", file, 1 << 20
                )
            }


def _copy_out(path: Path) -> dict[str, Any]:
    """The imported partition by one bare COPY to a file, which is on the disk afterwards."""
    from django.db import connection

    model = _model(path.suffix[1:])
    began = time.perf_counter()
    with path.open("wb") as file, connection.cursor() as cursor:
        cursor.copy_expert(
            f"COPY (SELECT image_id, vector FROM retrieval_embedding_{model.pk})"
            " TO STDOUT (FORMAT binary)",
            file,
        )
        file.flush()
        os.fsync(file.fileno())
    return {"seconds": time.perf_counter() - began}


def _model(name: str) -> Any:
    from retrieval.embedding.embedding_models import embedding_model_get_or_create
    from retrieval.embedding.models import EmbeddingModel

    dimension = EmbeddingModel.objects.get(name="bare").dimension
    return embedding_model_get_or_create(name=name, dimension=dimension)


if __name__ == "__main__":
    sys.exit(main())

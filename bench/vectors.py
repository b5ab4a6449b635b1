"""How fast embeddings come in and go out: `python -m bench.vectors`.

Made-up images stand in a database of their own, and made-up embeddings of them in files of
clip-retrieval's layout, which name the images as INQUIRE's do: by a path without a suffix, in
another order than their ids. `import_embeddings` stores them, beside a bare binary COPY of the same
rows, in the same order, into a partition of the same kind with the same constraints, indexes and
triggers; `export_embeddings` writes them, beside a bare binary COPY of that partition to a file.
Each run is a process of its own, which tells its peak memory; imports and exports of a fifth of the
rows show whether that grows. What came in and went out is compared bit for bit.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from bench.figures import grid, machine
from bench.own_state import tell, use_state
from bench.ranking_rows import clustered

PACKAGES: Final = ("Django", "numpy", "pyarrow", "psycopg2-binary", "pgvector")
HEAD: Final = ("What", "Vectors", "Seconds", "Vectors a second", "× bare COPY", "Peak memory")
PER_FILE: Final = 1_000_000
#: Prime to every number of images asked for: the order of the files.
STEP: Final = 15_485_863
_SEED: Final = 11


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 if the vectors that came in or went out aren't those of the files."""
    parser = argparse.ArgumentParser(prog="python -m bench.vectors", description=__doc__)
    parser.add_argument("--images", type=int, default=200_000)
    parser.add_argument("--dimension", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=2, help="of which the fastest counts")
    parser.add_argument("--folder", type=Path, help="where files and database are made and deleted")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        var_dir, what, path = options.child
        use_state(Path(var_dir))
        print(json.dumps(_measured(what, Path(path), options.dimension)))
        return 0
    with tempfile.TemporaryDirectory(prefix="bench-vectors-", dir=options.folder) as folder:
        return _measure(Path(folder), options)


def _measure(folder: Path, options: argparse.Namespace) -> int:
    var_dir = folder / "var"
    use_state(var_dir)
    from django.core.management import call_command
    from django.db import connection

    from annotator.embedded_postgres import embedded_postgres

    images, dimension = options.images, options.dimension
    few = max(1, images // 5)

    def child(what: str, path: Path) -> dict[str, Any]:
        tell(f"{what}: {path.name} …")
        with connection.cursor() as cursor:
            cursor.execute("CHECKPOINT")
        return _child(var_dir, what, path, dimension)

    def best(what: str, path: Path) -> dict[str, Any]:
        runs = [child(what, path) for _ in range(options.repeats)]
        return min(runs, key=lambda run: float(run["seconds"]))

    try:
        tell(f"Making {images:,} images and their embeddings …")
        call_command("migrate", verbosity=0)
        _images_make(images)
        for count in (images, few):
            _files_make(folder / str(count), count, dimension)
        bare_in = best("copy_in", folder / str(images))
        came = best("import", folder / str(images))
        again = child("import_again", folder / str(images))
        came_few = child("import", folder / str(few))
        bare_out = best("copy_out", folder / f"copied.{images}")
        went = best("export", folder / f"exported.{images}")
        went_few = child("export", folder / f"exported.{few}")
        tell("Comparing …")
        right = _equal(folder / str(images), folder / f"exported.{images}", images)
    finally:
        connection.close()
        embedded_postgres(var_dir).leave(wait=True)
    print(f"## Embeddings from files and to files\n\n{machine(PACKAGES)}\n")
    print(f"`python -m bench.vectors --images {images} --dimension {dimension}`")
    print(f"({dimension:,} dimensions, float16; the fastest of {options.repeats} runs)\n")
    rows = [
        _row("bare binary COPY into a partition", images, bare_in, bare_in),
        _row("`import_embeddings`", images, came, bare_in),
        _row("of that: finding each row's image", images, {"seconds": came["matching"]}, bare_in),
        _row("`import_embeddings` again, all there", images, again, bare_in),
        _row("`import_embeddings` of a fifth", few, came_few, None),
        _row("bare binary COPY of the partition to a file", images, bare_out, bare_out),
        _row("`export_embeddings`", images, went, bare_out),
        _row("`export_embeddings` of a fifth", few, went_few, None),
    ]
    print(grid(HEAD, rows))
    print(
        "\nWhat came in and went out again is "
        + ("equal to the files, bit for bit." if right else "**not equal to the files.**")
    )
    stored = came["stored"] == images and again["stored"] == 0 and again["present"] == images
    return 0 if right and stored else 1


def _row(
    name: str, count: int, run: dict[str, Any], bare: dict[str, Any] | None
) -> tuple[str, ...]:
    seconds = run["seconds"]
    return (
        name,
        f"{count:,}",
        f"{seconds:.2f}",
        f"{count / seconds:,.0f}",
        f"{seconds / bare['seconds']:.2f}" if bare else "",
        f"{run['megabytes']:.0f} MB" if "megabytes" in run else "",
    )


def _images_make(count: int) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO retrieval_image (id, dataset, source_id, file_name, sha256, format, width,"
            " height, size_bytes, license, license_url, rights_holder, created_at)"
            " SELECT i, 'rows', i::text,"
            " 'train/' || lpad((i %% 10000)::text, 5, '0') || '_Animalia_Chordata_Aves/'"
            " || md5(i::text)::uuid || '.jpg', md5(i::text), 'JPEG', 500, 375, 60000, '', '', '',"
            " now() FROM generate_series(1, %s) i",
            [count],
        )
        cursor.execute("VACUUM ANALYZE retrieval_image")


def _order(count: int) -> np.ndarray:
    """The images' ids (count,), 1 to `count`, in the order of the files."""
    return np.arange(count, dtype=np.int64) * STEP % count + 1


def _batches(count: int, dimension: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Image ids (n,) and vectors (n, dimension) in the order of the files."""
    ids, first = _order(count), 0
    for vectors in clustered(count, dimension, seed=_SEED):
        yield ids[first : first + len(vectors)], vectors
        first += len(vectors)


def _files_make(folder: Path, count: int, dimension: int) -> None:
    """Write the embeddings of images 1 to `count`, as published ones name them."""
    import pyarrow as pa
    from django.db import connection

    from retrieval.embedding_files import METADATA_SCHEMA, LayoutWriter

    with LayoutWriter(
        folder, rows=count, dimension=dimension, dtype="float16", per_file=PER_FILE
    ) as writer:
        for ids, vectors in _batches(count, dimension):
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT i.id, regexp_replace(i.file_name, '[.]jpg$', '') FROM retrieval_image i"
                    " WHERE i.id = ANY(%s)",
                    [ids.tolist()],
                )
                paths = dict(cursor.fetchall())
            nothing = pa.nulls(len(ids), pa.string())
            names = pa.array([paths[number] for number in ids.tolist()])
            numbers = pa.nulls(len(ids), pa.int64())
            columns = [numbers, nothing, nothing, names, nothing]
            writer.write(vectors, pa.table(columns, schema=METADATA_SCHEMA))


def _child(var_dir: Path, what: str, path: Path, dimension: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.vectors", "--dimension", str(dimension)]
    done = subprocess.run(
        [*command, "--child", str(var_dir), what, str(path)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _measured(what: str, path: Path, dimension: int) -> dict[str, Any]:
    """What a process that does only this measured of itself."""
    from django.db import connection

    connection.ensure_connection()
    if what == "copy_in":
        return _copy_in(path, dimension)
    if what == "copy_out":
        return _copy_out(path)
    if what == "import":
        _empty_model(f"imported {path.name}", dimension)
    found = _export(path) if what == "export" else _import(path)
    found["megabytes"] = _peak_megabytes()
    return found


def _peak_megabytes() -> float:
    """This process's highest resident memory; getrusage would count its parent's at its birth."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def _empty_model(name: str, dimension: int) -> Any:
    """A model of that name with an empty partition."""
    from django.db import connection

    from retrieval.services.embedding_models import embedding_model_get_or_create

    model = embedding_model_get_or_create(name=name, dimension=dimension)
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE retrieval_embedding_{model.pk}")
    return model


def _copy_in(path: Path, dimension: int) -> dict[str, Any]:
    """The rows of the files by one bare COPY, from a file that holds them as it wants them."""
    from django.db import connection

    model = _empty_model("bare", dimension)
    ready = path.with_name("ready.copy")
    _copy_file_make(ready, model.pk, int(path.name), dimension)
    began = time.perf_counter()
    with ready.open("rb") as file, connection.cursor() as cursor:
        cursor.copy_expert(
            f"COPY retrieval_embedding_{model.pk} (model_id, image_id, created_at, vector)"
            " FROM STDIN (FORMAT binary)",
            file,
            1 << 20,
        )
    seconds = time.perf_counter() - began
    ready.unlink()
    return {"seconds": seconds}


def _copy_file_make(path: Path, model_id: int, count: int, dimension: int) -> None:
    from retrieval.binary_copy import END, HEADER, new_rows, row_layout

    layout = row_layout(["model_id", "image_id", "created_at"], dimension=dimension)
    with path.open("wb") as file:
        file.write(HEADER)
        for ids, vectors in _batches(count, dimension):
            rows = new_rows(layout, len(ids))
            rows["model_id"], rows["image_id"], rows["vector"] = model_id, ids, vectors
            file.write(rows.tobytes())
        file.write(END)


def _import(path: Path) -> dict[str, Any]:
    from retrieval.services.embedding_import import import_embeddings

    stages = [time.perf_counter()]
    report = import_embeddings(
        model_name=f"imported {path.name}",
        directory=path,
        on_stage=lambda text: stages.append(time.perf_counter()),
    )
    # Looking at the files, at the columns, at all rows, and storing.
    return {
        "seconds": time.perf_counter() - stages[0],
        "matching": stages[4] - stages[2],
        "stored": report.stored,
        "present": report.present,
    }


def _copy_out(path: Path) -> dict[str, Any]:
    """The imported partition by one bare COPY to a file."""
    from django.db import connection

    from retrieval.models import EmbeddingModel

    model = EmbeddingModel.objects.get(name=f"imported {path.suffix[1:]}")
    began = time.perf_counter()
    with path.open("wb") as file, connection.cursor() as cursor:
        cursor.copy_expert(
            f"COPY (SELECT image_id, vector FROM retrieval_embedding_{model.pk})"
            " TO STDOUT (FORMAT binary)",
            file,
        )
        # An export is on the disk when it appears.
        file.flush()
        os.fsync(file.fileno())
    seconds = time.perf_counter() - began
    path.unlink()
    return {"seconds": seconds}


def _export(path: Path) -> dict[str, Any]:
    from retrieval.models import EmbeddingModel
    from retrieval.services.embedding_export import export_embeddings

    model = EmbeddingModel.objects.get(name=f"imported {path.suffix[1:]}")
    began = time.perf_counter()
    export_embeddings(model=model, directory=path, replace=True, per_file=PER_FILE)
    return {"seconds": time.perf_counter() - began}


def _equal(files: Path, exported: Path, count: int) -> bool:
    """Whether the exported vectors, which are by image id, are those of the files."""
    ids = _order(count)
    for first in range(0, count, 10_000):
        places = np.arange(first, min(first + 10_000, count))
        if not np.array_equal(_gathered(files, places), _gathered(exported, ids[places] - 1)):
            return False
    return True


def _gathered(folder: Path, places: np.ndarray) -> np.ndarray:
    """Vectors (n, d) at any positions, read by numpy alone."""
    paths = sorted((folder / "img_emb").iterdir())
    arrays = [np.load(path, mmap_mode="r") for path in paths]
    found = np.empty((len(places), arrays[0].shape[1]), arrays[0].dtype)
    for number, array in enumerate(arrays):
        here = places // PER_FILE == number
        found[here] = array[places[here] % PER_FILE]
    return found


if __name__ == "__main__":
    sys.exit(main())

"""The layout of files of embeddings: what is written is read, and every damage is named."""

from __future__ import annotations

import io
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from retrieval.embedding.files import (
    METADATA_SCHEMA,
    LayoutRefused,
    LayoutWriter,
    as_text,
    layout_read,
)
from tests.retrieval.layouts import write_part

pytestmark = pytest.mark.pure

VECTORS = np.arange(12, dtype=np.float32).reshape(4, 3)


def metadata(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table(
        [
            pa.array(numbers, pa.int64()),
            pa.array([str(n) for n in numbers]),
            pa.array(["toy"] * count),
            pa.array([f"train/{n}.jpg" for n in numbers]),
            pa.array(["Ursus arctos"] * count),
        ],
        schema=METADATA_SCHEMA,
    )


def write(folder: Path, *, rows: int, per_file: int, at_a_time: int, dtype: str = "float16") -> Any:
    vectors = np.random.default_rng(2).normal(size=(rows, 3)).astype(np.float16)
    with LayoutWriter(folder, rows=rows, dimension=3, dtype=dtype, per_file=per_file) as writer:
        for first in range(0, rows, at_a_time):
            some = vectors[first : first + at_a_time]
            writer.write(some, metadata(first, len(some)))
    return vectors


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_numpy_and_pandas_read_what_is_written(tmp_path: Path, dtype: str) -> None:
    vectors = write(tmp_path, rows=23, per_file=2, at_a_time=5, dtype=dtype)
    arrays = sorted((tmp_path / "img_emb").glob("*.npy"))
    tables = sorted((tmp_path / "metadata").glob("*.parquet"))
    # Sorted by name, as clip-retrieval and INQUIRE's code read them, they are in order.
    assert [path.name for path in arrays][::11] == ["img_emb_00.npy", "img_emb_11.npy"]
    read = [np.load(path) for path in arrays]
    assert {one.dtype for one in read} == {np.dtype(dtype)}
    assert np.array_equal(np.concatenate(read), vectors)
    frame = pd.concat(map(pd.read_parquet, tables))
    assert frame["image_id"].tolist() == list(range(23))
    assert frame["image_path"].iloc[22] == "train/22.jpg"


def test_what_is_written_is_read_back_by_position(tmp_path: Path) -> None:
    vectors = write(tmp_path, rows=23, per_file=9, at_a_time=4)
    layout = layout_read(tmp_path)
    assert (layout.rows, layout.dimension, len(layout.parts)) == (23, 3, 3)
    assert layout.columns == ("image_id", "source_id", "dataset", "image_path", "species")
    assert np.array_equal(layout.vectors(np.array([9, 10, 11])), vectors[9:12])
    assert np.array_equal(layout.vectors(np.array([18, 20, 22])), vectors[[18, 20, 22]])
    assert layout.name(0) == "img_emb_0.npy row 0"
    assert layout.name(22) == "img_emb_2.npy row 4"
    batches = list(layout.metadata(["source_id"], batch=4))
    assert [first for first, _ in batches] == [0, 4, 8, 9, 13, 17, 18, 22]
    named = [name for _, rows in batches for name in rows.column("source_id").to_pylist()]
    assert named == [str(n) for n in range(23)]
    sample = [rows.to_pylist() for _, rows in layout.metadata(["source_id"], batch=2, at_most=3)]
    assert [[row["source_id"] for row in rows] for rows in sample] == [
        *(["0", "1"], ["2"], ["9", "10"], ["11"], ["18", "19"], ["20"])
    ]  # fmt: skip


def test_a_writer_holds_to_what_it_announced(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="1 of the vectors announced were not written"):
        write_some(tmp_path / "few", announced=5, written=4)
    with pytest.raises(ValueError, match="doesn't fit"):
        write_some(tmp_path / "many", announced=3, written=4)


def write_some(folder: Path, *, announced: int, written: int) -> None:
    with LayoutWriter(folder, rows=announced, dimension=3, dtype="float16", per_file=9) as writer:
        writer.write(np.zeros((written, 3), np.float16), metadata(0, written))


def test_arrays_of_other_formats_and_orders_are_read(tmp_path: Path) -> None:
    kinds = [np.dtype("<f2"), np.dtype(">f4"), np.dtype("<f8")]
    for number, kind in enumerate(kinds):
        write_part(tmp_path, number, np.asfortranarray(VECTORS.astype(kind)), {"key": list("abcd")})
    layout = layout_read(tmp_path)
    assert [part.order for part in layout.parts] == ["F", "F", "F"]
    for first in (0, 4, 8):
        assert np.array_equal(layout.vectors(np.array([first + 1, first + 2])), VECTORS[1:3])


def test_numbers_not_names_put_the_files_in_order(tmp_path: Path) -> None:
    for number in (10, 9):
        write_part(tmp_path, number, VECTORS, {"key": list("abcd"), f"only_{number}": [1, 2, 3, 4]})
    (tmp_path / "img_emb" / "._img_emb_9.npy").write_bytes(b"left by another system")
    layout = layout_read(tmp_path)
    assert [part.vectors.name for part in layout.parts] == ["img_emb_9.npy", "img_emb_10.npy"]
    assert layout.columns == ("key",)


VECTORS_FILE, METADATA_FILE = "img_emb/img_emb_0.npy", "metadata/metadata_0.parquet"


def saved(array: np.ndarray, **options: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def rows(count: int) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"key": list("abcdefgh")[:count]}), file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({VECTORS_FILE: saved(VECTORS)[:-1]}, r"breaks off: it has 175 bytes, and .* says 176"),
        ({VECTORS_FILE: saved(VECTORS)[:40]}, r"is no .npy file"),
        ({VECTORS_FILE: saved(VECTORS) + b"\0"}, r"goes on behind its last vector"),
        ({VECTORS_FILE: b"<html>Not found</html>"}, r"is no .npy file"),
        ({VECTORS_FILE: saved(np.array([[None]] * 4), allow_pickle=True)},
         r"holds pickled Python objects, which are never loaded"),
        ({VECTORS_FILE: pickle.dumps(VECTORS)}, r"is no .npy file"),
        ({VECTORS_FILE: saved(VECTORS.astype(np.int8))}, r"holds int8; float16, float32 or"),
        ({VECTORS_FILE: saved(VECTORS.ravel())}, r"has the shape \(12,\); \(images, dimension\)"),
        ({"img_emb/img_emb_1.npy": saved(VECTORS[:, :2]), "metadata/metadata_1.parquet": rows(4)},
         r"img_emb_1.npy: has vectors of 2 numbers, those of .* have 3"),
        ({METADATA_FILE: rows(3)}, r"has 4 vectors, and metadata_0.parquet names 3 images"),
        ({METADATA_FILE: None}, r"img_emb_0.npy: has no file of the same number in metadata/"),
        ({"metadata/metadata_1.parquet": rows(3)}, r"1.parquet: has no file of the same number"),
        ({METADATA_FILE: rows(4)[:-10]}, r"metadata_0.parquet: is no Parquet file"),
        ({"img_emb/img_emb_00.npy": saved(VECTORS)}, r"has the number of"),
    ],
)  # fmt: skip
def test_each_damage_is_named_with_its_file(
    tmp_path: Path, files: dict[str, bytes | None], text: str
) -> None:
    write_part(tmp_path, 0, VECTORS, {"key": list("abcd")})
    for name, content in files.items():
        (tmp_path / name).unlink() if content is None else (tmp_path / name).write_bytes(content)
    with pytest.raises(LayoutRefused, match=text):
        layout_read(tmp_path)


@pytest.mark.parametrize("name", ["img_emb/img_emb_0.npy", "metadata/metadata_0.parquet"])
def test_a_pipe_is_refused_by_name(tmp_path: Path, name: str) -> None:
    write(tmp_path, rows=4, per_file=4, at_a_time=4)
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with pytest.raises(LayoutRefused, match=f"{name}.*Not a regular file"):
        layout_read(tmp_path)


def test_a_folder_without_embeddings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LayoutRefused, match=r"holds no img_emb/img_emb_0.npy"):
        layout_read(tmp_path / "nothing")
    write_part(tmp_path, 0, VECTORS[:0], {"key": pa.array([], pa.string())})
    with pytest.raises(LayoutRefused, match="holds no vectors"):
        layout_read(tmp_path)


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (pa.array([7, None]), ["7", None]),
        (pa.array([7.0, None]), ["7", None]),
        (pa.array(["a", None], pa.large_string()), ["a", None]),
        (pa.array([b"train/\xc3\xa9", b""]), ["train/é", ""]),
        (pa.array(["a", "a"]).dictionary_encode(), ["a", "a"]),
    ],
)
def test_names_of_any_kind_become_text(column: pa.Array, text: list[str | None]) -> None:
    assert as_text(column).to_pylist() == text


@pytest.mark.parametrize(
    "column", [pa.array([0.5]), pa.array([["a"]]), pa.array(["a\0b"]), pa.array([b"\xff"])]
)
def test_columns_that_name_nothing_are_refused(column: pa.Array) -> None:
    with pytest.raises(ValueError, match=r"names|NUL|UTF8|truncated|Float"):
        as_text(column)

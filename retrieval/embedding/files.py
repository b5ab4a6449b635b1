"""Files of embeddings, in the layout that clip-retrieval writes and INQUIRE's authors publish.

    img_emb/img_emb_0.npy          (n, d): one vector a row, float16 or float32
    metadata/metadata_0.parquet    n rows: row i names the image of vector i

and so on with 1, 2, … (clip-retrieval: `OutputSink` in clip_inference/writer.py; INQUIRE:
`EmbeddingProvider` and `ParquetMetadataProvider` in src/utils.py). Numbers may be padded with
zeros. Rows are counted on from file to file, in the order of the numbers; such a count is called a
position here. Nothing is unpickled, and memory doesn't grow with the files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.errors import Refused
from core.files import open_regular
from core.text import printable

VECTORS_FOLDER: Final = "img_emb"
METADATA_FOLDER: Final = "metadata"
_VECTORS: Final = re.compile(r"img_emb_(\d+)\.npy")
_METADATA: Final = re.compile(r"metadata_(\d+)\.parquet")
_HEADERS: Final = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_WIDTHS: Final = (2, 4, 8)

METADATA_SCHEMA: Final = pa.schema(
    [
        ("image_id", pa.int64()),
        ("source_id", pa.string()),
        ("dataset", pa.string()),
        ("image_path", pa.string()),
        ("species", pa.string()),
    ]
)
"""What `LayoutWriter` says of each image; clip-retrieval's own column is image_path."""


class LayoutRefused(Refused):
    """The files are not what they should be; the text names the file and says why."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(printable(f"{path}: {reason}"))
        self.path = path
        self.reason = reason


@dataclass(frozen=True, slots=True)
class LayoutPart:
    """A pair of files."""

    vectors: Path
    metadata: Path
    first: int
    """Position of its first row."""
    rows: int
    dtype: np.dtype[Any]
    offset: int
    """Where the numbers begin in the file of vectors, in bytes."""
    order: Literal["C", "F"]
    """"C" or, column by column, "F"."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A checked folder of embeddings."""

    directory: Path
    parts: tuple[LayoutPart, ...]
    rows: int
    dimension: int
    columns: tuple[str, ...]
    """Columns that every file of metadata has, in the order of the first."""

    def part_of(self, position: int) -> LayoutPart:
        """The pair of files that holds a position."""
        return next(part for part in self.parts if position < part.first + part.rows)

    def name(self, position: int) -> str:
        """A position for people: file and row, counted from 0."""
        part = self.part_of(position)
        return f"{part.vectors.name} row {position - part.first}"

    def vectors(self, positions: np.ndarray) -> np.ndarray:
        """The vectors (n, d) at these positions, which lie in one part, as the file has them.

        The file is mapped for the moment of this call only, so that its pages don't count as this
        process's memory.
        """
        part = self.part_of(int(positions[0]))
        shape = (part.rows, self.dimension)
        mapped: np.memmap[Any, Any] = np.memmap(
            part.vectors,
            part.dtype,
            "r",
            part.offset,
            shape,
            order=part.order,
        )
        rows = positions - part.first
        first, last = int(rows[0]), int(rows[-1])
        whole = last - first + 1 == len(rows)
        return np.array(mapped[first : last + 1] if whole else mapped[rows], order="C")

    def metadata(
        self, columns: Sequence[str], *, batch: int, at_most: int | None = None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the position of the first row, and the rows, of each batch of some columns; of each
        part at most `at_most` rows from its beginning.

        LayoutRefused: a file breaks off or is damaged.
        """
        for part in self.parts:
            position, end = part.first, part.first + min(part.rows, at_most or part.rows)
            try:
                with pq.ParquetFile(part.metadata) as file:
                    for rows in file.iter_batches(batch_size=batch, columns=list(columns)):
                        if position < end:
                            yield position, rows.slice(0, end - position)
                        position += rows.num_rows
                        if position >= end:
                            break
            except (pa.ArrowException, OSError) as error:
                raise LayoutRefused(part.metadata, f"cannot be read: {error}") from error


def layout_read(directory: Path) -> Layout:
    """Look at every file's shape and size, and read none of the vectors.

    LayoutRefused: there are no files, one has no pair, a file of vectors isn't a whole
    two-dimensional array of floats, dimensions differ, or a file's metadata has another number of
    rows than its vectors.
    """
    vectors = _numbered(directory / VECTORS_FOLDER, _VECTORS)
    metadata = _numbered(directory / METADATA_FOLDER, _METADATA)
    if not vectors:
        raise LayoutRefused(directory, f"holds no {VECTORS_FOLDER}/img_emb_0.npy or the like")
    for number in sorted(vectors.keys() ^ metadata.keys()):
        alone = vectors.get(number) or metadata[number]
        folder = METADATA_FOLDER if number in vectors else VECTORS_FOLDER
        raise LayoutRefused(alone, f"has no file of the same number in {folder}/")
    parts: list[LayoutPart] = []
    columns: dict[str, None] | None = None
    dimension = first = 0
    for number in sorted(vectors):
        shape, dtype, offset, order = _array(vectors[number])
        if dimension and shape[1] != dimension:
            raise LayoutRefused(
                vectors[number],
                f"has vectors of {shape[1]} numbers, those of {parts[0].vectors.name} have "
                f"{dimension}",
            )
        dimension = shape[1]
        named, rows = _table(metadata[number])
        if rows != shape[0]:
            raise LayoutRefused(
                vectors[number],
                f"has {shape[0]} vectors, and {metadata[number].name} names {rows} images",
            )
        columns = dict.fromkeys(named if columns is None else [c for c in columns if c in named])
        parts.append(
            LayoutPart(vectors[number], metadata[number], first, rows, dtype, offset, order)
        )
        first += rows
    if not first:
        raise LayoutRefused(directory, "holds no vectors")
    return Layout(directory, tuple(parts), first, dimension, tuple(columns or ()))


def chunk_rows(dimension: int) -> int:
    """How many vectors are held at a time: about 40 MB of halves, and at most 20,000."""
    return max(1, min(20_000, 20_000 * 1024 // dimension))


def layout_paths(directory: Path) -> list[str]:
    """The files of a folder that belong to the layout, as paths below it."""
    return [
        f"{folder}/{path.name}"
        for folder, pattern in ((VECTORS_FOLDER, _VECTORS), (METADATA_FOLDER, _METADATA))
        for path in (directory / folder).glob("*")
        if pattern.fullmatch(path.name)
    ]


def _numbered(folder: Path, pattern: re.Pattern[str]) -> dict[int, Path]:
    by_number: dict[int, Path] = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        match = pattern.fullmatch(path.name)
        if match is None:
            continue
        if int(match[1]) in by_number:
            raise LayoutRefused(path, f"has the number of {by_number[int(match[1])].name}")
        by_number[int(match[1])] = path
    return by_number


def _array(path: Path) -> tuple[tuple[int, int], np.dtype[Any], int, Literal["C", "F"]]:
    """Shape, number format, offset and order of an .npy file, from its header and its size."""
    try:
        with open_regular(path) as file:
            read = _HEADERS.get(np.lib.format.read_magic(file))
            if read is None:
                raise ValueError("it is of a version that holds no plain numbers")
            shape, fortran, dtype = read(file)
            offset = file.tell()
            size = path.stat().st_size
    except (ValueError, OSError, EOFError) as error:
        raise LayoutRefused(path, f"is no .npy file: {error}") from error
    if dtype.hasobject:
        raise LayoutRefused(path, "holds pickled Python objects, which are never loaded")
    if dtype.kind != "f" or dtype.itemsize not in _WIDTHS:
        raise LayoutRefused(path, f"holds {dtype}; float16, float32 or float64 is needed")
    if len(shape) != 2 or shape[1] < 1:
        raise LayoutRefused(path, f"has the shape {shape}; (images, dimension) is needed")
    needed = offset + shape[0] * shape[1] * dtype.itemsize
    if size != needed:
        fault = "breaks off" if size < needed else "goes on behind its last vector"
        raise LayoutRefused(path, f"{fault}: it has {size} bytes, and its header says {needed}")
    return (shape[0], shape[1]), dtype, offset, "F" if fortran else "C"


def _table(path: Path) -> tuple[list[str], int]:
    try:
        with open_regular(path) as opened, pq.ParquetFile(opened) as file:
            return file.schema_arrow.names, file.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        raise LayoutRefused(path, f"is no Parquet file: {error}") from error


def as_text(column: pa.Array) -> pa.Array:
    """A column of names as text: whole numbers without a point, bytes as UTF-8, null as null.

    ValueError: a column of lists, fractions or something else that names nothing, or text with a
    NUL character.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    if pa.types.is_floating(kind):
        # pandas makes floats of whole numbers where some are missing.
        column, kind = column.cast(pa.float64()).cast(pa.int64()), pa.int64()
    textual = (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )
    if not textual and not pa.types.is_integer(kind) and not pa.types.is_null(kind):
        raise ValueError(f"holds {kind}, and no names")
    text = column.cast(pa.string())
    if pc.any(pc.match_substring(text, "\0")).as_py():
        raise ValueError("holds a NUL character")
    return text


class LayoutWriter:
    """Writes `rows` vectors and what names them, row after row, to files of `per_file` each.

    Use it as a context, and `write` so many rows as were announced: each array's header, which
    comes first, tells its length.
    """

    def __init__(
        self, directory: Path, *, rows: int, dimension: int, dtype: str, per_file: int
    ) -> None:
        self._directory = directory
        self._left = rows
        self._dimension = dimension
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._per_file = per_file
        self._room = 0
        self._number = -1
        self.files = -(-rows // per_file)
        self._array: Any = None
        self._table: pq.ParquetWriter | None = None
        for folder in (VECTORS_FOLDER, METADATA_FOLDER):
            (directory / folder).mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> LayoutWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._close()
        if kind is None and self._left:
            raise ValueError(f"{self._left} of the vectors announced were not written.")

    def write(self, vectors: np.ndarray, metadata: pa.Table) -> None:
        """Append vectors (n, d) and their n rows of METADATA_SCHEMA.

        ValueError: more rows than announced, or of another dimension.
        """
        if len(vectors) > self._left or vectors.shape[1:] != (self._dimension,):
            raise ValueError(f"{vectors.shape} doesn't fit: {self._left}, {self._dimension} left.")
        while len(vectors):
            if not self._room:
                self._next()
            count = min(self._room, len(vectors))
            self._array.write(np.ascontiguousarray(vectors[:count], dtype=self._dtype).data)
            assert self._table is not None
            self._table.write_table(metadata.slice(0, count))
            vectors, metadata = vectors[count:], metadata.slice(count)
            self._room -= count
            self._left -= count

    def _next(self) -> None:
        self._close()
        self._number += 1
        self._room = min(self._left, self._per_file)
        # Padded, so that readers that sort by name find them in order.
        number = str(self._number).zfill(len(str(self.files - 1)))
        self._array = (self._directory / VECTORS_FOLDER / f"img_emb_{number}.npy").open("wb")
        np.lib.format.write_array_header_1_0(
            self._array,
            {
                "descr": self._dtype.str,
                "fortran_order": False,
                "shape": (self._room, self._dimension),
            },
        )
        path = self._directory / METADATA_FOLDER / f"metadata_{number}.parquet"
        self._table = pq.ParquetWriter(path, METADATA_SCHEMA)

    def _close(self) -> None:
        if self._array is not None:
            self._array.close()
        if self._table is not None:
            self._table.close()

"""Stored rankings, one .npz a run with equal bytes for equal rankings; and uploads that wait to be
read.

    query_ids   (q,) int64, ascending
    offsets     (q + 1,) int64: the images of query i are [offsets[i], offsets[i + 1])
    image_ids   (n,) int64, best first within a query
    scores      (n,) float64

The arrays lie in the archive uncompressed, so that reading maps them into memory instead of copying
them; `numpy.load` reads the file as well.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from core import storage
from core.errors import Conflict
from evaluation.scoring.run_files import Ranking

#: The earliest date that a zip archive can hold, so that no clock gets into the bytes.
_NO_DATE: Final = (1980, 1, 1, 0, 0, 0)
_LOCAL_HEADER: Final = struct.Struct("<26xHH")
_CHUNK: Final = 1 << 20


class RunDamaged(Conflict):
    """A stored ranking is gone or not readable; the text says which."""


def save_run(path: Path, run: Mapping[int, Ranking]) -> str:
    """Write the rankings of a run, each as it is ordered; the SHA-256 of the file.

    The file appears whole or not at all, and replaces one that is there. OSError: the disk's.
    """
    query_ids = np.array(sorted(run), dtype=np.int64)
    rankings = [run[query_id] for query_id in query_ids.tolist()]
    sizes = [len(ranking.image_ids) for ranking in rankings]
    arrays = {
        "query_ids": query_ids,
        "offsets": np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))).astype(np.int64),
        "image_ids": _joined([ranking.image_ids for ranking in rankings], np.int64),
        "scores": _joined([ranking.scores for ranking in rankings], np.float64),
    }
    with storage.writing(path) as file:
        _write(file, arrays)
        file.seek(0)
        return _sha256(file)


def save_upload(path: Path, upload: BinaryIO) -> None:
    """Keep an upload as it came, whole or not at all. OSError: the disk's."""
    upload.seek(0)
    with storage.writing(path) as file:
        shutil.copyfileobj(upload, file, _CHUNK)


def load_run(path: Path) -> dict[int, Ranking]:
    """The rankings of a stored run by query id, ascending; read-only arrays mapped from the file.

    RunDamaged: the file is gone or is not one that `save_run` wrote.
    """
    try:
        with zipfile.ZipFile(path) as archive, path.open("rb") as file:
            query_ids, offsets, image_ids, scores = (
                _mapped(archive.getinfo(f"{name}.npy"), file, path)
                for name in ("query_ids", "offsets", "image_ids", "scores")
            )
    except FileNotFoundError:
        raise RunDamaged(f"{_short_path(path)} is missing: restore it from a backup.") from None
    except (OSError, ValueError, KeyError, struct.error, zipfile.BadZipFile) as error:
        text = f"{_short_path(path)} can't be read ({error}): restore it from a backup."
        raise RunDamaged(text) from error
    parts = [
        slice(begin, end)
        for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    ]
    return {
        query_id: Ranking(image_ids=image_ids[part], scores=scores[part])
        for query_id, part in zip(query_ids.tolist(), parts, strict=True)
    }


def _short_path(path: Path) -> str:
    """A ranking's path below VAR_DIR, for messages."""
    return f"runs/{path.name}"


def _joined(arrays: list[npt.NDArray[Any]], dtype: Any) -> npt.NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype=dtype), *arrays]).astype(dtype, copy=False)


def _write(file: BinaryIO, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=_NO_DATE)
            entry.create_system = 3
            # One form of the header for all sizes.
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)


def _mapped(entry: zipfile.ZipInfo, file: BinaryIO, path: Path) -> npt.NDArray[Any]:
    """One array of the archive, mapped from its place in the file."""
    file.seek(entry.header_offset)
    name_length, extra_length = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
    file.seek(name_length + extra_length, os.SEEK_CUR)
    np.lib.format.read_magic(file)
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    if not shape[0]:
        return np.zeros(shape, dtype=dtype)
    mapped = np.memmap(path, dtype=dtype, mode="r", offset=file.tell(), shape=shape)
    return mapped.view(np.ndarray)


def _sha256(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()

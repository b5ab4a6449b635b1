"""Writes small folders of embeddings as clip-retrieval does, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def write_part(folder: Path, number: int, vectors: np.ndarray, columns: dict[str, Any]) -> Path:
    """Write one pair of files; returns the folder."""
    for name in ("img_emb", "metadata"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    np.save(folder / f"img_emb/img_emb_{number}.npy", vectors)
    pq.write_table(pa.table(columns), folder / f"metadata/metadata_{number}.parquet")
    return folder

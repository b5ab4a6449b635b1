"""Images that stay where they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from retrieval.corpus.models import Image, ImageRoot
from retrieval.images.roots import image_root_get_or_create
from tests.retrieval.making import image_row


def rooted(number: int, root: ImageRoot, file_name: str, **fields: Any) -> Image:
    """An image at `file_name` below a root, as an import that reads no file makes it."""
    unknown = {"sha256": "", "format": "JPEG", "width": 40, "height": 30, "size_bytes": 0}
    return image_row(number, **{**unknown, "root": root, "file_name": file_name, **fields})


def folder_root(folder: Path, files: dict[str, bytes]) -> ImageRoot:
    """A folder with these files, as a root."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return image_root_get_or_create(location=str(folder))

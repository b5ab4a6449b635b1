"""Finding the files that a table means, however it writes their names."""

from __future__ import annotations

import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

from core.files import is_below
from retrieval.importing.folder import IMAGE_SUFFIXES

#: iNaturalist's id of an observation or a photo, or the address of a photo, in which its id is.
_ID: Final = re.compile(r"(\d{4,})|https?://\S*/photos/(\d{4,})(?:/\S*)?")


class FileIndex:
    """The files below a folder, listed once a name isn't found as it is."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def found(self, name: str) -> list[str]:
        """The paths below the folder of the files that a cell means; more than one only for an
        observation's id. Compared are the path as it is, or in another Unicode form, then in any
        case and without its suffix, then the file's own name, where only one file has it; then ids
        in names of files.
        """
        forms = {name, unicodedata.normalize("NFC", name), unicodedata.normalize("NFD", name)}
        if is_below(name) and any(os.path.isfile(self.root / form) for form in forms):
            return [name]
        key = _key(name.strip())
        for wanted in (key, f"*/{key.rpartition('/')[2]}"):
            if len(paths := self._by_key.get(wanted, [])) == 1:
                return paths
        found = _ID.fullmatch(name.strip())
        return self._by_id.get(found[1] or found[2], []) if found else []

    def count(self, name: str) -> int:
        """How many images a cell may mean: those of an id, else one."""
        return max(1, len(self.found(name))) if _ID.fullmatch(name.strip()) else 1

    def share(self, cells: Sequence[str]) -> float:
        """The share of the cells that aren't blank that means files."""
        filled = [cell for cell in cells if cell.strip()]
        return sum(1 for cell in filled if self.found(cell)) / max(1, len(filled))

    @cached_property
    def _paths(self) -> list[str]:
        paths = []
        for parent, folders, names in os.walk(self.root):
            folders[:] = [folder for folder in folders if not folder.startswith(".")]
            below = Path(parent).relative_to(self.root)
            paths += [(below / name).as_posix() for name in names if not name.startswith(".")]
        return sorted(paths)

    @cached_property
    def _by_key(self) -> dict[str, list[str]]:
        """Paths by their keys, images' also without suffixes, and by `*/` and those of the files'
        own names.
        """
        found = defaultdict[str, list[str]](list)
        for path in self._paths:
            stem, suffix = os.path.splitext(key := _key(path))
            for one in (key, stem) if suffix in IMAGE_SUFFIXES else (key,):
                found[one].append(path)
                found[f"*/{one.rpartition('/')[2]}"].append(path)
        return dict(found)

    @cached_property
    def _by_id(self) -> dict[str, list[str]]:
        found = defaultdict[str, list[str]](list)
        for path in self._paths:
            for number in set(re.findall(r"\d{4,}", Path(path).stem)):
                found[number].append(path)
        return dict(found)


def _key(path: str) -> str:
    return unicodedata.normalize("NFC", path.replace("\\", "/")).casefold().removeprefix("./")

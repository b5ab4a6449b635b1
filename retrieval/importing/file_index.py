"""Finding the files that a table means, however it writes their names."""

from __future__ import annotations

import os
import re
import unicodedata
from collections import defaultdict
from functools import cached_property
from pathlib import Path
from typing import Final

from core.files import is_below
from retrieval.importing.folder import IMAGE_SUFFIXES

#: Numbers in names of files that may be ids: short ones only count copies.
_NUMBER: Final = re.compile(r"\d{4,}")
#: iNaturalist's addresses of photos, in which the id stands.
_PHOTO: Final = re.compile(r"https?://\S*/photos/(\d+)(?:/\S*)?")
_FORMS: Final = ("NFC", "NFD")
_ADDRESS: Final = re.compile(r"https?://", re.IGNORECASE)


def is_address(text: str) -> bool:
    """Whether a text is a web address."""
    return _ADDRESS.match(text.strip()) is not None


class FileIndex:
    """The files below a folder, listed once a name isn't found as it is."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def found(self, name: str) -> list[str]:
        """The paths below the folder of the files that a cell means; more than one only for an
        observation's id. Compared are the path as it is, or in another Unicode form, then in any
        case, then without its suffix, then the file's own name, where only one file has it; for a
        number, or iNaturalist's address of a photo, the numbers in the names of files.
        """
        if self._is_file(name):
            return [name]
        name = name.strip()
        if photo := _PHOTO.fullmatch(name):
            return self._by_number.get(photo[1], [])
        key = _key(name)
        base = key.rpartition("/")[2]
        for index, wanted in (
            (self._by_path, key), (self._by_stem, key), (self._by_path, f"*/{base}"),
            (self._by_stem, f"*/{base}"),
        ):  # fmt: skip
            if len(paths := index.get(wanted, [])) == 1:
                return paths
        return self._by_number.get(name, []) if _NUMBER.fullmatch(name) else []

    def count(self, name: str) -> int:
        """How many images a cell may mean: those of an id, else one."""
        is_id = _NUMBER.fullmatch(name.strip()) or _PHOTO.fullmatch(name.strip())
        return max(1, len(self.found(name))) if is_id else 1

    def _is_file(self, name: str) -> bool:
        if not is_below(name):
            return False
        forms = dict.fromkeys((name, *(unicodedata.normalize(kind, name) for kind in _FORMS)))
        try:
            return any((self.root / form).is_file() for form in forms)
        except (OSError, ValueError):
            return False

    @cached_property
    def _paths(self) -> list[str]:
        return [
            Path(parent, name).relative_to(self.root).as_posix()
            for parent, folders, names in os.walk(self.root)
            if _visible(folders)
            for name in sorted(names)
            if not name.startswith(".")
        ]

    @cached_property
    def _by_path(self) -> dict[str, list[str]]:
        """Paths by their keys, and by `*/` and the key of the file's own name."""
        return _indexed([(path, _key(path)) for path in self._paths])

    @cached_property
    def _by_stem(self) -> dict[str, list[str]]:
        """As `_by_path` without suffixes, for images alone: others have their names too."""
        stems = [(path, *os.path.splitext(_key(path))) for path in self._paths]
        return _indexed([(path, stem) for path, stem, end in stems if end in IMAGE_SUFFIXES])

    @cached_property
    def _by_number(self) -> dict[str, list[str]]:
        found = defaultdict[str, list[str]](list)
        for path in self._paths:
            for number in dict.fromkeys(_NUMBER.findall(Path(path).stem)):
                found[number].append(path)
        return dict(found)


def _visible(folders: list[str]) -> bool:
    """Leave hidden folders out of a walk, and go through the others by name."""
    folders[:] = sorted(folder for folder in folders if not folder.startswith("."))
    return True


def _key(path: str) -> str:
    return unicodedata.normalize("NFC", path.replace("\\", "/")).casefold().removeprefix("./")


def _indexed(keys: list[tuple[str, str]]) -> dict[str, list[str]]:
    found = defaultdict[str, list[str]](list)
    for path, key in keys:
        found[key].append(path)
        found[f"*/{key.rpartition('/')[2]}"].append(path)
    return dict(found)

"""What takes seconds to make and is kept between runs, below `.cache/`."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from annotator.postgres.guardian import locked
from tests import ROOT

FOLDER = ROOT / ".cache"
LAST = 3


def kept(name: str, version: str, sources: Iterable[Path], make: Callable[[Path], Path]) -> Path:
    """The folder that `make` gives, made once in an empty folder as long as `version` and `sources`
    are the same. The last few stay: another run with other settings may be using one.
    """
    digest = hashlib.sha256(version.encode())
    for path in sources:
        digest.update(path.name.encode() + path.read_bytes())
    FOLDER.mkdir(exist_ok=True)
    with locked(FOLDER / f"{name}.lock"):
        folder = FOLDER / f"{name}-{digest.hexdigest()[:16]}"
        if not folder.exists():
            by_age = sorted(FOLDER.glob(f"{name}-*"), key=lambda path: path.stat().st_mtime)
            for old in by_age[:-LAST]:
                shutil.rmtree(old)
            with tempfile.TemporaryDirectory(dir=FOLDER) as draft:
                make(Path(draft)).rename(folder)
        os.utime(folder)
    return folder


def files_below(folder: Path) -> list[Path]:
    """All files of a package or a folder of it, but those that Python compiled."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return [path for path in found if path.suffix != ".pyc"]

"""The processes of the benchmark of ranking, and what one size of corpus needs of the machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from bench.ranking_methods import ANSWER

#: The share of the free memory that a measurement may take: the rest is for the system.
SHARE: Final = 0.8


class Part:
    """A method's process: it measures when it is asked, and waits meanwhile.

    Raises RuntimeError where it ended without an answer; what it says of that is on its standard
    error.
    """

    def __init__(
        self, method: str, folder: Path, *, images: int, dimension: int, depth: int
    ) -> None:
        self.method = method
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "bench.ranking_methods", method, str(folder)),
                *("--images", str(images), "--dimension", str(dimension), "--depth", str(depth)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "VAR_DIR": str(folder / "var")},
        )

    def ask(self, do: str, **values: Any) -> dict[str, float]:
        """Have something measured; what was measured, times in seconds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **values}) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith(ANSWER):
                answer: dict[str, float] = json.loads(line.removeprefix(ANSWER))
                return answer
        raise RuntimeError(f"{self.method} ended without an answer to {do!r}.")

    def seconds(self, do: str, **values: Any) -> float:
        """How long something took."""
        return self.ask(do, **values)["seconds"]

    def __enter__(self) -> Part:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@dataclass(frozen=True, slots=True)
class Needs:
    """What measuring a size takes, in bytes; estimates on the safe side."""

    images: int
    dimension: int

    @property
    def matrix(self) -> int:
        """The vectors in half precision."""
        return 2 * self.images * self.dimension

    @property
    def disk(self) -> int:
        """Vectors in the database, whose pages aren't full, and packed; rows of images; the log."""
        return int(2.7 * self.matrix) + 800 * self.images + 2 * 2**30

    def lacks_disk(self, folder: Path) -> str:
        """Why the size can't be measured in a folder; empty where it can."""
        free = shutil.disk_usage(folder).free
        if self.disk <= free:
            return ""
        return f"it takes about {gigabytes(self.disk)} of disk, and {gigabytes(free)} are free"


def memory_available() -> int:
    """Bytes that processes can have now, as the kernel reckons."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise LookupError("This kernel doesn't tell MemAvailable.")


def gigabytes(size: float) -> str:
    """A size in GB."""
    return f"{size / 1e9:.1f} GB"


@contextmanager
def own_folder(folder: Path) -> Iterator[Path]:
    """A folder that is new, and gone afterwards. Raises FileExistsError for one that is there."""
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)

"""The cache of images that are made when they are asked for: its limit, and several users."""

from __future__ import annotations

import errno
import hashlib
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from core.file_cache import cached

pytestmark = pytest.mark.pure

KIB = 1024
LIMIT = 4096 * KIB


def image(number: int, size: int = 40 * KIB) -> bytes:
    return random.Random(number).randbytes(size)


def total(folder: Path) -> int:
    """Bytes of the images."""
    return sum(path.stat().st_size for path in folder.glob("*/*"))


def asked(folder: Path, number: int, data: bytes, *, keep: bool = True) -> tuple[bytes, bool]:
    """What comes, and whether it had to be made."""
    made = []

    def make() -> tuple[bytes, bool]:
        made.append(True)
        return data, keep

    key = hashlib.sha256(str(number).encode()).hexdigest()
    return cached(folder, limit=LIMIT, key=key, make=make), bool(made)


def test_an_image_is_made_once(tmp_path: Path) -> None:
    assert asked(tmp_path, 1, b"one") == (b"one", True)
    assert asked(tmp_path, 1, b"other") == (b"one", False)
    assert asked(tmp_path, 2, b"two") == (b"two", True)
    # What is too large or not worth it is made each time.
    large = image(3, LIMIT)
    for _ in range(2):
        assert asked(tmp_path, 3, large) == (large, True)
        assert asked(tmp_path, 4, b"near", keep=False) == (b"near", True)


def test_the_cache_stays_within_its_limit_and_drops_what_was_used_least_recently(
    tmp_path: Path,
) -> None:
    asked(tmp_path, 0, image(0))
    for number in range(1, 250):
        asked(tmp_path, number, image(number))
        assert asked(tmp_path, 0, b"") == (image(0), False)
    assert LIMIT / 2 < total(tmp_path) <= LIMIT
    assert asked(tmp_path, 249, b"new") == (image(249), False)
    assert asked(tmp_path, 1, b"new") == (b"new", True)


def test_a_full_disk_only_means_that_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_arguments: Any, **_options: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("core.file_cache.whole_file", full)
        assert asked(tmp_path, 1, b"one") == (b"one", True)
    assert "No space left" in caplog.text
    assert asked(tmp_path, 1, b"later") == (b"later", True)
    assert asked(tmp_path, 1, b"other") == (b"later", False)


def test_several_use_one_cache_at_once(tmp_path: Path) -> None:
    def use(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(60):
            number = chance.randrange(50)
            assert asked(tmp_path, number, image(number))[0] == image(number)

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(use, range(3)))
    assert 0 < total(tmp_path) <= LIMIT

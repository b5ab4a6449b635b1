"""The cache of images that are made when they are asked for: its limit, and several processes."""

import random
import sqlite3
import subprocess
import sys

from retrieval.images.thumbnails import cached
from tests.processes import ROOT

KIB = 1024
LIMIT = 4096 * KIB


def image(number, size=40 * KIB):
    return random.Random(number).randbytes(size)


def total(folder):
    """Bytes of the images; diskcache keeps those of this size in files of their own."""
    return sum(path.stat().st_size for path in folder.rglob("*.val"))


def asked(folder, number, data, *, keep=True, limit=LIMIT):
    """What comes, and whether it had to be made."""
    made = []

    def make():
        made.append(True)
        return data, keep

    return cached(folder, limit=limit, key=str(number), make=make), bool(made)


def test_an_image_is_made_once(tmp_path):
    assert asked(tmp_path, 1, b"one") == (b"one", True)
    assert asked(tmp_path, 1, b"other") == (b"one", False)
    assert asked(tmp_path, 2, b"two") == (b"two", True)


def test_the_cache_stays_within_its_limit_and_drops_what_was_used_least_recently(tmp_path):
    asked(tmp_path, 0, image(0))
    for number in range(1, 400):
        asked(tmp_path, number, image(number))
        assert asked(tmp_path, 0, b"") == (image(0), False)
    assert LIMIT / 2 < total(tmp_path) <= LIMIT
    assert asked(tmp_path, 399, b"new") == (image(399), False)
    assert asked(tmp_path, 1, b"new") == (b"new", True)


def test_what_is_too_large_or_not_worth_it_is_made_each_time(tmp_path):
    large = image(1, LIMIT)
    for _ in range(2):
        assert asked(tmp_path, 1, large) == (large, True)
        assert asked(tmp_path, 2, b"near", keep=False) == (b"near", True)


def test_a_full_disk_only_means_that_nothing_is_kept(tmp_path, monkeypatch, caplog):
    def full(*args, **options):
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr("diskcache.FanoutCache.set", full)
        assert asked(tmp_path, 1, b"one") == (b"one", True)
    assert "disk is full" in caplog.text
    with monkeypatch.context() as patched:
        patched.setattr("diskcache.FanoutCache.get", full)
        assert asked(tmp_path, 1, b"one") == (b"one", True)
    assert asked(tmp_path, 1, b"later") == (b"later", True)
    assert asked(tmp_path, 1, b"other") == (b"later", False)


PROCESS = """
import random, sys
from pathlib import Path
from retrieval.images.thumbnails import cached

def image(number):
    return random.Random(number).randbytes(40960)

chance = random.Random(sys.argv[3])
for _ in range(300):
    number = chance.randrange(200)
    data = cached(Path(sys.argv[1]), limit=int(sys.argv[2]), key=str(number),
                  make=lambda: (image(number), True))
    assert data == image(number)
"""


def test_several_processes_use_one_cache(tmp_path):
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(tmp_path), str(LIMIT), str(seed)],
            cwd=ROOT,
            stderr=subprocess.PIPE,
        )
        for seed in range(3)
    ]
    for process in started:
        error = process.communicate(timeout=120)[1].decode()
        assert (process.returncode, error) == (0, "")
    assert 0 < total(tmp_path) <= LIMIT

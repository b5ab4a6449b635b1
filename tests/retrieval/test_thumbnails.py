"""The cache of pictures that are made when they are asked for: its limit, and who makes what."""

import hashlib
import io
import os
import random
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from retrieval.images.thumbnails import SHARDS, Made, ThumbnailCache
from tests.processes import ROOT, wait_for

KIB = 1024


def key_of(number, shard="ab"):
    """A key; those of one shard share its limit."""
    return shard + hashlib.sha256(str(number).encode()).hexdigest()[2:]


def picture(number, size=KIB):
    return random.Random(number).randbytes(size)


def total(folder):
    return sum(path.stat().st_size for path in folder.rglob("*.jpg"))


def opened(cache, key, data):
    with cache.open(key, lambda: Made(data)) as file:
        return file.read()


@pytest.fixture
def cache(tmp_path):
    """Ten KiB in each shard."""
    return ThumbnailCache(tmp_path, limit=SHARDS * 10 * KIB)


def never():
    raise AssertionError("This is kept.")


def test_what_was_made_is_kept(cache, tmp_path):
    assert opened(cache, key_of(1), b"one") == b"one"
    with ThumbnailCache(tmp_path, limit=SHARDS * KIB).open(key_of(1), never) as file:
        assert file.read() == b"one"
    assert opened(cache, key_of(2), b"two") == b"two"


def test_a_shard_never_holds_more_than_its_part(cache, tmp_path):
    for number in range(50):
        opened(cache, key_of(number), picture(number))
        assert total(tmp_path) <= 10 * KIB
    assert total(tmp_path) >= 8 * KIB


def test_what_was_used_least_recently_goes_first(cache, tmp_path):
    for number in range(10):
        opened(cache, key_of(number), picture(number))
        path = tmp_path / "ab" / f"{key_of(number)}.jpg"
        os.utime(path, (number, time.time() - 100_000 + number))
    with cache.open(key_of(0), never):
        pass
    opened(cache, key_of(10), picture(10))
    kept = {n for n in range(11) if (tmp_path / "ab" / f"{key_of(n)}.jpg").exists()}
    assert 0 in kept
    assert 10 in kept
    assert kept == {0} | set(range(11 - (len(kept) - 1), 11))


def test_an_opened_picture_outlives_its_place_in_the_cache(cache, tmp_path):
    opened(cache, key_of(1), picture(1))
    with cache.open(key_of(1), never) as file:
        for number in range(2, 40):
            opened(cache, key_of(number), picture(number))
        assert not (tmp_path / "ab" / f"{key_of(1)}.jpg").exists()
        assert file.read() == picture(1)


def test_what_is_larger_than_a_shard_is_made_each_time(cache, tmp_path):
    opened(cache, key_of(1), b"small")
    for seed in (2, 3):
        large = picture(seed, 11 * KIB)
        assert opened(cache, key_of(2), large) == large
    assert [path.name for path in tmp_path.rglob("*.jpg")] == [f"{key_of(1)}.jpg"]


def test_what_is_not_worth_keeping_is_not_kept(cache, tmp_path):
    file = cache.open(key_of(1), lambda: Made(b"near", keep=False))
    assert (file.read(), total(tmp_path)) == (b"near", 0)


def test_what_cannot_be_made_leaves_nothing(cache, tmp_path):
    def fail():
        raise ValueError("broken")

    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            cache.open(key_of(1), fail)
    assert opened(cache, key_of(1), b"whole") == b"whole"


def test_files_that_somebody_removed_or_added_are_counted_when_a_shard_is_full(cache, tmp_path):
    for number in range(9):
        opened(cache, key_of(number), picture(number))
    for path in tmp_path.rglob("*.jpg"):
        path.unlink()
    (tmp_path / "ab" / ".size").write_text("nonsense")
    (tmp_path / "ab" / f"{key_of('stranger')}.jpg").write_bytes(picture("stranger", 9 * KIB))
    (tmp_path / "ab" / ".writing").write_bytes(b"left by a killed process")
    for number in range(20, 24):
        opened(cache, key_of(number), picture(number))
        assert total(tmp_path) <= 10 * KIB
    assert {n for n in range(20, 24) if (tmp_path / "ab" / f"{key_of(n)}.jpg").exists()} == {
        *range(20, 24)
    }


def test_a_full_disk_only_means_that_nothing_is_kept(cache, tmp_path, monkeypatch, caplog):
    def full(source, target):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.replace", full)
        assert opened(cache, key_of(1), b"one") == b"one"
    assert "No space left on device" in caplog.text
    assert opened(cache, key_of(1), b"later") == b"later"


def test_a_disk_without_room_for_a_lock_only_means_that_nothing_is_kept(cache, monkeypatch, caplog):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.mkdir", full)
        assert opened(cache, key_of(1), b"one") == b"one"
    assert "Nothing can be kept" in caplog.text
    assert opened(cache, key_of(1), b"later") == b"later"


def test_of_sixty_who_ask_at_once_one_makes(cache):
    made = []
    start = threading.Barrier(60)

    def make():
        made.append(1)
        time.sleep(0.05)
        return Made(b"one")

    def ask(_):
        start.wait()
        with cache.open(key_of(1), make) as file:
            return file.read()

    with ThreadPoolExecutor(60) as threads:
        assert set(threads.map(ask, range(60))) == {b"one"}
    assert made == [1]


def test_threads_stay_within_the_limit_together(cache, tmp_path):
    largest = []

    def ask(seed):
        chance = random.Random(seed)
        for _ in range(60):
            number = chance.randrange(40)
            assert opened(cache, key_of(number), picture(number)) == picture(number)
            largest.append(sum(_size(path) for path in tmp_path.rglob("*.jpg")))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(ask, range(8)))
    assert 0 < max(largest) <= 10 * KIB
    assert int((tmp_path / "ab" / ".size").read_text()) == total(tmp_path)


def _size(path):
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


PROCESS = """
import os, random, sys, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from retrieval.thumbnails import SHARDS, Made, ThumbnailCache

folder, limit, keys, pause = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[4].split(), sys.argv[5]
log = os.open(sys.argv[3], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
cache = ThumbnailCache(folder, limit=limit * SHARDS)

def ask(key):
    def make():
        os.write(log, (key + "\\n").encode())
        time.sleep(float(pause))
        return Made(key.encode() * 16)
    with cache.open(key, make) as file:
        assert file.read() == key.encode() * 16

random.shuffle(keys)
with ThreadPoolExecutor(4) as threads:
    list(threads.map(ask, keys))
"""


def processes(count, folder, *, limit, log, keys, pause="0.002"):
    command = [sys.executable, "-c", PROCESS, str(folder), str(limit), str(log)]
    return [
        subprocess.Popen([*command, " ".join(keys), pause], cwd=ROOT, stderr=subprocess.PIPE)
        for _ in range(count)
    ]


def ended(started):
    for process in started:
        error = process.communicate(timeout=60)[1].decode()
        assert (process.returncode, error) == (0, "")


def test_of_several_processes_one_makes(tmp_path):
    keys = [key_of(n, shard) for n in range(30) for shard in ("ab", "cd")]
    log = tmp_path / "made"
    ended(processes(3, tmp_path / "cache", limit=1000 * KIB, log=log, keys=keys))
    assert sorted(log.read_text().split()) == sorted(keys)


def test_several_processes_stay_within_the_limit_together(tmp_path):
    keys = [key_of(n) for n in range(60)] * 3
    folder = tmp_path / "cache"
    started = processes(3, folder, limit=10 * KIB, log=tmp_path / "made", keys=keys)
    largest = 0
    while any(process.poll() is None for process in started):
        largest = max(largest, sum(_size(path) for path in folder.rglob("*.jpg")))
    ended(started)
    assert 0 < largest <= 10 * KIB
    assert int((folder / "ab" / ".size").read_text()) == total(folder)


def test_a_killed_process_holds_nobody_back(tmp_path):
    log = tmp_path / "made"
    (process,) = processes(1, tmp_path, limit=KIB * 10, log=log, keys=[key_of(1)], pause="600")
    wait_for(lambda: log.exists() and log.read_text(), what="the process to begin")
    process.kill()
    process.communicate()
    assert opened(ThumbnailCache(tmp_path, limit=SHARDS * KIB), key_of(1), b"one") == b"one"


def test_what_is_given_can_be_sent_as_a_file(cache):
    for _ in range(2):
        with cache.open(key_of(1), lambda: Made(b"one")) as file:
            assert file.seek(0, io.SEEK_END) == 3

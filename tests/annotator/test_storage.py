"""Files that machines share: on the disk, and in a bucket with copies on each machine."""

from __future__ import annotations

import hashlib
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from core import storage
from core.bucket import ADDRESS_SECONDS
from core.jobs.kinds import HANDLERS
from core.jobs.models import Job
from core.jobs.services import Slice, job_create, job_slice_run
from core.log_lines import request_id
from core.outages import STORAGE_AWAY, StorageAway, outage_of
from core.storage import storage_of
from retrieval.images.storage import image_store
from tests.retrieval.buckets import client
from tests.retrieval.making import image_row, jpeg


@pytest.fixture(params=["files", "bucket"])
def place(request: Any, settings: Any, tmp_path: Path) -> Path:
    """VAR_DIR, with files on the disk or in a bucket."""
    if request.param == "bucket":
        request.getfixturevalue("in_bucket")
    settings.VAR_DIR = tmp_path / "one"
    settings.VAR_DIR.mkdir()
    return Path(settings.VAR_DIR)


@pytest.fixture
def other(in_bucket: Any, settings: Any, tmp_path: Path) -> Any:
    """Two machines with a bucket; called with a name, the test goes on as that machine."""

    def go(name: str) -> Path:
        settings.VAR_DIR = tmp_path / name
        settings.VAR_DIR.mkdir(exist_ok=True)
        return Path(settings.VAR_DIR)

    go("one")
    return go


def write(path: Path, data: bytes) -> str:
    with storage.writing(path) as file:
        file.write(data)
    return hashlib.sha256(data).hexdigest()


def read(path: Path) -> bytes:
    with storage.reading(path) as file:
        data: bytes = file.read()
        assert file.size == len(data)
        return data


def files(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def test_a_file_is_whole_or_not_there(place: Path) -> None:
    path = place / "runs" / "7.npz"
    assert not storage.exists(path)
    with pytest.raises(FileNotFoundError):
        read(path)
    write(path, b"first")
    with suppress(RuntimeError), storage.writing(path) as file:
        file.write(b"half of the sec")
        raise RuntimeError
    assert (storage.exists(path), read(path)) == (True, b"first")
    write(path, b"second")
    assert read(path) == b"second"
    write(place / "runs" / "8" / "a b.npz", b"")
    assert set(storage.names_below(place / "runs")) == {path, place / "runs" / "8" / "a b.npz"}
    assert list(storage.names_below(place / "images")) == []
    for _ in range(2):
        storage.remove(path)
    assert not storage.exists(path)
    assert files(place) == (set() if storage.is_shared() else {"runs/8/a b.npz"})


def test_a_request_reads_and_writes_as_everything_else_does(place: Path) -> None:
    """Also what is sent and read in several parts."""
    path, data = place / "runs" / "7.npz", bytes(range(256)) * 2**16
    token = request_id.set("a")
    try:
        write(path, data)
        assert storage.exists(path)
        assert read(path) == data
        with storage.reading(path) as file:
            assert (file.read(10), file.read(3 << 20)) == (data[:10], data[10 : 10 + (3 << 20)])
            assert b"".join(iter(lambda: file.read(4 << 20), b"")) == data[10 + (3 << 20) :]
        with storage.reading(path) as file:
            digest = hashlib.file_digest(file, "sha256")
        assert digest.digest() == hashlib.sha256(data).digest()
        assert list(storage.names_below(place / "runs")) == [path]
        assert storage.local_file(path).read_bytes() == data
        storage.remove(path)
        with pytest.raises(FileNotFoundError):
            read(path)
    finally:
        request_id.reset(token)


def test_a_directory_is_replaced_by_what_was_written(place: Path) -> None:
    path = place / "releases" / "3"
    for names in (("a", "snapshot/b"), ("snapshot/b", "c")):
        with storage.writing_directory(path) as partial:
            (partial / "snapshot").mkdir()
            for name in names:
                (partial / name).write_text(f"{name} of {names[0]}")
        assert set(storage.names_below(path)) == {path / name for name in names}
    assert read(path / "snapshot" / "b") == b"snapshot/b of snapshot/b"
    with suppress(RuntimeError), storage.writing_directory(path) as partial:
        (partial / "d").touch()
        raise RuntimeError
    assert set(storage.names_below(path)) == {path / name for name in names}
    assert path.exists() != storage.is_shared()


def test_with_files_nothing_is_copied(settings: Any, tmp_path: Path) -> None:
    settings.VAR_DIR = tmp_path
    sha256 = write(tmp_path / "runs" / "7.npz", b"ranking")
    assert storage.local_file(tmp_path / "runs" / "7.npz", sha256) == tmp_path / "runs" / "7.npz"
    assert storage.local_directory(tmp_path / "runs", {"7.npz": sha256}) == tmp_path / "runs"
    assert files(tmp_path) == {"runs/7.npz"}


def test_a_file_is_fetched_once_for_each_content(other: Any) -> None:
    first = write(other("one") / "runs" / "7.npz", b"first")
    path = other("two") / "runs" / "7.npz"
    assert storage.local_file(path, first).read_bytes() == b"first"
    second = write(path, b"second")
    # What was fetched is that content, whatever the bucket holds now.
    assert storage.local_file(path, first).read_bytes() == b"first"
    assert storage.local_file(path, second).read_bytes() == b"second"
    assert files(other("two")) == {f"fetched/runs/7.npz/{second}/7.npz"}
    # One that isn't what the database says counts as missing; so does one that is gone.
    assert not storage.local_file(path, "0" * 64).exists()
    storage.remove(path)
    assert not storage.local_file(path, second).exists()
    assert files(other("two")) == set()


def test_a_file_of_unknown_content_is_fetched_each_time(other: Any) -> None:
    path = other("two") / "runs" / ".7.partial.npz"
    for data in (b"some", b"more"):
        write(path, data)
        assert storage.local_file(path).read_bytes() == data
    storage.remove(path)
    assert not storage.local_file(path).exists()


def test_a_directory_is_fetched_whole_and_anew_after_a_change(other: Any) -> None:
    path = other("one") / "releases" / "3"
    sums = {name: write(path / name, name.encode()) for name in ("snapshot/a", "snapshot/b")}
    write(path / "large.zip", b"not asked for")
    path = other("two") / "releases" / "3"
    first = storage.local_directory(path, sums)
    assert files(first) == set(sums)
    storage.remove(path / "snapshot" / "a")
    assert storage.local_directory(path, sums) == first
    sums["snapshot/b"] = write(path / "snapshot" / "b", b"another")
    missing = storage.local_directory(path, sums)
    assert not missing.exists()
    write(path / "snapshot" / "a", b"snapshot/a")
    again = storage.local_directory(path, sums)
    assert (again / "snapshot" / "b").read_bytes() == b"another"
    assert not first.exists()
    assert not storage.local_directory(path, {}).exists()


def test_a_signed_address_answers_ranges_for_some_minutes(other: Any, in_bucket: Any) -> None:
    path = other("one") / "releases" / "3" / "all.zip"
    write(path, b"0123456789")
    address = storage.signed_address(path, content_type="application/zip")
    assert f"X-Amz-Expires={ADDRESS_SECONDS}" in address
    asked = urllib.request.Request(address, headers={"Range": "bytes=2-4"})
    with urllib.request.urlopen(asked) as answer:
        assert (answer.status, answer.read()) == (206, b"234")
        assert answer.headers["Content-Type"] == "application/zip"
        assert answer.headers["Content-Disposition"] == 'attachment; filename="all.zip"'


def test_files_anywhere_are_named_by_path_or_address(in_bucket: Any, tmp_path: Path) -> None:
    for location in (f"{tmp_path}/b/a.tar", "s3://other/b/a.tar", "s3://other/a.tar"):
        found, name = storage_of(location)
        assert name == "a.tar"
        with found.writing(name) as file:
            file.write(location.encode())
        with found.reading(name) as stored:
            assert stored.read().decode() == location
        assert found.listdir("")[1] == ["a.tar"]
    held = client(in_bucket["S3_ENDPOINT_URL"]).list_objects_v2(Bucket="other")["Contents"]
    assert [one["Key"] for one in held] == ["a.tar", "b/a.tar"]


@pytest.mark.django_db(transaction=True)
def test_a_bucket_that_is_away_is_waited_for(
    other: Any, settings: Any, clients: Any, monkeypatch: Any
) -> None:
    image = image_row(1, sha256=image_store(jpeg("red")).sha256)
    shown = clients["annotator"].get(image.thumbnail_url)
    assert shown.status_code == 200
    # Nothing listens there.
    settings.S3_ENDPOINT_URL = "http://127.0.0.1:9"
    settings.STORAGES = {**settings.STORAGES}
    away = clients["annotator"]
    away.raise_request_exception = False
    for address in (image.thumbnail_url, image.url):
        answer = away.get(address)
        assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    with pytest.raises(StorageAway) as error:
        write(Path(settings.VAR_DIR) / "a", b"a")
    assert outage_of(error.value) is STORAGE_AWAY
    health = clients["anonymous"].get("/healthz")
    assert (health.status_code, health.json()["storage"]) == (503, "unreachable")

    def reads(job: Job, deadline: float) -> bool:
        return storage.exists(Path(settings.VAR_DIR) / "images")

    monkeypatch.setitem(HANDLERS, "reads", reads)
    job = job_create(kind="reads", params={}, created_by=None)
    assert job_slice_run(job_id=job.pk) is Slice.LATER
    job.refresh_from_db()
    assert (job.state, "127.0.0.1:9" in job.error) == ("running", True)


def test_a_bucket_that_gives_no_access_is_as_one_that_is_away(
    db: None, other: Any, settings: Any, clients: Any
) -> None:
    assert clients["anonymous"].get("/healthz").json()["storage"] == "ok"
    image = image_row(1, sha256=image_store(jpeg("red")).sha256)
    settings.STORAGE_URL = "s3://nobody-has-it"
    settings.STORAGES = {**settings.STORAGES}
    asking = clients["annotator"]
    asking.raise_request_exception = False
    assert asking.get(image.url).status_code == 503
    with pytest.raises(StorageAway, match="NoSuchBucket"):
        write(Path(settings.VAR_DIR) / "a", b"a")
    assert asking.get("/healthz").json()["storage"] == "unreachable"

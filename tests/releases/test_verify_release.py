"""A release comes out of its snapshot again, and whatever is damaged is named."""

from __future__ import annotations

import io
from dataclasses import fields, make_dataclass
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from labeling.queries.models import Query
from releases.making import services
from releases.making.files import file_sha256, file_steps, files_write
from releases.making.progress import Progress
from releases.making.services import Finding, ReleaseUnusable, release_verify
from releases.models import Release
from releases.snapshot.snapshot import (
    TABLES,
    Snapshot,
    SnapshotQuery,
)
from tests.conftest import client_of
from tests.releases.toy import make_list


def run(*arguments: str) -> tuple[int, str]:
    """The exit status and what a command wrote."""
    output = io.StringIO()
    try:
        call_command(*arguments, stdout=output, stderr=output)
    except SystemExit as ended:
        return int(ended.code or 0), output.getvalue()
    return 0, output.getvalue()


def flip(path: Path, at: int) -> None:
    """Change one bit of one byte of a file, or add one to an empty file."""
    data = bytearray(path.read_bytes() or b"\1")
    data[at] ^= 1
    path.write_bytes(data)


@pytest.fixture
def release(query: Any, judge: Any, annotator: Any, var_dir: Path, tmp_path: Path) -> Release:
    """The second version of two."""
    make_list(query, [2, 1, 3])
    judge(query, 2, annotator, "relevant", seconds=1.5)
    Query.objects.filter(pk=query.pk).update(
        left_open="1 image is unsure.", completion_reason="Two storks or three, who can tell?"
    )
    services.release_export(name="Birds", directory=tmp_path / "one", new=True)
    judge(query, 1, annotator, "not_relevant")
    return services.release_export(name="Birds", directory=tmp_path / "two", new=True)


def test_a_release_comes_out_again_byte_for_byte(release: Release) -> None:
    assert release_verify(release=release) == []
    kept = Snapshot(release.snapshot_directory).queries[30]
    assert kept.left_open == "1 image is unsure."
    assert kept.completion_reason == "Two storks or three, who can tell?"
    assert {one["name"]: one["access"] for one in release.file_list}["left_open.csv"] == "labels"
    count = len(release.file_list)
    assert run("verify_release", "Birds") == (
        0,
        f"Birds v2: {count} files are as they were made, and come out of the snapshot again byte "
        "for byte.\n",
    )
    assert run("verify_release", "Birds v1")[1].startswith("Birds v1: ")
    # Nothing is left behind.
    names = {path.name for path in release.directory.parent.iterdir()}
    assert names == {str(release.pk), str(release.previous_id)}


def test_a_snapshot_from_before_a_column_was_kept_still_comes_out_again(
    query: Any,
    judge: Any,
    annotator: Any,
    var_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = [one for one in fields(SnapshotQuery) if one.name not in ("left_open",
            "completion_reason")]  # fmt: skip
    older = make_dataclass("Older", [(one.name, one.type) for one in kept])
    older.__module__ = SnapshotQuery.__module__
    judge(query, 2, annotator, "relevant")
    with monkeypatch.context() as then:
        then.setitem(TABLES, "queries", older)
        release = services.release_export(name="Old", directory=tmp_path / "old", new=True)
    assert Snapshot(release.snapshot_directory).queries[30].completion_reason == ""
    assert release_verify(release=release) == []


def test_every_damaged_byte_and_lost_file_is_named(release: Release) -> None:
    problem = "is not as it was made"
    # Of a damaged snapshot nothing is written.
    for name in ("snapshot/pairs.parquet", "judgments.csv"):
        path = release.directory / name
        whole = path.read_bytes()
        flip(path, len(whole) // 2)
        assert release_verify(release=release) == [Finding(name, problem)]
        assert run("verify_release", "Birds v2") == (1, f"{name} {problem}\n")
        path.write_bytes(whole)
    files = [entry["name"] for entry in release.file_list if "snapshot/" not in entry["name"]]
    files = [*files, release.archive["name"], release.archive["open"]["name"]]
    for name in files:
        flip(release.directory / name, -1)
    expected = [Finding(name, problem) for name in sorted(files)]
    assert release_verify(release=release) == expected
    for name in files:
        (release.directory / name).unlink()
    assert {one.problem for one in release_verify(release=release)} == {"is gone"}
    with pytest.raises(ReleaseUnusable, match="new v1 isn't made yet"):
        release_verify(release=Release.objects.create(name="new"))
    with pytest.raises(CommandError, match='There is no release "birds"'):
        run("verify_release", "birds")


def test_files_beside_the_releases_own_are_named_but_for_the_numbers_of_its_page(
    release: Release, admin: Any
) -> None:
    client_of(admin).get(f"/releases/{release.pk}/statistics/")
    assert (release.directory / "snapshot_statistics.json").exists()
    assert release_verify(release=release) == []
    (release.directory / "snapshot" / "pairs_old.parquet").write_bytes(b"")
    (release.directory / "judgments.csv.bak").write_bytes(b"")
    problem = "is none of the release's files"
    assert release_verify(release=release) == [
        Finding("judgments.csv.bak", problem),
        Finding("snapshot/pairs_old.parquet", problem),
    ]


def test_what_comes_out_differently_is_named(release: Release) -> None:
    # As if a writer had been changed since: the row was made of other bytes than come out now.
    path = release.directory / "judgments.csv"
    entry = next(one for one in release.file_list if one["name"] == "judgments.csv")
    path.write_text(path.read_text() + "\n")
    entry["sha256"] = file_sha256(path)
    found = {one.name: one.problem for one in release_verify(release=release)}
    differs = "comes out differently from the snapshot"
    assert found == {"judgments.csv": differs}


def test_files_are_listed_in_the_order_in_which_they_were(release: Release, tmp_path: Path) -> None:
    release.file_list = [*reversed(release.file_list[:4]), *release.file_list[4:]]
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "snapshot").symlink_to(release.snapshot_directory)
    again = files_write(
        release=release, directory=tmp_path / "again", progress=Progress(file_steps())
    )
    names = [entry["name"] for entry in again.file_list]
    assert names == [entry["name"] for entry in release.file_list]

"""Directories appear whole or not at all, and nothing of somebody else is ever replaced."""

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from core.files import TargetRefused, atomic_directory

pytestmark = pytest.mark.pure


def nothing() -> None:
    pass


def fail() -> None:
    raise ZeroDivisionError


def write(
    target: Path, text: str = "new", *, then: Callable[[], None] = nothing, **options
) -> None:
    """Write a directory of one file, with something happening before it is whole."""
    with atomic_directory(target, **options) as partial:
        (partial / "a.csv").write_text(text)
        then()


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_new_directory_appears_when_it_is_whole(tmp_path):
    target = tmp_path / "deep" / "release"
    with atomic_directory(target) as partial:
        (partial / "a.csv").write_text("new")
        assert not target.exists()
    assert (target / "a.csv").read_text() == "new"
    assert names(target.parent) == ["release"]


def test_an_existing_release_is_refused_unless_it_may_be_replaced(tmp_path):
    target = tmp_path / "release"
    write(target, "old")
    with pytest.raises(TargetRefused, match=r"exists and is not empty"):
        write(target)
    assert (target / "a.csv").read_text() == "old"
    write(target, replace=True, replaceable=["a.csv"])
    assert (target / "a.csv").read_text() == "new"
    assert names(tmp_path) == ["release"]


def test_a_failed_replacement_keeps_the_old_files(tmp_path):
    target = tmp_path / "release"
    write(target, "old")
    with pytest.raises(ZeroDivisionError):
        write(target, then=fail, replace=True, replaceable=["a.csv"])
    assert (target / "a.csv").read_text() == "old"
    assert names(tmp_path) == ["release"]


def test_a_directory_with_other_files_is_never_replaced(tmp_path):
    target = tmp_path / "home"
    write(target)
    (target / "thesis.tex").write_text("years of work")
    with pytest.raises(TargetRefused, match=re.escape("holds 'thesis.tex', which is not replaced")):
        write(target, replace=True, replaceable=["a.csv"])
    assert names(target) == ["a.csv", "thesis.tex"]


def test_what_appears_while_writing_is_not_replaced(tmp_path):
    target = tmp_path / "release"
    with pytest.raises(TargetRefused, match="not empty"):
        write(target, then=lambda: write(target, "quicker"))
    assert (target / "a.csv").read_text() == "quicker"
    assert names(tmp_path) == ["release"]


def test_what_is_no_directory_is_refused(tmp_path):
    (tmp_path / "file").write_text("a file")
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("file", "link", "dangling"):
        with pytest.raises(TargetRefused, match="is not a directory"):
            write(tmp_path / name, replace=True, replaceable=["a.csv"])


def test_what_a_killed_process_left_goes_and_what_another_one_writes_stays(tmp_path):
    target = tmp_path / "release"
    with suppress(TargetRefused), atomic_directory(target) as partial:
        other = tmp_path / partial.name.replace("release", "another")
        other.mkdir()
        write(target, "while it is written")
        assert names(tmp_path) == sorted([other.name, partial.name, "release"])
    # Nobody holds its lock any more.
    partial.mkdir()
    write(target, replace=True, replaceable=["a.csv"])
    assert names(tmp_path) == [other.name, "release"]

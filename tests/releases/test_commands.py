"""The command export_release as a person at a terminal meets it."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command

from releases.models import Release
from releases.snapshot.release_files import RELEASE_FILES


def run_command(*arguments: object) -> str:
    output = io.StringIO()
    call_command(*map(str, arguments), stdout=output, stderr=output)
    return output.getvalue()


def test_export_writes_the_files_once_and_says_what_they_hold(
    query, judge, annotator, var_dir, tmp_path
):
    judge(query, 2, annotator, "relevant", rank=1)
    output = run_command("export_release", "v1", tmp_path / "out", "--new")
    assert "0 val and 1 test queries, 1 relevant pairs, 1 judgments in" in output
    files = Release.objects.get().file_list
    written = {path for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert written == {tmp_path / "out" / entry["name"] for entry in files}
    for entry in files:
        assert f"{entry['sha256']}  {entry['name']}\n" in output
    again = run_command("export_release", "v1 v1", tmp_path / "two")
    assert again.startswith("v1 v1 was made on ")
    assert "--new makes the next version, of this moment." in again
    # Over a directory of a release by force alone, over other files never.
    with pytest.raises(CommandError, match="exists and is not empty"):
        run_command("export_release", "v2", tmp_path / "out", "--new")
    assert not Release.objects.filter(name="v2").exists()
    run_command("export_release", "v1", tmp_path / "out", "--force")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with pytest.raises(CommandError, match=r"holds 'notes\.txt'"):
        run_command("export_release", "v1", tmp_path / "out", "--force")


def test_a_misspelled_name_makes_no_release(db, var_dir, tmp_path):
    expected = 'There is no release "Birds". None is made yet. --new makes one.'
    with pytest.raises(CommandError, match=expected):
        run_command("export_release", "Birds", tmp_path / "out")
    output = run_command("export_release", "Birds", tmp_path / "one", "--new")
    assert "No query is complete, so the files hold only their headers." in output
    files = [(tmp_path / "one" / name).read_text() for name in RELEASE_FILES]
    assert [text.count("\n") for text in files] == [1, 1, 1, 1]
    for name in ("Brids", "birds", "Birds v2"):
        expected = f'There is no release "{name}". Releases are: Birds v1. --new makes one.'
        with pytest.raises(CommandError, match=expected):
            run_command("export_release", name, tmp_path / "out")
    with pytest.raises(CommandError, match="cannot be blank"):
        run_command("export_release", " ", tmp_path / "out", "--new")
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandError, match="Can't write"):
        run_command("export_release", "Birds", tmp_path / "file" / "out")
    assert [str(one) for one in Release.objects.all()] == ["Birds v1"]
    assert not (tmp_path / "out").exists()

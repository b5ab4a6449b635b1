"""The command export_release as a person at a terminal meets it."""

import io

import pytest
from django.core.management import CommandError, call_command

from benchmark.releases.models import Release
from benchmark.releases.snapshot.release_files import RELEASE_FILES


def run_command(*arguments: object) -> str:
    output = io.StringIO()
    call_command(*map(str, arguments), stdout=output, stderr=output)
    return output.getvalue()


def test_export_writes_the_files_and_says_what_they_hold(
    query, judge, annotator, var_dir, tmp_path
):
    judge(query, 2, annotator, "relevant", rank=1)
    output = run_command("export_release", "v1", tmp_path / "out", "--new")
    assert "0 val and 1 test queries, 1 relevant pairs, 1 judgments in" in output
    files = Release.objects.get().file_list
    written = {path for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert written == {tmp_path / "out" / entry["name"] for entry in files}
    assert {entry["name"] for entry in files} > set(RELEASE_FILES)
    for entry in files:
        assert f"{entry['sha256']}  {entry['name']}\n" in output


def test_exporting_a_name_again_says_that_it_never_changes(query, var_dir, tmp_path):
    run_command("export_release", "v1", tmp_path / "one", "--new")
    output = run_command("export_release", "v1 v1", tmp_path / "two")
    assert output.startswith("v1 v1 was made on ")
    assert "--new makes the next version, of this moment." in output


def test_exporting_over_a_directory_needs_force(query, var_dir, tmp_path):
    run_command("export_release", "v1", tmp_path / "out", "--new")
    with pytest.raises(CommandError, match="exists and is not empty"):
        run_command("export_release", "v2", tmp_path / "out", "--new")
    assert not Release.objects.filter(name="v2").exists()
    run_command("export_release", "v2", tmp_path / "out", "--new", "--force")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with pytest.raises(CommandError, match=r"holds 'notes\.txt'"):
        run_command("export_release", "v3", tmp_path / "out", "--new", "--force")


def test_a_misspelled_name_makes_no_release(query, var_dir, tmp_path):
    expected = 'There is no release "Birds". None is made yet. --new makes one.'
    with pytest.raises(CommandError, match=expected):
        run_command("export_release", "Birds", tmp_path / "out")
    run_command("export_release", "Birds", tmp_path / "one", "--new")
    for name in ("Brids", "birds", "Birds v2"):
        expected = f'There is no release "{name}". Releases are: Birds v1. --new makes one.'
        with pytest.raises(CommandError, match=expected):
            run_command("export_release", name, tmp_path / "out")
    assert [str(one) for one in Release.objects.all()] == ["Birds v1"]
    assert not (tmp_path / "out").exists()


def test_exporting_nothing_says_so(db, var_dir, tmp_path):
    output = run_command("export_release", "v1", tmp_path / "out", "--new")
    assert "No query is complete, so the files hold only their headers." in output


def test_exporting_under_a_bad_name_is_refused(db, var_dir, tmp_path):
    with pytest.raises(CommandError, match="cannot be blank"):
        run_command("export_release", " ", tmp_path / "out", "--new")


def test_exporting_where_a_file_is_in_the_way_is_refused(db, var_dir, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandError, match="Can't write"):
        run_command("export_release", "v1", tmp_path / "file" / "out")

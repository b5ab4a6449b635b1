"""The commands export_release and evaluate as a person at a terminal meets them."""

import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from benchmark.models import Release
from benchmark.release_files import RELEASE_FILES

RUN = "30 Q0 2 1 0.9 toy\n30 Q0 5 2 0.8 toy\n30 Q0 1 3 0.7 toy\n99 Q0 1 1 0.5 toy\n"


def run_command(*arguments: object) -> str:
    output = io.StringIO()
    call_command(*map(str, arguments), stdout=output, stderr=output)
    return output.getvalue()


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """Three queries: one with two relevant images, one with one, and one without any."""
    folder = tmp_path / "release"
    folder.mkdir()
    header = ",query_id,query_text,supercategory,category,iconic_group\n"
    (folder / "inquire_queries_val.csv").write_text(header + "1,31,a fox,Species,Species ID,\n")
    (folder / "inquire_queries_test.csv").write_text(
        header + "0,30,two storks,Species,Species ID,Birds\n2,32,a newt,Species,Species ID,\n"
    )
    (folder / "inquire_annotations.csv").write_text(
        "query_id,image_id,image_path\n30,1,a/1.jpg\n30,2,a/2.jpg\n31,4,a/4.jpg\n"
    )
    return folder


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    path = tmp_path / "run.txt"
    path.write_text(RUN)
    return path


def test_export_writes_the_files_and_says_what_they_hold(
    query, judge, annotator, var_dir, tmp_path
):
    judge(query, 2, annotator, "relevant", rank=1)
    output = run_command("export_release", "v1", tmp_path / "out")
    assert "0 val and 1 test queries, 1 relevant pairs, 1 judgments in" in output
    assert {path.name for path in (tmp_path / "out").iterdir()} == set(RELEASE_FILES)
    for entry in Release.objects.get().file_list:
        assert f"{entry['sha256']}  {entry['name']}\n" in output


def test_exporting_a_name_again_says_that_it_never_changes(query, var_dir, tmp_path):
    run_command("export_release", "v1", tmp_path / "one")
    output = run_command("export_release", "v1", tmp_path / "two")
    assert output.startswith("Release 'v1' was made on ")
    assert "Another name makes a release of this moment." in output


def test_exporting_over_a_directory_needs_force(query, var_dir, tmp_path):
    run_command("export_release", "v1", tmp_path / "out")
    with pytest.raises(CommandError, match="exists and is not empty"):
        run_command("export_release", "v2", tmp_path / "out")
    assert not Release.objects.filter(name="v2").exists()
    run_command("export_release", "v2", tmp_path / "out", "--force")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with pytest.raises(CommandError, match=r"holds 'notes\.txt'"):
        run_command("export_release", "v3", tmp_path / "out", "--force")


def test_exporting_nothing_says_so(db, var_dir, tmp_path):
    output = run_command("export_release", "v1", tmp_path / "out")
    assert "No query is complete, so the files hold only their headers." in output


def test_exporting_under_a_bad_name_is_refused(db, var_dir, tmp_path):
    with pytest.raises(CommandError, match="cannot be blank"):
        run_command("export_release", " ", tmp_path / "out")


def test_exporting_where_a_file_is_in_the_way_is_refused(db, var_dir, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandError, match="Can't write"):
        run_command("export_release", "v1", tmp_path / "file" / "out")


def test_evaluation_as_a_table(release, run_file):
    lines = run_command("evaluate", run_file, "--release", release, "--k", "5").splitlines()
    assert lines[0].split() == ["query", "R", "P@5", "R@5", "AP@5", "nDCG@5", "RR@5", "text"]
    # AP@5 is (1/1 + 2/3) over min(5, 2).
    assert lines[1].split()[:7] == ["30", "2", "0.4000", "1.0000", "0.8333", "0.9197", "1.0000"]
    assert lines[2].split()[:7] == ["31", "1", "0.0000", "0.0000", "0.0000", "0.0000", "0.0000"]
    assert "Means over 2 queries with relevant images:" in lines
    assert "  mAP@5      0.4167" in lines
    assert "  MRR@5      0.5000" in lines
    assert lines[-3:] == [
        "Missing in the run, scored 0: 1 (31)",
        "Without relevant images, left out: 1 (32)",
        "Unknown to the release, not scored: 1 (99)",
    ]


def test_evaluation_as_json(release, run_file):
    data = json.loads(run_command("evaluate", run_file, "--release", release, "--json"))
    assert (data["k"], data["scored"], data["split"]) == (50, 2, None)
    assert data["mean"]["map"] == pytest.approx((5 / 6 + 0) / 2)
    assert data["mean"]["precision"] == pytest.approx(0.02)
    assert set(data["mean"]) == {"precision", "recall", "map", "ndcg", "mrr"}
    first = data["queries"][0]
    assert (first["query_id"], first["query_text"], first["split"]) == (30, "two storks", "test")
    assert (first["positives"], first["retrieved"], first["rr"]) == (2, 3, 1.0)
    assert (data["missed"], data["without_positives"], data["unknown"]) == ([31], [32], [99])


def test_evaluation_of_one_split(release, run_file):
    arguments = ["evaluate", run_file, "--release", release, "--json", "--split"]
    val = json.loads(run_command(*arguments, "val"))
    assert [query["query_id"] for query in val["queries"]] == [31]
    # The run's queries of the other split are known, only not asked for.
    assert (val["missed"], val["without_positives"], val["unknown"]) == ([31], [], [99])
    test = json.loads(run_command(*arguments, "test"))
    assert (test["scored"], test["missed"], test["without_positives"]) == (1, [], [32])


def test_evaluation_without_any_relevant_image(release, run_file):
    (release / "inquire_annotations.csv").write_text("query_id,image_id,image_path\n")
    assert "nothing to average" in run_command("evaluate", run_file, "--release", release)
    data = json.loads(run_command("evaluate", run_file, "--release", release, "--json"))
    assert (data["mean"], data["queries"]) == (None, [])


def test_a_bad_run_is_refused_whole(release, run_file):
    run_file.write_text(RUN + "30 Q0 2 4 nan toy\n" + "nonsense\n" * 40)
    with pytest.raises(CommandError) as caught:
        run_command("evaluate", run_file, "--release", release)
    lines = str(caught.value).splitlines()
    assert lines[0] == f"{run_file}, line 5, score: 'nan' is not a finite number"
    assert len(lines) == 21
    assert lines[-1] == "and 21 more errors"


def test_a_bad_release_is_refused_whole(release, run_file):
    (release / "inquire_annotations.csv").write_text("query_id,image_id,image_path\n77,1,a\n")
    with pytest.raises(CommandError, match="line 2, query_id: 77 is in neither query file"):
        run_command("evaluate", run_file, "--release", release)


@pytest.mark.parametrize("missing", ["run", "release"])
def test_a_missing_file_is_named(release, run_file, missing):
    arguments = {"run": run_file, "release": release}
    arguments[missing] = release / "nowhere"
    with pytest.raises(CommandError, match=f"Can't read the {missing}: .*nowhere"):
        run_command("evaluate", arguments["run"], "--release", arguments["release"])


@pytest.mark.parametrize("k", ["0", "-1", "five"])
def test_k_must_be_a_whole_number_from_1(release, run_file, k):
    with pytest.raises(CommandError, match="is not a whole number from 1"):
        run_command("evaluate", run_file, "--release", release, "--k", k)

"""The command evaluate as a person at a terminal meets it."""

import gzip
import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

pytestmark = pytest.mark.pure

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


def test_evaluation_as_a_table(release, run_file):
    lines = run_command("evaluate", run_file, "--release", release, "--k", "5").splitlines()
    assert lines[0].split() == ["query", "R", "P@5", "R@5", "AP@5", "nDCG@5", "RR@5", "text"]
    # AP@5 is (1/1 + 2/3) over min(5, 2).
    assert lines[1].split()[:7] == ["30", "2", "0.4000", "1.0000", "0.8333", "0.9197", "1.0000"]
    assert lines[2].split()[:7] == ["31", "1", "0.0000", "0.0000", "0.0000", "0.0000", "0.0000"]
    assert "Means over 2 queries with relevant images:" in lines
    assert "  mAP@5        0.4167" in lines
    assert "  MRR@5        0.5000" in lines
    assert lines[-3:] == [
        "Missing in the run, scored 0: 1 (31)",
        "Without relevant images, left out: 1 (32)",
        "Unknown to the release, not scored: 1 (99)",
    ]


def test_evaluation_as_json(release, run_file):
    data = json.loads(run_command("evaluate", run_file, "--release", release, "--json"))
    assert (data["scored"], data["split"]) == (2, None)
    assert data["measures"] == list(data["mean"]) == ["P@50", "R@50", "AP@50", "nDCG@50", "RR@50"]
    assert data["mean"]["AP@50"] == pytest.approx((5 / 6 + 0) / 2)
    assert data["mean"]["P@50"] == pytest.approx(0.02)
    first = data["queries"][0]
    assert (first["query_id"], first["query_text"], first["split"]) == (30, "two storks", "test")
    assert (first["positives"], first["retrieved"]) == (2, 3)
    assert list(first["scores"]) == data["measures"]
    assert first["scores"]["RR@50"] == 1.0
    assert (data["missed"], data["without_positives"], data["unknown"]) == ([31], [32], [99])
    # Of one split: the run's queries of the other are known, only not asked for.
    run_file.write_bytes(gzip.compress(run_file.read_bytes()))
    arguments = ["evaluate", run_file, "--release", release, "--json", "--split"]
    val = json.loads(run_command(*arguments, "val"))
    assert [query["query_id"] for query in val["queries"]] == [31]
    assert (val["missed"], val["without_positives"], val["unknown"]) == ([31], [], [99])
    test = json.loads(run_command(*arguments, "test"))
    assert (test["scored"], test["missed"], test["without_positives"]) == (1, [], [32])
    (release / "inquire_annotations.csv").write_text("query_id,image_id,image_path\n")
    assert "nothing to average" in run_command("evaluate", run_file, "--release", release)


def test_a_bad_run_is_refused_whole(release, run_file):
    run_file.write_text(RUN + "30 Q0 2 4 nan toy\n" + "nonsense\n" * 40)
    with pytest.raises(CommandError) as caught:
        run_command("evaluate", run_file, "--release", release)
    lines = str(caught.value).splitlines()
    assert lines[0] == f"{run_file}, line 5, score: 'nan' is not a finite number"
    assert len(lines) == 21
    assert lines[-1] == "and 21 more errors"


def test_what_is_wrong_is_named(release, run_file, tmp_path):
    qrels = tmp_path / "test.qrels"
    (release / "bad").mkdir()
    for path in release.glob("*.csv"):
        (release / "bad" / path.name).write_bytes(path.read_bytes())
    bad = release / "bad" / "inquire_annotations.csv"
    bad.write_text("query_id,image_id,image_path\n77,1,a\n")
    for arguments, message in (
        ([run_file, "--release", release / "bad"], "line 2, query_id: '77' is in no query file"),
        ([release / "nowhere", "--release", release], "Can't read the run: .*nowhere"),
        ([run_file, "--release", release / "nowhere"], "nowhere.*no such directory"),
        ([run_file, "--release", release, "--k", "0"], "is not a whole number from 1"),
        ([run_file, "--release", release, "--measures", "AP@50,F1"], "There is no measure 'F1'"),
        ([run_file, "--release", release, "--measures", "Judged@5"], "relevant images alone"),
        ([run_file, "--release", release, "--k", "5", "--measures", "P@5"], "not allowed with"),
        ([run_file, "--qrels", qrels, "--split", "val"], "which split"),
    ):
        qrels.write_text(QRELS)
        with pytest.raises(CommandError, match=message):
            run_command("evaluate", *arguments)
    for text, message in (
        ("", "line 1: the file holds no row"),
        ("q1 0 a\n", "line 1: 3 fields where 4 are needed"),
        ("q1 0 a 0.5\n", "line 1, relevance: '0.5' is not a whole number"),
        ("q1 0 a 1\nq1 0 a 1\n", "line 2, image_id: a is listed twice for query q1"),
    ):
        qrels.write_text(text)
        with pytest.raises(CommandError, match=message):
            run_command("evaluate", run_file, "--qrels", qrels)


def test_measures_are_chosen_by_name(release, run_file):
    measures = "AP@R,Rprec,CappedR@1"
    output = run_command("evaluate", run_file, "--release", release, "--measures", measures)
    lines = output.splitlines()
    assert lines[0].split() == ["query", "R", "AP@R", "Rprec", "CappedR@1", "text"]
    # One of the two relevant images is among the first two, at rank 1.
    assert lines[1].split()[:5] == ["30", "2", "0.5000", "0.5000", "1.0000"]
    assert "  mAP@R        0.2500" in lines


def test_a_release_of_another_name_and_with_every_judgment_is_scored_by_all_measures(
    release, run_file
):
    for path in list(release.iterdir()):
        path.rename(release / path.name.removeprefix("inquire_"))
    header = "query_id,image_id,relevance,annotator,rank,seconds,source\n"
    labels = {1: "relevant", 2: "relevant", 5: "not_relevant"}
    rows = [f"30,{image},{label},annotator_1,,1.000,list\n" for image, label in labels.items()]
    rows.append("31,4,relevant,annotator_1,,1.000,list\n")
    (release / "judgments.csv").write_text(header + "".join(rows))
    arguments = ["--json", "--measures", "Judged@5,Bpref,Success@1"]
    data = json.loads(run_command("evaluate", run_file, "--release", release, *arguments))
    # Image 5, judged and not relevant, stands before one of the two relevant ones.
    assert data["queries"][0]["scores"] == {"Judged@5": 0.6, "Bpref": 0.5, "Success@1": 1.0}


QRELS = "q1 0 b/fox 1\nq1 0 a/owl 0\nq2 0 c 2\nq10 0 c 0\n"
BEIR = "query-id\tcorpus-id\tscore\nq1\tb/fox\t1\nq1\ta/owl\t0\nq2\tc\t2\nq10\tc\t0\n"


@pytest.mark.parametrize("text", [QRELS, BEIR, QRELS.replace(" ", "\t")])
def test_qrels_whose_ids_are_texts(tmp_path, text):
    qrels, run = tmp_path / "test.qrels", tmp_path / "run.txt"
    qrels.write_text(text)
    # Equal scores: the smaller id first, whatever order they came in.
    run.write_text("q1 Q0 b/fox 1 0.5 x\nq1 Q0 a/owl 2 0.5 x\nq9 Q0 c 1 1 x\n")
    arguments = ["--json", "--measures", "RR@5,Judged@1"]
    data = json.loads(run_command("evaluate", run, "--qrels", qrels, *arguments))
    first = data["queries"][0]
    assert first["query_id"] == "q1"
    assert first["scores"] == {"RR@5": 0.5, "Judged@1": 1.0}
    assert (data["missed"], data["without_positives"]) == (["q2"], ["q10"])
    assert data["unknown"] == ["q9"]
    lines = run_command("evaluate", run, "--qrels", qrels).splitlines()
    assert [line.split()[:2] for line in lines[1:3]] == [["q1", "1"], ["q2", "1"]]


def test_a_negative_label_is_none_as_to_trec_eval_and_numbers_are_read_as_pandas_writes_them(
    tmp_path,
):
    qrels, run = tmp_path / "test.qrels", tmp_path / "run.txt"
    qrels.write_text("q1 0 a 1.0\nq1 0 b -1\nq1 0 c 0.0\nq1 0 d 2.\nq2 0 a -2.0\n")
    run.write_text("".join(f"q1 Q0 {one} {n} {-n} x\n" for n, one in enumerate("badc", 1)))
    arguments = ["--json", "--measures", "Bpref,Judged@4"]
    data = json.loads(run_command("evaluate", run, "--qrels", qrels, *arguments))
    assert data["queries"][0]["scores"] == {"Bpref": 1.0, "Judged@4": 0.75}
    assert data["without_positives"] == ["q2"]


def test_qrels_in_numbers_score_as_the_release(release, run_file, tmp_path):
    qrels = tmp_path / "qrels.txt"
    qrels.write_text("30 0 1 1\n30 0 2 1\n31 0 4 1\n")
    one, other = (
        json.loads(run_command("evaluate", run_file, "--release", path, "--json"))
        for path in (release, qrels)
    )
    assert one["mean"] == other["mean"]
    # Several runs' ties go by the ids as numbers: 9 before 10.
    run_file.write_text("30 Q0 10 1 1 x\n30 Q0 9 2 1 x\n")
    qrels.write_text("30 0 9 1\n")
    data = json.loads(run_command("evaluate", run_file, "--qrels", qrels, "--json", "--k", "1"))
    assert data["mean"]["P@1"] == 1.0


def test_equal_scores_that_cross_a_cutoff_are_named_and_settled_as_others_do(release, tmp_path):
    run = tmp_path / "ties.txt"
    run.write_text("30 Q0 9 1 0.5 x\n30 Q0 2 2 0.5 x\n31 Q0 4 1 1 x\n")
    arguments = ["evaluate", run, "--release", release, "--measures", "P@1,R@2"]
    lines = run_command(*arguments).splitlines()
    assert any("equal scores moves scores of 1 of the queries" in line for line in lines)
    assert "  P@1          0.5000 to 1.0000" in lines
    assert not any(line.startswith("  R@2          0") and " to " in line for line in lines)
    ties = json.loads(run_command(*arguments, "--json"))["ties"]
    assert ties == {"queries": [30], "mean": {"P@1": [0.5, 1.0]}}
    means = {
        rule: json.loads(run_command(*arguments, "--json", "--ties", rule))["mean"]["P@1"]
        for rule in ("id", "trec_eval", "average")
    }
    # 2 before 9; "9" before "2"; each half the time.
    assert means == {"id": 1.0, "trec_eval": 0.5, "average": 0.75}
    with pytest.raises(CommandError, match="ERR@5 over all orders"):
        run_command(*arguments[:-1], "ERR@5", "--ties", "average")

"""BEIR's layout: read as its loader does, and imported; what is wrong is named by file and line."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from benchmark.releases.formats.base import Access
from benchmark.releases.formats.beir import write
from benchmark.releases.importing.import_snapshot import CONSENSUS_RULE, QRELS_RULE
from benchmark.releases.importing.layout_files import LayoutRefused, layout_read
from benchmark.releases.importing.services import benchmark_import
from benchmark.releases.models import Release
from benchmark.releases.services import release_verify
from benchmark.releases.snapshot.snapshot import Snapshot
from retrieval.corpus.models import Image
from tests.benchmark.snapshots import COMMAS, UNJUDGED, no_image_files, toy_pairs, toy_snapshot

HEADER = "query-id\tcorpus-id\tscore"
FOX = {"_id": "7", "text": "a fox"}
OWL = {"_id": 9, "text": "an owl ", "metadata": {"supercategory": "Species", "category": "Owls"}}
CORPUS = [{"_id": str(number), "title": "", "text": "", "metadata": {}} for number in range(1, 7)]


def write_beir(folder: Path, **changes: Any) -> Path:
    """A benchmark of two queries; a file that is None isn't written."""
    files = {
        "queries.jsonl": [FOX, OWL],
        "qrels/dev.tsv": ["7\t1\t2", "7\t2\t0"],
        "qrels/test.tsv": ["9\t1\t1", "9\t3\t1"],
        "corpus.jsonl": CORPUS,
        **changes,
    }
    for name, rows in files.items():
        if rows is None:
            continue
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        lines = [HEADER, *lines] if path.suffix == ".tsv" else lines
        path.write_text("\n".join((*lines, "")), encoding="utf-8")
    return folder


def jsonl(path: Path) -> dict[str, dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        return {one["_id"]: one for one in map(json.loads, file)}


def qrels(path: Path) -> dict[str, dict[str, int]]:
    """As BEIR's GenericDataLoader reads them: a header, then three fields a row."""
    found: dict[str, dict[str, int]] = {}
    with path.open(encoding="utf-8") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_MINIMAL)
        assert next(rows) == HEADER.split("\t")
        for query_id, corpus_id, score in rows:
            found.setdefault(query_id, {})[corpus_id] = int(score)
    return found


def test_a_release_is_read_as_beirs_loader_does(tmp_path: Path) -> None:
    files = write(toy_snapshot(tmp_path / "snapshot"), tmp_path, no_image_files)
    assert {(file.name, file.access) for file in files} == {
        ("beir/corpus.jsonl", Access.OPEN),
        ("beir/queries.jsonl", Access.OPEN),
        ("beir/qrels/validation.tsv", Access.OPEN),
        ("beir/qrels/test.tsv", Access.LABELS),
    }
    corpus, queries = jsonl(tmp_path / "beir/corpus.jsonl"), jsonl(tmp_path / "beir/queries.jsonl")
    validation, test = (
        qrels(tmp_path / f"beir/qrels/{name}.tsv") for name in ("validation", "test")
    )
    assert validation["3"] == {"1": 1, "2": 1, "3": 0, "4": 0}
    assert test["8"] == {"1": 1, "6": 0, "7": 1, "8": 0}
    assert (set(validation), set(test)) == ({"3", "21"}, {"8", "13"})
    assert {one for rows in (*validation.values(), *test.values()) for one in rows} <= set(corpus)
    assert (queries["3"]["text"], queries["34"]["text"]) == (COMMAS, UNJUDGED)
    assert corpus["9"]["title"] == "Aptenodytes forsteri"
    assert corpus["9"]["text"].startswith("皇帝ペンギン, Animalia, Chordata")
    assert corpus["5"]["metadata"]["file_name"] == 'train/a, "b"/5 🦊.jpg'


def test_what_goes_out_comes_in_again(tmp_path: Path) -> None:
    write(toy_snapshot(tmp_path / "snapshot"), tmp_path, no_image_files)
    layout = layout_read(tmp_path / "beir")
    splits = {one.query.query_id: one.query.split for one in layout.queries}
    assert splits == {3: "val", 8: "test", 13: "test", 21: "val", 34: "test"}
    assert (layout.queries[0].query.query_text, layout.queries[0].query.iconic_group) == (
        COMMAS,
        "Birds",
    )
    columns = ("query_id", "image_id", "relevant")
    pairs = zip(*(layout.pairs[name].to_pylist() for name in columns), strict=True)
    assert list(pairs) == [(one.query_id, one.image_id, one.relevant) for one in toy_pairs()]
    assert layout.judged_splits == {"val", "test"}
    assert dict(layout.paths())[5] == 'train/a, "b"/5 🦊.jpg'


@pytest.mark.django_db
def test_a_folder_becomes_a_release_that_says_what_it_cant_know(
    images: list[Image], var_dir: Path, tmp_path: Path
) -> None:
    corpus = [*CORPUS[:2], {"_id": "3", "metadata": {"file_name": "train/a, b/3.jpg"}}]
    folder = write_beir(tmp_path / "owls", **{"corpus.jsonl": corpus})
    found = benchmark_import(directory=folder)
    release, snapshot = found.release, Snapshot(found.release.snapshot_directory)
    assert (str(release), release.val_queries, release.test_queries) == ("owls v1", 1, 1)
    assert (release.positives, found.found.by_path, found.found.absent) == (3, 1, 2)
    fox, owl = snapshot.queries.values()
    assert (fox.split, fox.supercategory, fox.category) == ("val", "not known", "not known")
    assert (owl.split, owl.text, owl.category, owl.iconic_group) == (
        "test",
        "an owl ",
        "Owls",
        None,
    )
    # The test split names relevant images alone, so not every judged one is known.
    assert (snapshot.header.negatives_known, snapshot.header.consensus) == (False, QRELS_RULE)
    assert [(one.image_id, one.relevant) for one in snapshot.pairs()] == [
        (1, True), (2, False), (1, True), (3, True),
    ]  # fmt: skip
    assert release_verify(release=release) == []
    call_command("import_benchmark", str(folder), "--dataset", Image.objects.first().dataset)
    assert Release.objects.latest("pk").version == 2


@pytest.mark.django_db
def test_scores_above_0_alone_leave_the_others_unknown(var_dir: Path, tmp_path: Path) -> None:
    folder = write_beir(tmp_path / "owls", **{"qrels/dev.tsv": None, "corpus.jsonl": None})
    snapshot = Snapshot(benchmark_import(directory=folder).release.snapshot_directory)
    # The query that no qrels name is left out.
    assert list(snapshot.queries) == [9]
    assert snapshot.header.consensus == CONSENSUS_RULE


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"qrels/dev.tsv": None, "qrels/test.tsv": None}, "qrels, line 1: there is neither"),
        (
            {"qrels/validation.tsv": []},
            "qrels, line 1: which of qrels/validation.tsv, qrels/dev.tsv",
        ),
        ({"qrels/dev.tsv": ["7\td1\t1"]}, "qrels/dev.tsv, line 2, corpus-id: 'd1' is not a whole"),
        ({"qrels/dev.tsv": ["q7\t1\t1"]}, "qrels/dev.tsv, line 2, query-id: 'q7' is not a whole"),
        (
            {"qrels/dev.tsv": ["8\t1\t1"]},
            "qrels/dev.tsv, line 2, query-id: 8 isn't in queries.jsonl",
        ),
        ({"qrels/dev.tsv": ["7\t99\t1"]}, "qrels/dev.tsv, line 2, corpus-id: 99 isn't in corpus"),
        (
            {"qrels/dev.tsv": ["7\t1\t0.5"]},
            "qrels/dev.tsv, line 2, relevance: '0.5' is not a whole",
        ),
        ({"qrels/dev.tsv": ["7\t1"]}, "qrels/dev.tsv, line 2: 2 fields where 3 are needed"),
        (
            {"qrels/dev.tsv": ["7\t1\t1", "7\t1\t0"]},
            "qrels/dev.tsv, line 3, corpus-id: image 1 stands twice for the query 7",
        ),
        (
            {"qrels/test.tsv": ["9\t1\t1", "7\t1\t1"]},
            "qrels/test.tsv, line 3, query-id: 7 is in qrels/dev.tsv too",
        ),
        ({"queries.jsonl": [FOX, "{"]}, "queries.jsonl, line 2: not a JSON object"),
        ({"queries.jsonl": [FOX, OWL, FOX]}, "queries.jsonl, line 3, _id: 7 is on line 1 too"),
        (
            {"queries.jsonl": [FOX | {"_id": "q7"}]},
            "queries.jsonl, line 1, _id: 'q7' is not a whole",
        ),
        ({"queries.jsonl": [FOX | {"text": " "}, OWL]}, "queries.jsonl, line 1, text: the text is"),
        ({"queries.jsonl": [FOX | {"text": 5}, OWL]}, "queries.jsonl, line 1, text: is not a text"),
        (
            {"queries.jsonl": [FOX | {"metadata": {"category": 5}}, OWL]},
            "queries.jsonl, line 1, category: is not a text",
        ),
        (
            {"corpus.jsonl": [*CORPUS, {"_id": "3", "metadata": {"file_name": 3}}]},
            "corpus.jsonl, line 7, file_name: is not a text",
        ),
    ],
)
def test_what_is_wrong_is_named_by_file_and_line(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(LayoutRefused) as refusal:
        layout_read(write_beir(tmp_path, **changes))
    assert any(str(error).startswith(message) for error in refusal.value.errors), refusal.value


@pytest.mark.django_db
def test_a_refused_folder_leaves_nothing_and_says_who_takes_texts(
    var_dir: Path, tmp_path: Path
) -> None:
    folder = write_beir(tmp_path, **{"qrels/dev.tsv": ["7\ta/fox\t1"]})
    with pytest.raises(CommandError, match="`evaluate` takes any text"):
        call_command("import_benchmark", str(folder))
    assert not Release.objects.exists()

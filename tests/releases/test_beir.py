"""BEIR's layout: read as its loader does, and imported; what is wrong is named by file and line."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from releases.formats.base import Access
from releases.formats.beir import write
from releases.importing.layout_files import LayoutRefused, layout_read
from tests.releases.layouts import CORPUS, FOX_QUERY, HEADER, OWL, write_beir
from tests.releases.snapshots import COMMAS, UNJUDGED, format_files, toy_pairs, toy_snapshot

pytestmark = pytest.mark.pure


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
    files = format_files(write, toy_snapshot(tmp_path / "snapshot"), tmp_path)
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


@pytest.mark.parametrize("test_labels", ["public", "hidden"])
def test_what_goes_out_comes_in_again(tmp_path: Path, test_labels: str) -> None:
    snapshot = toy_snapshot(tmp_path / "snapshot", test_labels=test_labels)
    format_files(write, snapshot, tmp_path)
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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"qrels/dev.tsv": None, "qrels/test.tsv": None}, "qrels, line 1: there is neither"),
        (
            {"qrels/validation.tsv": []},
            "qrels, line 1: which of qrels/validation.tsv, qrels/dev.tsv",
        ),
        ({"qrels/dev.tsv": ["7\td1\t1"]}, "qrels/dev.tsv, line 2, corpus-id: 'd1' is not a whole"),
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
            "qrels/dev.tsv, line 3, corpus-id: image 1 is listed twice for query 7",
        ),
        (
            {"qrels/test.tsv": ["9\t1\t1", "7\t1\t1"]},
            "qrels/test.tsv, line 3, query-id: 7 is in qrels/dev.tsv too",
        ),
        ({"queries.jsonl": [FOX_QUERY, "{"]}, "queries.jsonl, line 2: not a JSON object"),
        (
            {"queries.jsonl": [FOX_QUERY, OWL, FOX_QUERY]},
            "queries.jsonl, line 3, _id: 7 is on line 1 too",
        ),
        (
            {"queries.jsonl": [FOX_QUERY | {"_id": "q7"}]},
            "queries.jsonl, line 1, _id: 'q7' is not a whole",
        ),
        (
            {"queries.jsonl": [FOX_QUERY | {"text": " "}, OWL]},
            "queries.jsonl, line 1, text: the text is",
        ),
        (
            {"queries.jsonl": [FOX_QUERY | {"metadata": {"category": 5}}, OWL]},
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

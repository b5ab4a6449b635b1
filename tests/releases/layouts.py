"""Benchmarks in INQUIRE's layout and in BEIR's, made for tests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

QUERIES = "query_id,query_text,supercategory,category,iconic_group"
FOX = "Species,Species ID,Mammals"
ANNOTATIONS = "query_id,image_id,image_path"


def write_layout(
    directory: Path,
    *,
    val: Iterable[str] = ("7,a fox," + FOX,),
    test: Iterable[str] = ("9,a red fox," + FOX,),
    annotations: Iterable[str] = ("7,1,a/1.jpg", "9,1,a/1.jpg", "9,2,a/2.jpg"),
    header: str = ANNOTATIONS,
) -> Path:
    """A small benchmark: rows of each file without their headers."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, head, rows in (
        ("inquire_queries_val.csv", QUERIES, val),
        ("inquire_queries_test.csv", QUERIES, test),
        ("inquire_annotations.csv", header, annotations),
    ):
        (directory / name).write_text("\n".join((head, *rows, "")), encoding="utf-8")
    return directory


#: Of BEIR's layout.
HEADER = "query-id\tcorpus-id\tscore"
FOX_QUERY = {"_id": "7", "text": "a fox"}
OWL = {"_id": 9, "text": "an owl ", "metadata": {"supercategory": "Species", "category": "Owls"}}
CORPUS = [{"_id": str(number), "title": "", "text": "", "metadata": {}} for number in range(1, 7)]


def write_beir(folder: Path, **changes: Any) -> Path:
    """A benchmark of two queries; a file that is None isn't written."""
    files = {
        "queries.jsonl": [FOX_QUERY, OWL],
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

"""Benchmarks in INQUIRE's layout, made for tests."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

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

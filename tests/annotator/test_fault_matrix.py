"""The fault matrix of docs/operations.md names tests that exist, on each of its lines."""

from __future__ import annotations

import ast
import re

import pytest

from tests.processes import ROOT

TEXT = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
MATRIX = TEXT.partition("### Fault matrix")[2].partition("\n#")[0]
LINES = [line.strip("|").split(" | ") for line in MATRIX.splitlines() if line.startswith("| ")][1:]
NAME = re.compile(r"`([\w/]+\.py)::(test_\w+)`")


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[0].strip())
def test_a_line_is_whole_and_names_tests_that_exist(line: list[str]) -> None:
    assert len(line) == 5
    assert all(cell.strip() for cell in line)
    named = NAME.findall(line[-1])
    assert len(named) == line[-1].count("`") / 2 >= 1
    for path, name in named:
        tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
        functions = {one.name for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)}
        assert name in functions


def test_every_part_has_a_line() -> None:
    parts = (
        *("PostgreSQL", "PgBouncer", "Redis", "worker", "encoder of texts", "web server"),
        *("disk is full", "disk is slow", "S3", "matrix", "identity provider", "mail server"),
        *("multimodal", "power cut", "clock", "browser"),
    )
    assert [part for part in parts if not any(part in line[0] for line in LINES)] == []

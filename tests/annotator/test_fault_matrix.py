"""The fault matrix of docs/operations.md names tests that exist, on each of its lines."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests import ROOT

pytestmark = pytest.mark.pure

TEXT = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
MATRIX = TEXT.partition("### Fault matrix")[2].partition("\n#")[0]
LINES = [line.strip("|").split(" | ") for line in MATRIX.splitlines() if line.startswith("| ")][1:]
NAME = re.compile(r"`([\w/]+\.py)::(test_\w+)`")


@cache
def functions(path: str) -> set[str]:
    """The functions of a file below tests/; none where there is no such file."""
    file = ROOT / "tests" / path
    tree = ast.parse(file.read_text(encoding="utf-8") if file.exists() else "")
    return {one.name for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)}


def test_each_line_is_whole_and_names_tests_that_exist() -> None:
    assert len(LINES) > 15
    missing = []
    for line in LINES:
        assert len(line) == 5, line
        assert all(cell.strip() for cell in line), line
        named = NAME.findall(line[-1])
        assert len(named) == line[-1].count("`") / 2 >= 1, line
        missing += [f"{path}::{name}" for path, name in named if name not in functions(path)]
    assert missing == []

"""Templates are laid out for those who review them: short lines, each with one condition."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import ROOT

pytestmark = pytest.mark.pure

LONGEST = 140
CONDITION = re.compile(r"{%\s*if\s")


def templates() -> list[Path]:
    """All templates of pages and of files that are pages."""
    folders = ("templates", "*/templates", "extras/*/templates")
    return [path for folder in folders for path in ROOT.glob(f"{folder}/**/*.html")]


def awkward(text: str) -> list[int]:
    """The numbers of lines that are too long, or hold more than one condition."""
    return [
        number
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) > LONGEST or len(CONDITION.findall(line)) > 1
    ]


def test_lines_are_short_and_hold_one_condition():
    found = {str(path.relative_to(ROOT)): awkward(path.read_text()) for path in templates()}
    assert len(found) > 100
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_long_lines_and_chains_are_found():
    chain = "{% if a %}x{% endif %}{%if b %}y{% endif %}"
    branches = "{% if a %}x{% elif b %}y{% else %}z{% endif %}"
    assert awkward(f"{branches}\n{chain}\n{'é' * LONGEST}\n{'é' * (LONGEST + 1)}") == [2, 4]

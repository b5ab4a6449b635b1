"""Docstrings and documents name files and modules that are there."""

import os
import re
from functools import cache
from pathlib import Path

import pytest

from tests import ROOT
from tests.annotator.test_layers import OWN

pytestmark = pytest.mark.pure

IGNORED = {"node_modules", "migrations", "var", "__pycache__"}
#: What a release, another project, a person's folder or an example has.
ELSEWHERE = {
    "algorithms.py", "DATASHEET.md", "difference.md", "difference_test.md", "huggingface/README.md",
    "task.py",
    "extras/tempo/__init__.py", "extras/tempo/apps.py", "extras/tempo/urls.py",
    "extras/tempo/templates/tempo/tempo.html", "extras/tempo/views.py",
}  # fmt: skip
QUOTED = re.compile(r"(?<!`)`{1,2}([\w./-]+)(?:::\w+)?`{1,2}")
FILE = re.compile(r"[\w/.-]+\.(py|js|css|html|md|toml|yaml)")
MODULE = re.compile(rf"({'|'.join(sorted(OWN))})(\.\w+)+")


@cache
def files() -> list[str]:
    """All of the project's files, with "/"."""
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [
            one for one in folders if one == ".ci" or (one not in IGNORED and one[0] != ".")
        ]
        found += [(Path(folder) / name).relative_to(ROOT).as_posix() for name in names]
    return found


def is_there(name: str) -> bool:
    """Whether a file, or what a module holds, has this name."""
    if FILE.fullmatch(name):
        return name in ELSEWHERE or any(f"/{one}".endswith(f"/{name}") for one in files())
    if not MODULE.fullmatch(name):
        return True
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        place = "/".join(parts[:length])
        for module in (f"{place}.py", f"{place}/__init__.py"):
            if (ROOT / module).is_file():
                text = (ROOT / module).read_text()
                return length == len(parts) or re.search(rf"\b{parts[length]}\b", text) is not None
    return False


def test_what_is_named_is_there() -> None:
    texts = [Path(one) for one in files() if one.endswith((".py", ".md", ".js", ".css"))]
    assert len(texts) > 1000
    missing = {
        f"{path}: {name}"
        for path in texts
        for name in QUOTED.findall((ROOT / path).read_text())
        if not is_there(name)
    }
    assert missing == set()


@pytest.mark.parametrize(
    "name", ["core/nowhere.py", "core.nowhere", "core.files.nothing", "labeling.nowhere.models"]
)
def test_what_is_gone_is_seen(name: str) -> None:
    assert not is_there(name)

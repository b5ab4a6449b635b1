"""What this application is called, and which version runs."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Final

_PROJECT: Final = Path(__file__).resolve().parents[3] / "pyproject.toml"


@cache
def software() -> str:
    """Name and version, such as "inquire-annotator 0.1.0", as pyproject.toml has them."""
    project = tomllib.loads(_PROJECT.read_text(encoding="utf-8"))["project"]
    return f"{project['name']} {project['version']}"

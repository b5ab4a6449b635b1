"""The wheel: everything is in it, and its command works from any folder.

`.ci/fresh_machine.py` installs it in an empty environment and serves its pages.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from core import __version__
from tests import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The application's wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT]
    subprocess.run(build, check=True, capture_output=True, timeout=300)
    (made,) = folder.glob(f"inquire_annotator-{__version__}-*.whl")
    return made


def test_everything_is_in_it_and_its_command_needs_no_checkout(wheel: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packed)
    files = packed / "annotator/files"
    for folder in ("templates", "static"):
        ours = {str(one.relative_to(ROOT)) for one in (ROOT / folder).rglob("*") if one.is_file()}
        there = {str(one.relative_to(files)) for one in files.rglob("*")}
        assert ours - there == set(), folder
    assert list(packed.glob("demo/model/*.safetensors"))
    assert not (packed / "demo/training").exists()
    [points] = packed.glob("*.dist-info/entry_points.txt")
    assert "inquire-annotator = annotator.__main__:main" in points.read_text()
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": str(packed)}
    for name in ("VAR_DIR", "DJANGO_SETTINGS_MODULE", "XDG_DATA_HOME"):
        environment.pop(name, None)
    helped = subprocess.run(
        [sys.executable, "-m", "annotator", "help"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert helped.returncode == 0, helped.stderr
    for name in ("serve", "demo", "import_images", "export_release", "create_user"):
        assert re.search(rf"^\s+{name}$", helped.stdout, re.MULTILINE)
    assert (tmp_path / ".local/share/inquire-annotator").is_dir()

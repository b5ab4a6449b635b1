"""The wheel: everything is in it, and its command works from any folder."""

from __future__ import annotations

import os
import re
import signal
import site
import subprocess
import sys
import urllib.request
import venv
import zipfile
from pathlib import Path

import pytest

from core import __version__
from tests import ROOT
from tests.processes import free_port, wait_for


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The application's wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT]
    subprocess.run(build, check=True, capture_output=True, timeout=300)
    (made,) = folder.glob(f"inquire_annotator-{__version__}-*.whl")
    return made


@pytest.fixture(scope="module")
def command(wheel: Path) -> Path:
    """`inquire-annotator`, installed from the wheel beside the packages of this environment."""
    folder = wheel.parent
    venv.create(folder / "environment", with_pip=False)
    (packages,) = folder.glob("environment/lib/python*/site-packages")
    (packages / "others.pth").write_text("\n".join(site.getsitepackages()))
    python = folder / "environment" / "bin" / "python"
    install = [python, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet", wheel]
    subprocess.run(install, check=True, capture_output=True, timeout=300)
    return python.with_name("inquire-annotator")


@pytest.mark.faults
def test_an_installed_application_serves_its_pages_from_any_folder(
    command: Path, tmp_path: Path
) -> None:
    port = free_port()
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "VAR_DIR": str(tmp_path / "state"),
        "PORT": str(port),
        "EMBEDDING_MODEL": "demo",
        "DJANGO_SETTINGS_MODULE": "annotator.settings",
    }
    output = tmp_path / "output.txt"
    with output.open("wb") as file:
        served = subprocess.Popen(
            [command, "serve"], cwd=tmp_path, env=environment, stdout=file, stderr=file
        )

    def page(path: str) -> str:
        assert served.poll() is None, output.read_text()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
                return str(answer.read().decode())
        except OSError:
            return ""

    try:
        assert "Log in" in wait_for(lambda: page("/login/"), seconds=120, what="the log-in page")
        style = re.search(r'href="(/static/[^"]+\.css)"', page("/login/"))
        assert style is not None
        assert "color" in page(style[1])
        model = command.parent.parent.glob("lib/python*/site-packages/demo/model/*.safetensors")
        assert list(model)
    finally:
        served.send_signal(signal.SIGTERM)
        assert served.wait(60) is not None


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

"""What needs an optional package says in a sentence which one to install."""

from __future__ import annotations

import runpy
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from annotator.tracing import start_tracing
from curation.sources import camtrap
from extras.boxes.detection import figures_of
from extras.faces.faces import opencv_detector
from retrieval.images import decoding
from tests import ROOT
from tests.curation.archives import camtrap as package
from tests.curation.archives import shot, sighting

pytestmark = pytest.mark.pure


class Missing:
    """Stands in front of all finders of modules, and finds none of some packages."""

    def __init__(self, *packages: str) -> None:
        self.packages = packages

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] in self.packages:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


HEIC = b"\0\0\0\x18ftypheic" + bytes(99)


def stage_camera_traps(folder: Path) -> None:
    path = package(folder / "package", [shot("one")], [sighting("one", name="Vulpes vulpes")])
    camtrap.stage(duckdb.connect(), path, folder / "unpacked")


#: By optional dependency of pyproject.toml: a module of it, and what needs it.
NEEDING: dict[str, tuple[str, Callable[[Path], object]]] = {
    "heic": ("pillow_heif", lambda _: runpy.run_path(decoding.__file__)["_open"](HEIC)),
    "boxes": ("pycocotools", lambda _: figures_of({}, [])),
    "camtrap": ("frictionless", stage_camera_traps),
    "faces": ("cv2", lambda folder: opencv_detector(folder / "model.onnx", 0.8)),
    "otel": ("opentelemetry", lambda _: start_tracing()),
}


def test_every_optional_dependency_is_tried() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert NEEDING.keys() == declared["optional-dependencies"].keys()


@pytest.mark.parametrize("extra", NEEDING)
def test_a_missing_package_is_named_with_what_to_install(
    extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, needing = NEEDING[extra]
    for name in [one for one in sys.modules if one.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Missing(module), *sys.meta_path])
    # A setting's error ends the program.
    with pytest.raises((Exception, SystemExit)) as refused:
        needing(tmp_path)
    said = str(refused.value)
    sentence = f"A package is missing (No module named '{module}'): "
    assert said.endswith(f"{sentence}pip install 'inquire-annotator[{extra}]'")
    assert "\n" not in said

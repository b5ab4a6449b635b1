"""Names of models: "demo", a model of open_clip with a tag, one of a hub, or local files.

Nothing is loaded here but configurations, and torch is not imported: `retrieval.encoding.loading`
loads weights.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import retrieval
from core.errors import Invalid

DEMO_MODEL_DIR = Path(retrieval.__file__).parents[1] / "demo" / "model"
CONFIG_NAME = "open_clip_config.json"
WEIGHTS_NAME = "open_clip_model.safetensors"
#: What a folder's weights may be called; the first that is there is read, as open_clip does.
WEIGHTS_NAMES = (
    WEIGHTS_NAME, "open_clip_pytorch_model.safetensors", "open_clip_pytorch_model.bin",
    "open_clip_pytorch_model.pth", "model.safetensors", "pytorch_model.bin", "pytorch_model.pth",
    "model.pth",
)  # fmt: skip
HUB = "hf-hub:"
LOCAL = "local-dir:"
RANDOM_TAG = "random"
RANDOM_SEED = 20240
HUB_ADDRESS = "https://huggingface.co/"
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
ACCEPTED = (
    'accepted are "demo", "NAME/TAG" (an open_clip model and pretrained tag), "NAME/random", '
    f'"{HUB}OWNER/NAME" (of huggingface.co, with {CONFIG_NAME}), a directory holding {CONFIG_NAME} '
    f'and {WEIGHTS_NAME} (or "{LOCAL}DIRECTORY"), or "/path/config.json:/path/weights.safetensors"'
)


class ModelSpecError(Invalid, ValueError):
    """A model spec names nothing that can be loaded; the message says what is accepted."""

    def __init__(self, spec: str, reason: str) -> None:
        super().__init__({"model": [f"Model {spec!r}: {reason}; {ACCEPTED}."]})
        self.spec = spec
        self.reason = reason


@dataclass(frozen=True)
class ModelDescription:
    """Facts of a model that are known without loading its weights."""

    spec: str
    name: str
    dimension: int
    image_size: int
    context_length: int


@dataclass(frozen=True)
class Source:
    """A resolved spec: an open_clip name and tag, or a configuration with a weights file, which of
    a repository of the hub is fetched when it is loaded."""

    spec: str
    name: str
    tag: str = ""
    hub: str = ""
    """OWNER/NAME on huggingface.co."""
    config: Path | None = None
    weights: Path | None = None


def describe(spec: str) -> ModelDescription:
    """Return a model's name and sizes from its configuration alone.

    Raises ModelSpecError for a spec of no known form, an unknown name or a missing file.
    """
    if (base := base_of(spec)) != spec:
        return replace(describe(base), spec=spec, name=Path(spec).name)
    source = resolve(spec)
    config = model_config(source)
    vision = config.get("vision_cfg", {})
    size = vision.get("image_size", 224)
    return ModelDescription(
        spec,
        source.name,
        int(config["embed_dim"]),
        int(size[0] if isinstance(size, list) else size),
        int(config.get("text_cfg", {}).get("context_length", 77)),
    )


def resolve(spec: str) -> Source:
    """Return what a spec names, looking for files but not into them; ModelSpecError as above.

    A model of the hub has its configuration fetched, which is small. Whether open_clip's model has
    such a pretrained tag is seen when it is loaded.
    """
    cleaned = spec.strip()
    if cleaned == "demo":
        return _directory(spec, "demo", DEMO_MODEL_DIR)
    if not cleaned:
        raise ModelSpecError(spec, "the name is empty")
    if cleaned.startswith(HUB):
        return _of_hub(spec, cleaned.removeprefix(HUB))
    if cleaned.startswith(LOCAL):
        folder = Path(cleaned.removeprefix(LOCAL))
        return _directory(spec, folder.name, folder)
    if ":" in cleaned:
        config, _, weights = cleaned.partition(":")
        return _files(spec, Path(weights).stem, Path(config), Path(weights))
    if Path(cleaned).is_absolute() or cleaned.startswith("."):
        return _directory(spec, Path(cleaned).name, Path(cleaned))
    name, _, tag = cleaned.rpartition("/")
    if not name or not tag or "/" in name:
        raise ModelSpecError(spec, "it is not of a known form")
    if not _published_config(name).is_file():
        raise ModelSpecError(spec, f"open_clip knows no model called {name!r}")
    return Source(spec, cleaned, tag)


def _of_hub(spec: str, name: str) -> Source:
    """A repository of huggingface.co that open_clip's authors or others published for it."""
    if not _REPOSITORY.fullmatch(name):
        raise ModelSpecError(spec, f"{name!r} is not OWNER/NAME")
    # Slow to import.
    from huggingface_hub import hf_hub_download

    try:
        config = hf_hub_download(name, CONFIG_NAME)
    except (OSError, ValueError) as error:
        reason = f"{CONFIG_NAME} of {name} could not be fetched ({first_line(error)})"
        advice = f"copy {HUB_ADDRESS}{name} into a folder, and name that"
        raise ModelSpecError(spec, f"{reason}; without a connection {advice}") from error
    return Source(spec, f"{HUB}{name}", hub=name, config=Path(config))


def first_line(error: Exception) -> str:
    """What an error says, in one line."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _published_config(name: str) -> Path:
    """Return the path of open_clip's configuration of a model, without importing open_clip."""
    found = find_spec("open_clip")
    assert found is not None
    assert found.submodule_search_locations
    return Path(found.submodule_search_locations[0]) / "model_configs" / f"{name}.json"


@cache
def published_names() -> tuple[str, ...]:
    """Return the models that open_clip publishes with weights, as "NAME/TAG", in its order.

    Its table is read as text: importing open_clip imports torch, which web processes don't have.
    """
    tree = ast.parse(_published_config("").parents[1].joinpath("pretrained.py").read_text("utf-8"))
    values = {
        assigned.targets[0].id: assigned.value
        for assigned in tree.body
        if isinstance(assigned, ast.Assign) and isinstance(assigned.targets[0], ast.Name)
    }
    table = values["_PRETRAINED"]
    assert isinstance(table, ast.Dict)
    names = []
    for key, value in zip(table.keys, table.values, strict=True):
        tags = values[value.id] if isinstance(value, ast.Name) else value
        assert isinstance(key, ast.Constant)
        assert isinstance(key.value, str)
        assert isinstance(tags, ast.Call)
        for tag in tags.keywords:
            names.append(f"{key.value}/{tag.arg}")
            options = tag.value.keywords if isinstance(tag.value, ast.Call) else []
            if any(option.arg == "quick_gelu" for option in options):
                names.append(f"{key.value}-quickgelu/{tag.arg}")
    return tuple(name for name in names if _published_config(name.rpartition("/")[0]).is_file())


BASES: list[Callable[[str], str | None]] = []
"""Kinds of models whose images and texts another one embeds: each returns that one's spec, or
None for a spec of another kind. Extras append theirs."""


def base_of(spec: str) -> str:
    """The model that embeds a model's images and texts: nearly always itself."""
    return next(filter(None, (find(spec) for find in BASES)), spec)


def _directory(spec: str, name: str, directory: Path) -> Source:
    if not directory.is_dir():
        raise ModelSpecError(spec, f"there is no directory {directory}")
    if base_of(str(directory)) != str(directory):
        raise ModelSpecError(spec, "its embeddings are made from those of its base, by a command")
    there = (directory / name for name in WEIGHTS_NAMES if (directory / name).is_file())
    weights = next(there, directory / WEIGHTS_NAME)
    return _files(spec, name, directory / CONFIG_NAME, weights)


def _files(spec: str, name: str, config: Path, weights: Path) -> Source:
    for path in (config, weights):
        if not path.is_file():
            raise ModelSpecError(spec, f"there is no file {path}")
    return Source(spec, name, config=config, weights=weights)


def read_config(source: Source) -> dict[str, Any]:
    """Return `model_cfg` and `preprocess_cfg` of a source with a configuration file of its own."""
    assert source.config is not None
    try:
        content = json.loads(source.config.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelSpecError(source.spec, f"{source.config} is not JSON ({error})") from error
    if not isinstance(content, dict):
        raise ModelSpecError(source.spec, f"{source.config} holds no JSON object")
    model = content.get("model_cfg", content)
    if not isinstance(model, dict) or not {"embed_dim", "vision_cfg", "text_cfg"} <= set(model):
        raise ModelSpecError(
            source.spec, f"{source.config} lacks embed_dim, vision_cfg or text_cfg"
        )
    return {"model_cfg": model, "preprocess_cfg": content.get("preprocess_cfg", {})}


def model_config(source: Source) -> dict[str, Any]:
    """Return the architecture of a source, as open_clip writes it."""
    if source.config is not None:
        return dict(read_config(source)["model_cfg"])
    published = _published_config(source.name.rpartition("/")[0])
    return dict(json.loads(published.read_text(encoding="utf-8")))

"""Names of models: "demo", a model of open_clip with a tag, one of a hub, or local files.

Nothing is loaded here but configurations, and torch is not imported: `retrieval.encoding.loading`
loads weights.
"""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

from django.conf import settings

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
_REPOSITORY = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)
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
    """What a spec names: an open_clip name and tag, a repository of the hub, a folder, or a
    configuration with a weights file."""

    spec: str
    name: str
    tag: str = ""
    hub: str = ""
    """OWNER/NAME on huggingface.co, whose weights are fetched when they are loaded."""
    folder: Path | None = None
    config: Path | None = None
    weights: Path | None = None


def describe(spec: str) -> ModelDescription:
    """Return a model's name and sizes from its configuration alone, which is fetched if it is of
    the hub: no request waits for that, so requests take `described_here`.

    Raises ModelSpecError for a spec of no known form, an unknown name, a missing file, or a
    repository that can't be fetched from.
    """
    return _description(spec, fetched(resolve(base_of(spec))))


def described_here(spec: str) -> ModelDescription | None:
    """Return a model's name and sizes without a connection; None for a model of the hub whose
    configuration was never fetched to this machine. Raises ModelSpecError as `describe`.
    """
    source = resolve(base_of(spec))
    if source.hub:
        # Slow to import.
        from huggingface_hub import try_to_load_from_cache

        cached = try_to_load_from_cache(source.hub, CONFIG_NAME)
        if not isinstance(cached, str):
            return None
        source = replace(source, config=Path(cached))
    return _description(spec, source)


def _description(spec: str, source: Source) -> ModelDescription:
    config = model_config(source)
    try:
        size = config.get("vision_cfg", {}).get("image_size", 224)
        return ModelDescription(
            spec,
            source.name if source.spec == spec else parsed(spec).name,
            int(config["embed_dim"]),
            int(size[0] if isinstance(size, list) else size),
            int(config.get("text_cfg", {}).get("context_length", 77)),
        )
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise ModelSpecError(source.spec, f"its configuration isn't right ({error})") from error


def parsed(spec: str) -> Source:
    """Return what a spec names by its form alone: no file is looked for.

    Raises ModelSpecError for a spec of no known form and for a name that open_clip doesn't know.
    """
    cleaned = spec.strip()
    if cleaned == "demo":
        return Source(spec, "demo", folder=DEMO_MODEL_DIR)
    if not cleaned:
        raise ModelSpecError(spec, "the name is empty")
    if cleaned.startswith(HUB):
        name = cleaned.removeprefix(HUB)
        if not _REPOSITORY.fullmatch(name):
            raise ModelSpecError(spec, f"{name!r} is not OWNER/NAME")
        return Source(spec, cleaned, hub=name)
    if cleaned.startswith(LOCAL):
        folder = Path(cleaned.removeprefix(LOCAL))
        return Source(spec, folder.name, folder=folder)
    if ":" in cleaned:
        config, _, weights = cleaned.partition(":")
        return Source(spec, Path(weights).stem, config=Path(config), weights=Path(weights))
    if Path(cleaned).is_absolute() or cleaned.startswith("."):
        return Source(spec, Path(cleaned).name, folder=Path(cleaned))
    name, _, tag = cleaned.rpartition("/")
    if not name or not tag or "/" in name:
        raise ModelSpecError(spec, "it is not of a known form")
    if not os.path.isfile(_published_config(name)):
        raise ModelSpecError(spec, f"open_clip knows no model called {name!r}")
    return Source(spec, cleaned, tag)


def require_among_models(spec: str) -> None:
    """Refuse a spec that leads out of the folder of models, MODELS_DIR, also over a symbolic link:
    whether anything is there is not told. Raises ModelSpecError, also as `parsed`.
    """
    source = parsed(spec)
    if source.folder == DEMO_MODEL_DIR:
        return
    named = [path for path in (source.folder, source.config, source.weights) if path is not None]
    # A configuration names others of its folder, such as a tokenizer's.
    folder = source.folder or (source.config.parent if source.config else None)
    if any(map(_leads_out, named)) or (folder and any(map(_leads_out, _entries(folder)))):
        reason = f"only admins may name files of the server outside {settings.MODELS_DIR}"
        raise ModelSpecError(spec, reason)


def _leads_out(path: Path) -> bool:
    """Whether a path isn't below MODELS_DIR once all links are followed."""
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(settings.MODELS_DIR))


def _entries(folder: Path) -> list[Path]:
    """The files and folders in a folder; none where there is no such folder."""
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def resolve(spec: str) -> Source:
    """Return what a spec names, looking for files of this machine but not into them.

    Raises ModelSpecError for what isn't there. What the hub has is seen when it is `fetched`, and
    whether open_clip's model has such a pretrained tag when it is loaded.
    """
    source = parsed(spec)
    if source.folder is not None:
        source = _in_folder(source, source.folder)
    for path in (source.config, source.weights):
        if path is not None and not os.path.isfile(path):
            raise ModelSpecError(spec, f"there is no file {path}")
    return source


def _in_folder(source: Source, folder: Path) -> Source:
    if not os.path.isdir(folder):
        raise ModelSpecError(source.spec, f"there is no directory {folder}")
    if base_of(str(folder)) != str(folder):
        reason = "its embeddings are made from those of its base, by a command"
        raise ModelSpecError(source.spec, reason)
    there = (folder / name for name in WEIGHTS_NAMES if os.path.isfile(folder / name))
    weights = next(there, folder / WEIGHTS_NAME)
    return replace(source, config=folder / CONFIG_NAME, weights=weights)


def fetched(source: Source) -> Source:
    """Return a source with its configuration, which a job fetches if it is of the hub. Raises
    ModelSpecError."""
    if not source.hub:
        return source
    # Slow to import.
    from huggingface_hub import hf_hub_download

    try:
        config = hf_hub_download(source.hub, CONFIG_NAME)
    except (OSError, ValueError) as error:
        reason = f"{CONFIG_NAME} of {source.hub} could not be fetched ({first_line(error)})"
        advice = f"copy {HUB_ADDRESS}{source.hub} into a folder, and name that"
        message = f"{reason}; without a connection {advice}"
        raise ModelSpecError(source.spec, message) from error
    return replace(source, config=Path(config))


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


def read_config(source: Source) -> dict[str, Any]:
    """Return `model_cfg` and `preprocess_cfg` of a source with a configuration file of its own."""
    assert source.config is not None
    try:
        content = json.loads(source.config.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelSpecError(source.spec, f"{source.config} is not JSON ({error})") from error
    except OSError as error:
        reason = f"{source.config} can't be read ({error.strerror})"
        raise ModelSpecError(source.spec, reason) from error
    if not isinstance(content, dict):
        raise ModelSpecError(source.spec, f"{source.config} holds no JSON object")
    model = content.get("model_cfg", content)
    if not isinstance(model, dict) or not {"embed_dim", "vision_cfg", "text_cfg"} <= set(model):
        raise ModelSpecError(
            source.spec, f"{source.config} lacks embed_dim, vision_cfg or text_cfg"
        )
    if source.hub and (local := next(filter(_is_local, _texts(content)), None)):
        # Its author must not learn what lies on this machine.
        raise ModelSpecError(source.spec, f"its configuration names files outside it: {local!r}")
    return {"model_cfg": model, "preprocess_cfg": content.get("preprocess_cfg", {})}


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts in a value of JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def _is_local(text: str) -> bool:
    """Whether a text of a configuration can be a path that leads out of the model's folder."""
    return text.startswith(("/", "~", ".", LOCAL)) or ".." in PurePosixPath(text).parts


def model_config(source: Source) -> dict[str, Any]:
    """Return the architecture of a source, as open_clip writes it."""
    if source.config is not None:
        return dict(read_config(source)["model_cfg"])
    published = _published_config(source.name.rpartition("/")[0])
    return dict(json.loads(published.read_text(encoding="utf-8")))

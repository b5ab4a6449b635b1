"""Loads CLIP models with open_clip: the small demo model, published models and local weights.

Some models take their tokenizer, or the configuration of their text side, from a repository of
huggingface.co. Its files are looked for in VAR_DIR/tokenizers/OWNER/NAME first, so that a machine
without a connection can have them.

torch is imported only when a model is loaded.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Final

from django.conf import settings
from safetensors import SafetensorError

from retrieval.encoding.model_specs import (
    HUB_ADDRESS,
    RANDOM_SEED,
    RANDOM_TAG,
    ModelSpecError,
    Source,
    fetched,
    first_line,
    read_config,
    resolve,
)
from retrieval.encoding.open_clip_import import import_transformers, open_clip_module

#: Members of a text side's configuration that name a repository.
_REPOSITORIES: Final = ("hf_tokenizer_name", "hf_model_name")
FAILURES = (
    *(RuntimeError, OSError, ImportError, KeyError, TypeError, ValueError),
    *(SafetensorError, UnpicklingError),
)


def default_device() -> str:
    """Return "cuda" where torch sees a GPU, else "cpu"."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def load_open_clip(spec: str, device: str) -> tuple[Any, Any, Any]:
    """Return the model that ``spec`` names as open_clip makes it, in evaluation mode, with its
    preparation of images and its tokenizer.

    ModelSpecError when the spec is unknown, a file is missing, the weights do not fit the
    configuration, or a download fails.
    """
    source = fetched(resolve(spec))
    try:
        load = _load_local if source.config is not None else _load_named
        model, preprocess, tokenizer = load(source, device)
    except ModelSpecError:
        raise
    except FAILURES as error:
        raise not_loaded(source, error) from error
    model.eval()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return model, preprocess, tokenizer


def not_loaded(source: Source, error: Exception) -> ModelSpecError:
    """Say in one line why a model could not be loaded."""
    return ModelSpecError(source.spec, f"it could not be loaded ({first_line(error)})")


def tokenizer_folder(repository: str) -> Path:
    """Where the files of a repository with a tokenizer are looked for before the hub."""
    return Path(settings.VAR_DIR) / "tokenizers" / repository


def _with_local_repositories(config: dict[str, Any]) -> dict[str, Any]:
    """A model's configuration, with the folders of those repositories whose files are here."""
    text = dict(config.get("text_cfg", {}))
    for member in _REPOSITORIES:
        if (name := text.get(member)) and tokenizer_folder(name).is_dir():
            text[member] = str(tokenizer_folder(name))
    return {**config, "text_cfg": text}


def _built(
    source: Source, name: str, config: dict[str, Any], options: dict[str, Any]
) -> tuple[Any, Any, Any]:
    """Register a configuration under a name of open_clip, and build it; the model, its preparation
    of images and its tokenizer."""
    open_clip = open_clip_module()
    from open_clip.factory import _MODEL_CONFIGS

    _MODEL_CONFIGS[name] = config = _with_local_repositories(config)
    text = config["text_cfg"]
    repository = ""
    try:
        if repository := text.get("hf_model_name", ""):
            _require_no_path(source, repository)
            import_transformers()
            from transformers import AutoConfig

            AutoConfig.from_pretrained(repository)
        if repository := text.get("hf_tokenizer_name", ""):
            _require_no_path(source, repository)
        tokenizer = open_clip.get_tokenizer(name)
    except FAILURES as error:
        if not repository:
            raise
        raise _unavailable(source, repository, error) from error
    model, _, preprocess = open_clip.create_model_and_transforms(
        name, precision="fp32", pretrained_image=False, pretrained_text=False, **options
    )
    return model, preprocess, tokenizer


def _require_no_path(source: Source, repository: str) -> None:
    """Raise OSError where libraries would take what a configuration of the hub names for a path in
    the working directory."""
    if source.hub and not os.path.isabs(repository) and os.path.exists(repository):
        raise OSError(repository)


def _unavailable(source: Source, repository: str, error: Exception) -> ModelSpecError:
    """Says which files to copy where."""
    # The author of a configuration of the hub must not learn what lies on this machine.
    why = "" if source.hub else f" ({first_line(error)})"
    return ModelSpecError(
        source.spec,
        f"the tokenizer {repository} could not be had{why}; without a connection "
        f"copy the JSON files of {HUB_ADDRESS}{repository} into {tokenizer_folder(repository)}",
    )


def _load_named(source: Source, device: str) -> tuple[Any, Any, Any]:
    import torch

    open_clip = open_clip_module()
    name = source.name.rpartition("/")[0]
    tags = open_clip.list_pretrained_tags_by_model(name)
    if source.tag not in (RANDOM_TAG, *tags):
        known = ", ".join(tags) or "none"
        raise ModelSpecError(
            source.spec, f"{name!r} has no pretrained tag {source.tag!r} (it has: {known})"
        )
    pretrained = None if source.tag == RANDOM_TAG else source.tag
    if pretrained is not None:
        _fetch_published(source, open_clip.get_pretrained_cfg(name, pretrained))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(RANDOM_SEED)
        options = {"pretrained": pretrained, "device": device}
        return _built(source, name, open_clip.get_model_config(name), options)


def _load_local(source: Source, device: str) -> tuple[Any, Any, Any]:
    """Build the configured model under a private name, then load the weights into it."""
    assert source.config is not None
    weights = source.weights or _hub_weights(source)
    config = read_config(source)
    model_config = json.loads(json.dumps(config["model_cfg"]))
    text = model_config["text_cfg"]
    kwargs = dict(text.get("tokenizer_kwargs", {}))
    if "bpe_path" in kwargs:
        merges = source.config.parent / kwargs["bpe_path"]
        if not merges.is_file():
            raise ModelSpecError(source.spec, f"there is no merges file {merges}")
        kwargs["bpe_path"] = str(merges)
        text["tokenizer_kwargs"] = kwargs
    if text.get("hf_tokenizer_name") and (source.config.parent / "tokenizer_config.json").is_file():
        text["hf_tokenizer_name"] = str(source.config.parent)
    private = "local-" + hashlib.sha256(str(source.config.resolve()).encode()).hexdigest()[:16]
    preprocess_config = config["preprocess_cfg"]
    options: dict[str, Any] = {"pretrained": str(weights), "device": device}
    options |= {
        f"image_{key}": preprocess_config[field]
        for key, field in (
            ("mean", "mean"),
            ("std", "std"),
            ("interpolation", "interpolation"),
            ("resize_mode", "resize_mode"),
        )
        if field in preprocess_config
    }
    return _built(source, private, model_config, options)


def _fetch_published(source: Source, config: dict[str, Any]) -> None:
    """Fetch the weights that open_clip publishes, unless they were before."""
    from open_clip.pretrained import download_pretrained

    try:
        download_pretrained(config)
    except FAILURES as error:
        if hub := config.get("hf_hub", ""):
            raise _weights_unavailable(source, hub.rpartition("/")[0], error) from error
        address = config.get("url", "")
        place = Path("~/.cache/clip").expanduser() / address.rpartition("/")[2]
        raise ModelSpecError(
            source.spec,
            f"its weights could not be fetched ({first_line(error)}); without a connection copy "
            f"{address} to {place}",
        ) from error


def _hub_weights(source: Source) -> str:
    """Fetch the weights of a repository, unless they were before; where they are."""
    open_clip_module()
    from open_clip.pretrained import download_pretrained_from_hf

    try:
        return str(download_pretrained_from_hf(source.hub))
    except FAILURES as error:
        raise _weights_unavailable(source, source.hub, error) from error


def _weights_unavailable(source: Source, repository: str, error: Exception) -> ModelSpecError:
    """Says which files to copy, and how to name them."""
    return ModelSpecError(
        source.spec,
        f"its weights could not be fetched ({first_line(error)}); without a connection copy "
        f"{HUB_ADDRESS}{repository} into a folder, and name that folder as the model",
    )

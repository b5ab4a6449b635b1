"""Loads CLIP models with open_clip: the small demo model, published models and local weights.

torch is imported only when a model is loaded.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from retrieval.encoding.model_specs import (
    RANDOM_SEED,
    RANDOM_TAG,
    ModelSpecError,
    Source,
    read_config,
    resolve,
)
from retrieval.encoding.open_clip_import import open_clip_module

FAILURES = (RuntimeError, OSError, ImportError, KeyError, TypeError, ValueError)


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
    source = resolve(spec)
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
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return ModelSpecError(source.spec, f"it could not be loaded ({reason})")


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
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(RANDOM_SEED)
        model, _, preprocess = open_clip.create_model_and_transforms(
            name,
            pretrained=pretrained,
            device=device,
            precision="fp32",
            pretrained_image=False,
        )
    return model, preprocess, open_clip.get_tokenizer(name)


def _load_local(source: Source, device: str) -> tuple[Any, Any, Any]:
    """Build the configured model under a private name, then load the weights into it."""
    open_clip = open_clip_module()
    from open_clip.factory import _MODEL_CONFIGS

    assert source.config is not None
    assert source.weights is not None
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
    _MODEL_CONFIGS[private] = model_config
    preprocess_config = config["preprocess_cfg"]
    options = {
        f"image_{key}": preprocess_config[field]
        for key, field in (
            ("mean", "mean"),
            ("std", "std"),
            ("interpolation", "interpolation"),
            ("resize_mode", "resize_mode"),
        )
        if field in preprocess_config
    }
    model, _, preprocess = open_clip.create_model_and_transforms(
        private,
        pretrained=str(source.weights),
        device=device,
        precision="fp32",
        pretrained_image=False,
        **options,
    )
    return model, preprocess, open_clip.get_tokenizer(private)

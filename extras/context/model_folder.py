"""The folder of a context model, by which it is named: `context.json` and its encoder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

from retrieval.encoding.model_specs import ModelSpecError

CONTEXT_NAME: Final = "context.json"


def context_config(spec: str) -> dict[str, Any] | None:
    """What `context.json` says, where a spec is the folder of a context model; else None.
    ModelSpecError: it isn't as it should be.
    """
    path = Path(spec.strip()) / CONTEXT_NAME
    if not path.is_absolute() or not os.path.isfile(path):
        return None
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        base, weight = str(config["base"]), float(config["weight"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelSpecError(spec, f"{path} isn't right ({error!r})") from error
    if not 0 < weight < 1:
        reason = f"the weight of its context is {weight:g}, not between 0 and 1"
        raise ModelSpecError(spec, reason)
    return {**config, "base": base, "weight": weight}


def base_of_context(spec: str) -> str | None:
    """The model that embeds a context model's images and texts; None for another kind of model."""
    config = context_config(spec)
    return None if config is None else str(config["base"])

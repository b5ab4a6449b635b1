"""Location encoders: the built-in one, TorchScript's, and those that a Python module gives.

A context model is a folder with `context.json`:

    {"base": "ViT-B-16/openai", "weight": 0.3, "encoder": "harmonics.npz"}

`encoder` is a file of `train_context`, a TorchScript file (`.pt`), or `module:function`.
`signature` says what those take, n places at a time: "places" a tensor (n, 2) of latitude and
longitude in degrees, as GeoCLIP's and TaxaBind's location encoders do; "places and months" that and
a tensor (n,) of months from 1 to 12, or 0 where it isn't known. They give (n, d), d that of the
base. A function of a module takes and gives NumPy arrays. Where the folder has `environment`, its
columns follow latitude and longitude, standardized: (n, 2 + c).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from extras.context.harmonics import Floats, Harmonics
from extras.context.model_folder import context_config
from retrieval.encoding.model_specs import ModelSpecError, describe

Places = NDArray[np.float64]
Months = NDArray[np.int64]
SIGNATURES: Final = ("places", "places and months")


class ContextEncoder:
    """Turns places and months into vectors of the base's dimension."""

    def __init__(
        self, run: Callable[[Places, Months], Any], *, dimension: int, weight: float, spec: str
    ) -> None:
        self._run, self.dimension, self.weight, self.spec = run, dimension, weight, spec

    def __call__(self, places: Places, months: Months) -> Floats:
        """(n, d) of places (n, 2) in degrees, NaN where unknown, and months (n,); zeros where the
        place isn't known. ModelSpecError: the encoder gives something else.
        """
        vectors = np.zeros((len(places), self.dimension), np.float32)
        known = np.isfinite(places).all(axis=1)
        if known.any():
            given = np.asarray(self._run(places[known], months[known]), np.float32)
            wanted = (int(known.sum()), self.dimension)
            if given.shape != wanted or not np.isfinite(given).all():
                reason = f"its encoder gives {given.shape} where finite {wanted} is needed"
                raise ModelSpecError(self.spec, reason)
            vectors[known] = given
        return vectors


def load_context(spec: str) -> ContextEncoder:
    """The encoder of a context model. ModelSpecError: the folder or the encoder isn't right."""
    config = context_config(spec)
    if config is None:
        raise ModelSpecError(spec, "it has no context.json")
    about: Any = {
        "dimension": describe(config["base"]).dimension, "weight": config["weight"], "spec": spec
    }  # fmt: skip
    name = str(config.get("encoder", ""))
    signature = config.get("signature", SIGNATURES[0])
    if signature not in SIGNATURES:
        raise ModelSpecError(spec, f"its signature is none of {', '.join(SIGNATURES)}")
    path = Path(spec) / name
    try:
        if path.suffix == ".npz":
            return ContextEncoder(Harmonics.load(path), **about)
        run = _torchscript(path) if path.suffix == ".pt" else _of_module(name)
    except (OSError, KeyError, ValueError, RuntimeError, ImportError, AttributeError) as error:
        raise ModelSpecError(spec, f"its encoder {name!r} can't be loaded ({error})") from error
    if signature == SIGNATURES[0]:
        return ContextEncoder(lambda places, months: run(places), **about)
    return ContextEncoder(run, **about)


def _torchscript(path: Path) -> Callable[..., Any]:
    import torch

    module = torch.jit.load(str(path), map_location="cpu").eval()

    def run(places: Places, *months: Months) -> Any:
        with torch.inference_mode():
            given = (torch.from_numpy(places.astype(np.float32)), *map(torch.from_numpy, months))
            return module(*given).float().numpy()

    return run


def _of_module(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    if not function:
        raise ImportError("a file of train_context, a .pt file or module:function is needed")
    encoder: Callable[..., Any] = getattr(import_module(module), function)
    return encoder

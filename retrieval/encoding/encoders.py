"""CLIP models that turn pictures and words into vectors of one space.

One code path loads them all: the small demo model, open_clip's published models, and local
weights. torch is imported only when a model is loaded.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from retrieval.encoding.device_thread import compute
from retrieval.encoding.image_tower import ImageTower, Launched
from retrieval.encoding.model_specs import (
    CONFIG_NAME,
    DEMO_MODEL_DIR,
    RANDOM_SEED,
    RANDOM_TAG,
    WEIGHTS_NAME,
    ModelDescription,
    ModelSpecError,
    Source,
    describe,
    open_clip_module,
    read_config,
    resolve,
)

if TYPE_CHECKING:
    from PIL import Image

__all__ = [
    "CONFIG_NAME",
    "DEMO_MODEL_DIR",
    "WEIGHTS_NAME",
    "Encoder",
    "Launched",
    "ModelDescription",
    "ModelSpecError",
    "default_device",
    "describe",
    "load_encoder",
    "load_open_clip",
]

_BATCH = 64
_FAILURES = (RuntimeError, OSError, ImportError, KeyError, TypeError, ValueError)


class Encoder:
    """A loaded model; calls from several threads take turns.

    ``dimension`` is the length of its vectors, ``parameters`` how many numbers it has learned,
    image and text side together, and ``precision`` the number format in which it computes the
    vectors of images ("fp32"; on a GPU "bf16", or "fp16" where that is missing). Weights and texts
    stay in single precision.
    """

    def __init__(
        self,
        name: str,
        model: Any,
        preprocess: Any,
        tokenizer: Any,
        *,
        dimension: int,
        device: str,
    ) -> None:
        self.name = name
        self.dimension = dimension
        self.device = device
        self.parameters = sum(parameter.numel() for parameter in model.parameters())
        self.images = ImageTower(model, preprocess, device)
        self._model = model
        self._tokenizer = tokenizer
        self._lock = threading.Lock()

    @property
    def precision(self) -> str:
        return self.images.precision

    def encode_images(self, images: Sequence[Image.Image]) -> np.ndarray:
        """Return float32 (n, dimension) vectors of unit length, one per picture."""
        rows = []
        for start in range(0, len(images), _BATCH):
            chosen = images[start : start + _BATCH]
            pixels = self.images.buffer(len(chosen))
            for row, image in zip(pixels.numpy(), chosen, strict=True):
                row[:] = self.images.prepare(image)
            rows.append(self.launch(pixels).vectors())
        return self._joined(rows)

    def quicken(self, *, compiled: bool) -> None:
        """Have the image side encode faster here; see `ImageTower.quicken`."""
        with self._lock:
            compute(self.device, lambda: self.images.quicken(compiled=compiled))

    def launch(self, pixels: Any) -> Launched:
        """Have prepared pictures (`images.buffer`) encoded; on a GPU this doesn't wait for it."""
        with self._lock:
            return compute(self.device, lambda: self.images.launch(pixels))

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        """Return float32 (n, dimension) vectors of unit length, one per text.

        Texts are encoded one at a time, so a text's vector does not depend on its neighbours.
        Words beyond the model's context length are cut off.
        """
        rows = []
        for text in texts:
            with self._lock:
                rows.append(compute(self.device, partial(self._encoded_text, text)))
        return self._joined(rows)

    def _encoded_text(self, text: str) -> np.ndarray:
        import torch

        with torch.inference_mode():
            vectors = self._model.encode_text(self._tokenizer([text]).to(self.device)).float()
            vectors = torch.nn.functional.normalize(vectors, dim=-1)
            found: np.ndarray = vectors.cpu().numpy().astype(np.float32, copy=False)
        return found

    def _joined(self, rows: list[np.ndarray]) -> np.ndarray:
        return np.concatenate(rows) if rows else np.zeros((0, self.dimension), dtype=np.float32)


_encoders: dict[tuple[str, str], Encoder] = {}
_load_lock = threading.Lock()


def load_encoder(spec: str, *, device: str | None = None) -> Encoder:
    """Return the model that ``spec`` names, loaded once per process and device.

    ``device`` is a torch device name; by default a GPU is used where there is one.
    ModelSpecError when the spec is unknown, a file is missing, the weights do not fit the
    configuration, or a download fails.
    """
    source = resolve(spec)
    with _load_lock:
        chosen = device or default_device()
        key = (spec, chosen)
        if key not in _encoders:
            _encoders[key] = compute(chosen, lambda: _load(source, chosen))
        return _encoders[key]


def default_device() -> str:
    """Return "cuda" where torch sees a GPU, else "cpu"."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def load_open_clip(spec: str, device: str) -> tuple[Any, Any, Any]:
    """Return the model that ``spec`` names as open_clip makes it, in evaluation mode, with its
    preparation of images and its tokenizer. Raises as `load_encoder`.
    """
    source = resolve(spec)
    return compute(device, lambda: _load_open_clip(source, device))


def _load(source: Source, device: str) -> Encoder:
    import torch

    model, preprocess, tokenizer = _load_open_clip(source, device)
    try:
        with torch.inference_mode():
            dimension = int(model.encode_text(tokenizer(["a"]).to(device)).shape[-1])
        return Encoder(
            source.name, model, preprocess, tokenizer, dimension=dimension, device=device
        )
    except _FAILURES as error:
        raise _not_loaded(source, error) from error


def _load_open_clip(source: Source, device: str) -> tuple[Any, Any, Any]:
    try:
        load = _load_local if source.config is not None else _load_named
        model, preprocess, tokenizer = load(source, device)
    except ModelSpecError:
        raise
    except _FAILURES as error:
        raise _not_loaded(source, error) from error
    model.eval()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return model, preprocess, tokenizer


def _not_loaded(source: Source, error: Exception) -> ModelSpecError:
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return ModelSpecError(source.spec, f"it could not be loaded ({reason})")


def _load_named(source: Source, device: str) -> tuple[Any, Any, Any]:
    import torch

    open_clip = open_clip_module()
    name = source.name.rpartition("/")[0]
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

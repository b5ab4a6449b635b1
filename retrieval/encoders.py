"""CLIP models that turn pictures and words into vectors of one space.

One code path loads them all: the small demo model, open_clip's published models, and local
weights. torch is imported only when a model is loaded.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from PIL import Image

DEMO_MODEL_DIR = Path(__file__).parent / "demo" / "model"
CONFIG_NAME = "open_clip_config.json"
WEIGHTS_NAME = "open_clip_model.safetensors"
RANDOM_TAG = "random"
RANDOM_SEED = 20240
ACCEPTED = (
    'accepted are "demo", "NAME/TAG" (an open_clip model and pretrained tag), "NAME/random", '
    f"a directory holding {CONFIG_NAME} and {WEIGHTS_NAME}, or "
    '"/path/config.json:/path/weights.safetensors"'
)
_BATCH = 64


class ModelSpecError(ValueError):
    """A model spec names nothing that can be loaded; the message says what is accepted."""

    def __init__(self, spec: str, reason: str) -> None:
        super().__init__(f"Model {spec!r}: {reason}; {ACCEPTED}.")
        self.spec = spec


@dataclass(frozen=True)
class ModelDescription:
    """What can be told about a model without loading its weights."""

    spec: str
    name: str
    dimension: int
    image_size: int
    context_length: int


@dataclass(frozen=True)
class _Source:
    """A resolved spec: an open_clip name and tag, or a configuration with a weights file."""

    spec: str
    name: str
    tag: str = ""
    config: Path | None = None
    weights: Path | None = None


class Encoder:
    """A loaded model; calls from several threads take turns.

    ``dimension`` is the length of its vectors and ``precision`` the number format it computes
    in ("fp32", or "fp16" on a GPU).
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
        precision: str,
    ) -> None:
        self.name = name
        self.dimension = dimension
        self.device = device
        self.precision = precision
        self._model = model
        self._preprocess = preprocess
        self._tokenizer = tokenizer
        self._lock = threading.Lock()

    @property
    def parameters(self) -> int:
        """How many numbers the model has learned, image and text side together."""
        return sum(parameter.numel() for parameter in self._model.parameters())

    def encode_images(self, images: Sequence[Image.Image]) -> np.ndarray:
        """Return float32 (n, dimension) vectors of unit length, one per picture."""
        import torch

        rows = []
        for start in range(0, len(images), _BATCH):
            chosen = images[start : start + _BATCH]
            batch = torch.stack([self._preprocess(image.convert("RGB")) for image in chosen])
            rows.append(self._encode(self._model.encode_image, batch, floats=True))
        return self._joined(rows)

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        """Return float32 (n, dimension) vectors of unit length, one per text.

        Texts are encoded one at a time, so a text's vector does not depend on its neighbours.
        Words beyond the model's context length are cut off.
        """
        rows = [
            self._encode(self._model.encode_text, self._tokenizer([text]), floats=False)
            for text in texts
        ]
        return self._joined(rows)

    def _encode(self, encode: Any, batch: Any, *, floats: bool) -> np.ndarray:
        import torch

        with self._lock, torch.inference_mode():
            if floats and self.precision == "fp16":
                batch = batch.half()
            vectors = encode(batch.to(self.device)).float()
            vectors = torch.nn.functional.normalize(vectors, dim=-1)
            return vectors.cpu().numpy().astype(np.float32, copy=False)

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
    source = _resolve(spec)
    with _load_lock:
        chosen = device or _default_device()
        key = (spec, chosen)
        if key not in _encoders:
            _encoders[key] = _load(source, chosen)
        return _encoders[key]


def describe(spec: str) -> ModelDescription:
    """Return a model's name and sizes from its configuration alone; ModelSpecError as above."""
    source = _resolve(spec)
    config = _model_config(source)
    vision = config.get("vision_cfg", {})
    size = vision.get("image_size", 224)
    return ModelDescription(
        spec,
        source.name,
        int(config["embed_dim"]),
        int(size[0] if isinstance(size, list) else size),
        int(config.get("text_cfg", {}).get("context_length", 77)),
    )


def _default_device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _open_clip() -> Any:
    from retrieval.torchvision_compat import ensure_torchvision

    ensure_torchvision()
    import open_clip

    return open_clip


def _resolve(spec: str) -> _Source:
    cleaned = spec.strip()
    if cleaned == "demo":
        return _directory(spec, "demo", DEMO_MODEL_DIR)
    if not cleaned:
        raise ModelSpecError(spec, "the name is empty")
    if ":" in cleaned:
        config, _, weights = cleaned.partition(":")
        return _files(spec, Path(weights).stem, Path(config), Path(weights))
    if Path(cleaned).is_absolute() or cleaned.startswith("."):
        return _directory(spec, Path(cleaned).name, Path(cleaned))
    name, _, tag = cleaned.rpartition("/")
    if not name or not tag or "/" in name:
        raise ModelSpecError(spec, "it is not of a known form")
    known = _open_clip()
    if name not in known.list_models():
        raise ModelSpecError(spec, f"open_clip knows no model called {name!r}")
    if tag != RANDOM_TAG and tag not in known.list_pretrained_tags_by_model(name):
        tags = ", ".join(known.list_pretrained_tags_by_model(name)) or "none"
        raise ModelSpecError(spec, f"{name!r} has no pretrained tag {tag!r} (it has: {tags})")
    return _Source(spec, cleaned, tag)


def _directory(spec: str, name: str, directory: Path) -> _Source:
    if not directory.is_dir():
        raise ModelSpecError(spec, f"there is no directory {directory}")
    return _files(spec, name, directory / CONFIG_NAME, directory / WEIGHTS_NAME)


def _files(spec: str, name: str, config: Path, weights: Path) -> _Source:
    for path in (config, weights):
        if not path.is_file():
            raise ModelSpecError(spec, f"there is no file {path}")
    return _Source(spec, name, config=config, weights=weights)


def _read_config(source: _Source) -> dict[str, Any]:
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


def _model_config(source: _Source) -> dict[str, Any]:
    if source.config is not None:
        return dict(_read_config(source)["model_cfg"])
    return dict(_open_clip().get_model_config(source.name.rpartition("/")[0]))


def _load(source: _Source, device: str) -> Encoder:
    import torch

    precision = "fp16" if device.startswith("cuda") else "fp32"
    try:
        if source.config is not None:
            model, preprocess, tokenizer = _load_local(source, device, precision)
        else:
            model, preprocess, tokenizer = _load_named(source, device, precision)
    except ModelSpecError:
        raise
    except (RuntimeError, OSError, ImportError, KeyError, TypeError, ValueError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelSpecError(source.spec, f"it could not be loaded ({reason})") from error
    model.eval()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    with torch.inference_mode():
        dimension = int(model.encode_text(tokenizer(["a"]).to(device)).shape[-1])
    return Encoder(
        source.name,
        model,
        preprocess,
        tokenizer,
        dimension=dimension,
        device=device,
        precision=precision,
    )


def _load_named(source: _Source, device: str, precision: str) -> tuple[Any, Any, Any]:
    import torch

    open_clip = _open_clip()
    name = source.name.rpartition("/")[0]
    pretrained = None if source.tag == RANDOM_TAG else source.tag
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(RANDOM_SEED)
        model, _, preprocess = open_clip.create_model_and_transforms(
            name,
            pretrained=pretrained,
            device=device,
            precision=precision,
            pretrained_image=False,
        )
    return model, preprocess, open_clip.get_tokenizer(name)


def _load_local(source: _Source, device: str, precision: str) -> tuple[Any, Any, Any]:
    """Build the configured model under a private name, then load the weights into it."""
    open_clip = _open_clip()
    from open_clip.factory import _MODEL_CONFIGS

    assert source.config is not None
    assert source.weights is not None
    config = _read_config(source)
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
        precision=precision,
        pretrained_image=False,
        **options,
    )
    return model, preprocess, open_clip.get_tokenizer(private)

"""What an admin chooses a model by: what is here, what it costs, and what suits this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from django.conf import settings

from retrieval.corpus.counts import image_count
from retrieval.embedding.counts import corpus_coverage
from retrieval.embedding.in_use import model_in_use
from retrieval.embedding.models import EmbeddingModel

_GPU: Final = Path("/dev/nvidiactl")


class Recommended(NamedTuple):
    """A model by its name, and what it is good for."""

    name: str
    about: str


_SMALL: Final = (
    Recommended("MobileCLIP2-S0/dfndr2b", "Small: for the first day on a machine without a GPU."),
    Recommended("ViT-B-32/laion2b_s34b_b79k", "Small and widely compared with."),
)
_LARGE: Final = Recommended(
    "ViT-H-14-378-quickgelu/dfn5b", "Large and accurate: for a benchmark; it wants a GPU."
)


@dataclass(frozen=True)
class ListedModel:
    """A model that is here, and what it has embedded of the corpus."""

    model: EmbeddingModel
    embedded: int
    images: int
    in_use: bool
    in_pool: bool

    @property
    def whole(self) -> bool:
        """Whether it has embedded every image."""
        return self.embedded >= self.images > 0

    @property
    def hours_left(self) -> float | None:
        """Hours for the images that it has not embedded; None before it was measured."""
        seconds = self.model.seconds_per_image
        return None if seconds is None else max(0, self.images - self.embedded) * seconds / 3600


def models_listed() -> list[ListedModel]:
    """Return the models that are here, the one in use first, then by name."""
    used, images, pool = model_in_use(), image_count(), set(settings.POOL_MODELS)
    listed = [
        ListedModel(row.model, row.embedded, images, row.model.name == used, row.model.name in pool)
        for row in corpus_coverage()
    ]
    return sorted(listed, key=lambda row: not row.in_use)


def recommended_models() -> list[Recommended]:
    """Return the models that suit this machine, the best first."""
    return [_LARGE, *_SMALL] if has_gpu() else [*_SMALL, _LARGE]


def has_gpu() -> bool:
    """Whether this machine has an NVIDIA GPU; seen without torch, which web processes lack."""
    return _GPU.exists()

"""Which models suit this installation: the first of them is offered everywhere."""

from __future__ import annotations

from typing import Final, NamedTuple

from retrieval.embedding.machines import has_gpu
from retrieval.encoding.model_specs import DEMO_MODEL_DIR


class Recommended(NamedTuple):
    """A model by its name, its repository on the hub, and what it is good for."""

    name: str
    repository: str
    about: str


_SMALL: Final = (
    Recommended(
        "MobileCLIP2-S0/dfndr2b",
        "timm/MobileCLIP2-S0-OpenCLIP",
        "Small: for the first day on a machine without a GPU.",
    ),
    Recommended(
        "ViT-B-32/laion2b_s34b_b79k",
        "laion/CLIP-ViT-B-32-laion2B-s34B-b79K",
        "Small and widely compared with.",
    ),
)
LARGE: Final = Recommended(
    "ViT-H-14-378-quickgelu/dfn5b",
    "apple/DFN5B-CLIP-ViT-H-14-378",
    "Large and accurate: for a benchmark; it wants a GPU.",
)
BUILT_IN: Final = "demo"
"""The model that ships with the application, to try things out."""


def recommended_models() -> list[Recommended]:
    """Return the models that suit the workers' machines, the best first."""
    return [LARGE, *_SMALL] if has_gpu() else [*_SMALL, LARGE]


def built_in_model() -> str:
    """Return the name of the model that ships with the application; empty where it is left out."""
    return BUILT_IN if DEMO_MODEL_DIR.is_dir() else ""

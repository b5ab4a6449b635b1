"""Optional capabilities, each an app of its own: see README.md."""

from typing import Final

NAMES: Final = (
    "boxes",
    "context",
    "correlations",
    "duplicates",
    "eccv_caption",
    "faces",
    "lookalikes",
    "nature",
    "reading",
    "sharding",
    "simulation",
    "species_task",
)

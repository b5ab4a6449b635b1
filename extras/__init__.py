"""Optional capabilities, each an app of its own: see README.md."""

from typing import Final

NAMES: Final = ("correlations", "eccv_caption", "nature", "simulation", "species_task")

"""The settings of boxes, read from the environment."""

from __future__ import annotations

from typing import Any

from annotator.environment import Environment


def settings_of(env: Environment) -> dict[str, Any]:
    """The share of the boxed images that a second person boxes blindly."""
    return {"BOX_SECOND_OPINION": env.share("BOX_SECOND_OPINION", 0.1, zero=True)}

"""What this application is called, and which version runs."""

from __future__ import annotations

from core import __version__


def software() -> str:
    """Name and version, such as "inquire-annotator 0.1.0"."""
    return f"inquire-annotator {__version__}"

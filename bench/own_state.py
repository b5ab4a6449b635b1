"""A benchmark's own database and state folder, and what it says while it works."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def use_state(var_dir: Path) -> None:
    """Set Django up on a state folder with the embedded PostgreSQL, whatever the environment says.

    Call it before anything of the application is imported.
    """
    os.environ["VAR_DIR"] = str(var_dir)
    os.environ.pop("DATABASE_URL", None)
    os.environ["DJANGO_SETTINGS_MODULE"] = "annotator.settings"
    os.environ["LOG_LEVEL"] = "WARNING"
    import django

    django.setup()


def tell(text: str) -> None:
    """Say what is going on, apart from the figures."""
    print(text, file=sys.stderr, flush=True)

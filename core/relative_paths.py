"""Paths that others wrote, as against the folder that they start at."""

from __future__ import annotations

from pathlib import PurePosixPath


def is_below(name: str) -> bool:
    """Tell whether a relative path, by its text alone, names something below the folder that it
    starts at. What links there do is not looked at.
    """
    # Nearly all are seen to be without being taken apart.
    if name and not name.startswith(("/", ".")) and ".." not in name and "\0" not in name:
        return True
    path = PurePosixPath(name)
    climbs = path.is_absolute() or ".." in path.parts or not path.parts
    return not climbs and "\0" not in name

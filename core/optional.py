"""Packages that an optional part of the application needs: `pyproject.toml` names them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from core.errors import Unavailable


class NotInstalled(Unavailable):
    """A package is missing; the text says which, and what to install."""


@contextmanager
def optional(extra: str) -> Iterator[None]:
    """Surrounds the imports of what one of pyproject.toml's optional dependencies brings.

    Raises:
        NotInstalled: if one of them can't be imported.
    """
    try:
        yield
    except ImportError as error:
        raise NotInstalled(
            f"A package is missing ({error}): pip install 'inquire-annotator[{extra}]'"
        ) from error

"""What the commands of this app share: reading releases, and refusing bad files whole."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from django.core.management.base import CommandError

from core.csv_rows import RowError
from core.errors import FileRefused
from releases.importing.layout import Layout
from releases.importing.layout_files import layout_read

RELEASE_HELP = (
    "a benchmark's name for its latest version, the name with a version as in “INQUIRE v2”, or the "
    "number in its page's address"
)


def positive(text: str) -> int:
    """An argument that is a whole number from 1."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return number


def refuse(errors: Sequence[RowError]) -> None:
    """Raise FileRefused for the errors, if there are any."""
    if errors:
        raise FileRefused(errors)


def open_release(directory: Path) -> Layout:
    """The benchmark in a directory, in any form that can be imported; CommandError if it can't be
    read, LayoutRefused if it has an error."""
    try:
        return layout_read(directory)
    except OSError as error:
        raise CommandError(f"Can't read the release: {error}") from error

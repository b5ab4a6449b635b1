"""What the commands of this app share: reading releases, and refusing bad files whole."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from django.core.management.base import CommandError

from core.csv_rows import RowError
from releases import selectors
from releases.importing.layout import Layout
from releases.importing.layout_files import LayoutRefused, layout_read
from releases.models import Release

SHOWN_ERRORS = 20
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
    """Raise a CommandError that names the first errors, if there are any."""
    if errors:
        shown = [str(error) for error in errors[:SHOWN_ERRORS]]
        if len(errors) > SHOWN_ERRORS:
            shown.append(f"and {len(errors) - SHOWN_ERRORS} more errors")
        raise CommandError("\n".join(shown))


def open_release(directory: Path) -> Layout:
    """The benchmark in a directory, in any form that can be imported; CommandError if it can't be
    read or has an error."""
    try:
        return layout_read(directory)
    except LayoutRefused as error:
        refuse(error.errors)
        raise
    except OSError as error:
        raise CommandError(f"Can't read the release: {error}") from error


def find_release(text: str) -> Release:
    """The release that a command names, see `selectors.release_named`; CommandError if none is."""
    try:
        return selectors.release_named(text)
    except selectors.UnknownRelease as error:
        raise CommandError(str(error)) from error

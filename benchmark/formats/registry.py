"""All formats of a release, in the order in which they are made and listed."""

from __future__ import annotations

from typing import Final

from benchmark.formats import Format, inquire_csv

FORMATS: Final[tuple[Format, ...]] = (inquire_csv.FORMAT,)

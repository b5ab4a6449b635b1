"""The progress bar of a command: tqdm, fed with how much is done."""

from __future__ import annotations

import sys
from typing import Any

from tqdm import tqdm

#: Where the output is no terminal, a line at most this often.
SECONDS_BETWEEN_LINES = 5.0


class Progress:
    """A bar with pace and time left, on a text stream; `with Progress("images") as show: ...`.

    It is drawn from the first call on. `clear` ends the line before other output.
    """

    def __init__(self, unit: str = "", *, title: str = "", stream: Any = None, quiet: bool = False):
        self._options = {"unit": f" {unit}" if unit else " items", "desc": title or None}
        self._stream = stream or sys.stderr
        self._quiet = quiet
        self._bar: tqdm[Any] | None = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __call__(self, done: int, total: int | None = None, note: str = "") -> None:
        """Show that `done` of `total` is done; None where nobody knows how much there is."""
        if self._bar is None:
            self._bar = tqdm(
                total=total,
                initial=done,
                file=self._stream,
                disable=self._quiet,
                mininterval=0.1 if self._stream.isatty() else SECONDS_BETWEEN_LINES,
                dynamic_ncols=True,
                **self._options,
            )
        self._bar.total = total
        self._bar.set_postfix_str(note, refresh=False)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """Leave the bar standing; the next call begins another."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

"""When the next request may be sent: a limit per minute, and pauses when the server asks for one.

Pure: told the time by its caller, so that its state goes from one slice of a job to the next and
tests need no clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: Seconds of the first pause after trouble, doubled each time up to the longest.
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0
#: What a server may ask for at most; one that asks for more is taken to ask for this.
LONGEST_ASKED: Final = 600.0


@dataclass
class Pace:
    """Spaces requests evenly, so that no minute has more than the limit. Times in seconds."""

    per_minute: int = 0
    """0 for no limit."""
    next_at: float = 0.0
    """The moment before which no request may begin."""
    troubles: int = 0
    """Pauses since the last answer."""
    paused_at: float = 0.0
    """When the last pause was asked for."""

    def wait(self, now: float) -> float:
        """Seconds until a request may begin; 0 for at once."""
        return max(0.0, self.next_at - now)

    def begin(self, now: float) -> None:
        """A request begins."""
        if self.per_minute:
            self.next_at = max(now, self.next_at) + 60 / self.per_minute

    def answered(self) -> None:
        """An answer came: the server is well."""
        self.troubles = 0

    def trouble(self, now: float, *, begun: float, retry_after: float | None = None) -> None:
        """The server is busy or broken: pause, for as long as it asks if it does, else twice as
        long as the last time.

        A request that had `begun` before the last pause tells nothing new, unless it tells how
        long to wait.
        """
        if begun >= self.paused_at or not self.troubles:
            self.troubles += 1
            self.paused_at = now
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self.troubles - 1, 10))
            if retry_after is None:
                self.next_at = max(self.next_at, now + pause)
        if retry_after is not None:
            self.next_at = max(self.next_at, now + min(max(retry_after, 0.0), LONGEST_ASKED))

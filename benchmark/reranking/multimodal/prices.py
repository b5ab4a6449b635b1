"""What answers cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that a server counted, over `requests` answers."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            requests=self.requests + other.requests,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
        )


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars for a million tokens; None where nobody said."""

    input: float | None = None
    output: float | None = None

    def cost(self, usage: Usage) -> float | None:
        """US dollars for these tokens; None if either price is unknown."""
        if self.input is None or self.output is None:
            return None
        return (usage.prompt_tokens * self.input + usage.completion_tokens * self.output) / 1e6


def dollars(amount: float) -> str:
    """An amount for people: in cents, or hundredths of a cent where an amount below a dollar has
    them."""
    fine = amount < 1 and round(amount, 4) != round(amount, 2)
    return f"${amount:.4f}" if fine else f"${amount:,.2f}"

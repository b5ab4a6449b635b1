"""How a run uses a multimodal model: stored in `Run.endpoint`."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final

from django.conf import settings

from evaluation.reranking.multimodal.answers import Prices
from evaluation.reranking.multimodal.prompt import TEMPLATE, Usage
from evaluation.runs.models import Run

#: Tokens of a question and its answer where no answer of the model is known.
GUESSED_TOKENS: Final = (1000.0, 2.0)


@dataclass(frozen=True, slots=True)
class EndpointSetup:
    """Where and how a model is used, and what this run has paid so far."""

    base_url: str
    model: str
    """As the server names it."""
    prompt: str = TEMPLATE
    """The question, with a place for the query's text; see `multimodal.prompt`."""
    rpm: int = 0
    """The most requests per minute; 0 for no limit."""
    prices: Prices = field(default_factory=Prices)
    max_cost: float | None = None
    """US dollars that the run may spend; None for no limit."""
    max_side: int = 0
    """Longest side in pixels at which images are sent."""
    paid: Usage = field(default_factory=Usage)
    """The tokens of this run's own requests, without answers that were stored before."""

    @classmethod
    def of(cls, run: Run) -> EndpointSetup:
        """The setup of a run."""
        stored = run.endpoint
        return cls(
            base_url=stored["base_url"],
            model=stored["model"],
            prompt=stored["prompt"],
            rpm=stored["rpm"],
            prices=Prices(stored["price_in"], stored["price_out"]),
            max_cost=stored["max_cost"],
            max_side=stored["max_side"],
            paid=Usage(**stored["paid"]),
        )

    def as_json(self) -> dict[str, Any]:
        """As `Run.endpoint` holds it."""
        return {
            "base_url": self.base_url,
            "model": self.model,
            "prompt": self.prompt,
            "rpm": self.rpm,
            "price_in": self.prices.input,
            "price_out": self.prices.output,
            "max_cost": self.max_cost,
            "max_side": self.max_side or settings.MULTIMODAL_MAX_SIDE,
            "paid": asdict(self.paid),
        }

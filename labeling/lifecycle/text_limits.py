"""Which words of a query's text the models in use don't read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from labeling.queries.models import Benchmark, default_benchmark
from retrieval.embedding.counts import embedded_models
from retrieval.embedding.in_use import model_in_use
from retrieval.embedding.text_vectors import TextsUnavailable, text_vectors, unread_texts
from retrieval.encoding.model_specs import ModelSpecError, described_here

#: Seconds that a page waits to know it.
PATIENCE: Final = 5.0


@dataclass(frozen=True, slots=True)
class CutText:
    """A text of which a model reads the beginning alone."""

    text: str
    model: str
    unread: str
    """Its end."""

    def __str__(self) -> str:
        return f"{self.model} can’t read all of this text. It leaves out the end: “{self.unread}”."


def cut_texts(texts: Sequence[str], benchmark: Benchmark | None = None) -> list[CutText]:
    """Those of the texts that a model which orders lists of the benchmark (or of the first) cuts.

    Says nothing of models that haven't embedded an image, or whose vectors can't be had within
    PATIENCE.
    """
    benchmark = benchmark or Benchmark.objects.get(pk=default_benchmark())
    names = list(benchmark.setting("POOL_MODELS")) or [model_in_use()]
    cut = []
    for model in embedded_models().filter(name__in=names).order_by("pk"):
        try:
            about = described_here(model.name)
            # A token is a byte at least.
            longest = about.context_length - 2 if about else 0
            long = [text for text in texts if len(text.encode()) > longest]
            text_vectors(model, long, patience=PATIENCE)
        except (ModelSpecError, TextsUnavailable):
            continue
        unread = unread_texts(model, long)
        cut += [CutText(text, model.name, unread[text]) for text in long if text in unread]
    return cut

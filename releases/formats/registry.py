"""The formats of a release."""

from __future__ import annotations

from releases.formats import (
    attribution,
    beir,
    boxes,
    certificates,
    coco,
    darwin_core,
    datasheet,
    huggingface,
    inquire_csv,
    inquire_rerank,
    model_ranks,
    trec,
)
from releases.formats.base import Format

FORMATS: list[Format] = [
    inquire_csv.FORMAT,
    inquire_rerank.FORMAT,
    trec.FORMAT,
    beir.FORMAT,
    huggingface.FORMAT,
    coco.FORMAT,
    boxes.FORMAT,
    darwin_core.FORMAT,
    attribution.FORMAT,
    certificates.FORMAT,
    model_ranks.FORMAT,
]
"""In the order in which they are made and listed; extras append theirs."""


def all_formats() -> list[Format]:
    """Those of the extras too, the datasheet last."""
    return [*FORMATS, datasheet.FORMAT]

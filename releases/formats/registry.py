"""All formats of a release, in the order in which they are made and listed."""

from __future__ import annotations

from typing import Final

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
    nature,
    trec,
)
from releases.formats.base import Format

FORMATS: Final[tuple[Format, ...]] = (
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
    nature.FORMAT,
    datasheet.FORMAT,
)

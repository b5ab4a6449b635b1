"""All formats of a release, in the order in which they are made and listed."""

from __future__ import annotations

from typing import Final

from benchmark.formats import (
    Format,
    attribution,
    coco,
    darwin_core,
    datasheet,
    huggingface,
    inquire_csv,
    inquire_rerank,
    trec,
)

FORMATS: Final[tuple[Format, ...]] = (
    inquire_csv.FORMAT,
    inquire_rerank.FORMAT,
    trec.FORMAT,
    huggingface.FORMAT,
    coco.FORMAT,
    darwin_core.FORMAT,
    attribution.FORMAT,
    datasheet.FORMAT,
)

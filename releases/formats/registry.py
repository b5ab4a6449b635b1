"""The formats of a release."""

from __future__ import annotations

from releases.formats import (
    attribution,
    beir,
    certificates,
    coco,
    custom_fields,
    darwin_core,
    datasheet,
    huggingface,
    inquire_csv,
    inquire_rerank,
    model_ranks,
    mteb,
    trec,
)
from releases.formats.base import Format

FORMATS: list[Format] = [
    Format(
        "inquire-csv",
        "INQUIRE CSV",
        "The queries of each split, the relevant pairs and every single judgment, in the columns "
        "that INQUIRE's authors released.",
        inquire_csv.write,
    ),
    Format(
        "inquire-rerank",
        "INQUIRE-Rerank",
        "The fixed lists in which at least one and at most half of the images are relevant, to be "
        "put into a better order.",
        inquire_rerank.write,
    ),
    Format(
        "trec",
        "TREC topics and qrels",
        "For trec_eval, ir-measures and PyTerrier; judged images that aren't relevant as 0.",
        trec.write,
    ),
    Format(
        "beir",
        "BEIR",
        "Corpus, queries and qrels for BEIR and Pyserini; judged negatives have score 0.",
        beir.write,
    ),
    Format(
        "hugging-face",
        "Hugging Face data set",
        "Parquet files with a data card, for datasets.load_dataset; with or without the images.",
        huggingface.write,
    ),
    Format(
        "mteb",
        "MTEB",
        "A task of text-to-image retrieval that mteb 2 runs, of a release that holds images.",
        mteb.write,
    ),
    Format(
        "coco",
        "COCO JSON",
        "The images with species, place, date and attribution, in iNat24's layout.",
        coco.write,
    ),
    Format(
        "darwin-core",
        "Darwin Core",
        "The judged photos as observations: species, date, place, license, and their relevance.",
        darwin_core.write,
    ),
    Format(
        "attribution",
        "Attribution",
        "Rights holder, license, its terms, and source of every image.",
        attribution.write,
    ),
    Format(
        "custom-fields",
        "Custom fields",
        "Further columns of the tables that the images came with, as far as they are for releases.",
        custom_fields.write,
    ),
    Format(
        "certificates",
        "Certificates",
        "How many relevant images of a query, and of the release, can be missing, by random "
        "audits.",
        certificates.write,
    ),
    Format(
        "model-ranks",
        "Ranks by model",
        "Where each model of a query’s candidate list ranked the judged images.",
        model_ranks.write,
    ),
]
"""In the order in which they are made and listed; extras append theirs."""

_DATASHEET = Format(
    "datasheet",
    "Datasheet",
    "The questions of Datasheets for Datasets, answered from the data.",
    datasheet.write,
)


def all_formats() -> list[Format]:
    """Those of the extras too, the datasheet last."""
    return [*FORMATS, _DATASHEET]

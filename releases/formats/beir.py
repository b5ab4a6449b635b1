"""BEIR's layout, as its GenericDataLoader and Pyserini read it.

    beir/corpus.jsonl                 _id, title (species), text (names), metadata: each image
    beir/corpus_all.jsonl             the same where labels of the test split are hidden; those
                                      images that it alone names aren't in corpus.jsonl
    beir/queries.jsonl                _id, text, metadata: the queries of both splits
    beir/qrels/validation.tsv, test.tsv   query-id, corpus-id, score
    beir/qrels_graded/…               the same with grades, where a query has some; see `trec`

Ids are texts, as BEIR has them. metadata holds what BEIR has no place for; `import_benchmark`
reads it again. Judged images that aren't relevant have the score 0; unjudged ones have no line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

from releases.formats.base import Files
from releases.formats.qrels_files import BEIR_HEADER
from releases.formats.writing import SPLIT_NAMES
from releases.snapshot.snapshot import Snapshot

_LINEAGE: Final = ("kingdom", "phylum", "class_name", "order", "family", "genus")
_METADATA: Final = ("file_name", "dataset", "source_id", "license", "rights_holder", "address")


def write(snapshot: Snapshot, files: Files) -> None:
    """Write all files; those without rows are empty or hold their header."""
    files.text(f"beir/corpus{files.images}.jsonl", map(_line, _images(snapshot)))
    files.text("beir/queries.jsonl", map(_line, _queries(snapshot)))
    for split, qrels in snapshot.labeled_qrels():
        for folder, graded in (("qrels", False), ("qrels_graded", True)):
            if not graded or qrels.gains is not None:
                rows = chain([BEIR_HEADER], qrels.rows(graded=graded))
                lines = ("\t".join(map(str, row)) + "\n" for row in rows)
                files.text(f"beir/{folder}/{SPLIT_NAMES[split]}.tsv", lines)


def _line(content: dict[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False) + "\n"


def _images(snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    columns = ("image_id", "scientific_name", "vernacular_name", *_LINEAGE, *_METADATA)
    for image_id, species, *others in snapshot.rows("images", columns):
        names, metadata = others[: -len(_METADATA)], others[-len(_METADATA) :]
        yield {
            "_id": str(image_id),
            "title": species,
            "text": ", ".join(filter(None, names)),
            "metadata": dict(zip(_METADATA, metadata, strict=True)),
        }


def _queries(snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    for query in snapshot.queries.values():
        yield {
            "_id": str(query.query_id),
            "text": query.text,
            "metadata": {
                "supercategory": query.supercategory,
                "category": query.category,
                "iconic_group": query.iconic_group or "",
                "split": query.split,
            },
        }

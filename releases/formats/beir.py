"""BEIR's layout, as its GenericDataLoader, MTEB and Pyserini read it.

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
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from releases.formats.base import Access, Format, ImageFiles, WrittenFile
from releases.formats.qrels_files import BEIR_HEADER
from releases.formats.writing import ACCESS, image_lists, pair_columns, rows, text_file
from releases.snapshot.snapshot import Snapshot

FOLDER: Final = "beir"
QRELS_FILES: Final = {"val": "qrels/validation.tsv", "test": "qrels/test.tsv"}
GRADED_FILES: Final = {"val": "qrels_graded/validation.tsv", "test": "qrels_graded/test.tsv"}

_LINEAGE: Final = ("kingdom", "phylum", "class_name", "order", "family", "genus")
_METADATA: Final = ("file_name", "dataset", "source_id", "license", "rights_holder", "address")


def write(snapshot: Snapshot, directory: Path, image_files: ImageFiles) -> list[WrittenFile]:
    """Write all files; those without rows are empty or hold their header."""
    files = [
        *(
            _jsonl(directory, f"corpus{ending}.jsonl", access, _images(part))
            for ending, part, access in image_lists(snapshot)
        ),
        _jsonl(directory, "queries.jsonl", Access.OPEN, _queries(snapshot)),
    ]
    pairs = pair_columns(snapshot)
    for split, access in ACCESS.items():
        chosen = pairs.of_split(snapshot, split)
        for graded in (False, True) if pairs.gains is not None else (False,):
            name = f"{FOLDER}/{(GRADED_FILES if graded else QRELS_FILES)[split]}"
            with text_file(directory, name) as file:
                file.write("\t".join(BEIR_HEADER) + "\n")
                for row in chosen.rows(graded=graded):
                    file.write("\t".join(map(str, row)) + "\n")
            files.append(WrittenFile(name, access))
    return files


def _jsonl(
    directory: Path, name: str, access: Access, objects: Iterable[dict[str, Any]]
) -> WrittenFile:
    name = f"{FOLDER}/{name}"
    with text_file(directory, name) as file:
        for one in objects:
            file.write(json.dumps(one, ensure_ascii=False) + "\n")
    return WrittenFile(name, access)


def _images(snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    columns = ("image_id", "scientific_name", "vernacular_name", *_LINEAGE, *_METADATA)
    for image_id, species, *others in rows(snapshot, "images", columns):
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


FORMAT = Format(
    key="beir",
    title="BEIR",
    about="Corpus, queries and qrels for BEIR, MTEB and Pyserini; judged negatives have score 0.",
    write=write,
)

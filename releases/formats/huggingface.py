"""A Hugging Face data set: a card and Parquet files that `datasets.load_dataset` reads offline.

    load_dataset("…/huggingface", "queries")     splits validation, test
    load_dataset("…/huggingface", "qrels")       splits validation, test: the judged pairs
    load_dataset("…/huggingface", "corpus")      split corpus: what is known of each image; where
                                                 the test split's labels are hidden corpus_all has
                                                 those that its judgments alone name too
    load_dataset("…/huggingface", "rerank")      splits validation, test: the fixed lists, with
                                                 labels and, where the release holds images, these
    load_dataset("…/huggingface", "rerank_unlabelled")   the lists without either
    load_dataset("…/huggingface", "images")      split images: the image files that may be
                                                 passed on; refused_images.csv lists the others

With images, rerank comes without a name too, as INQUIRE's scripts for re-ranking load it. A list's
image that may not be passed on is null.

The configurations name folders, not files, so that the folder can be read as it is by somebody who
has no file with labels of the test split. A split without rows has no file, and a configuration
without files isn't in the card, since `datasets` refuses both: it reads no configuration at all
where the folder of one is empty. So one whose files are all withheld from some has WITHHELD.md
beside them. relevance is 1 or 0; where a query was labeled with grades, qrels has them in a column
more, as `trec` has them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from releases.formats.base import Access, Format, ImageFiles, WrittenFile
from releases.formats.fixed_lists import LABEL_COLUMNS, ListedImage, listed_images
from releases.formats.image_files import (
    Row,
    allowed_bytes,
    image_schema,
    write_image_files,
    write_shards,
)
from releases.formats.parquet import Shards, batches_of, split_name, write_batches
from releases.formats.writing import (
    ACCESS,
    SPLIT_NAMES,
    batches,
    counted,
    image_lists,
    images_of,
    pair_columns,
    plain,
    text_file,
)
from releases.snapshot.snapshot import ROWS_AT_A_TIME, Snapshot, SnapshotImage, schema_of

FOLDER: Final = "huggingface"
CARD: Final = f"{FOLDER}/README.md"

_QUERY_COLUMNS: Final = {
    "query_id": pa.int64(),
    "text": pa.string(),
    "supercategory": pa.string(),
    "category": pa.string(),
    "iconic_group": pa.string(),
    "species": pa.list_(pa.string()),
    "guidelines": pa.string(),
    "scientific_terms": pa.bool_(),
}
_QRELS: Final = pa.schema(
    [("query_id", pa.int64()), ("image_id", pa.int64()), ("relevance", pa.int64())]
)

#: Configuration -> what it holds, for the card.
_ABOUT: Final = {
    "queries": "the queries: text, category, iconic group, species filter, guidelines",
    "qrels": "the judged pairs: query_id, image_id, relevance (1 or 0)",
    "corpus": "what is known of each image that a pair or a fixed list names",
    "rerank": "the fixed list of each query that is fit for re-ranking, with relevance",
    "rerank_unlabelled": "the same lists without relevance",
    "images": "the pictures themselves, where their licence allows copies",
}


def write(snapshot: Snapshot, directory: Path, image_files: ImageFiles) -> list[WrittenFile]:
    """Write the folder; the image files only where the header says so."""
    found: dict[str, list[WrittenFile]] = {
        "queries": _queries(snapshot, directory),
        "qrels": _qrels(snapshot, directory),
        "corpus": _corpus(snapshot, directory),
    }
    lists, without = _rerank(snapshot, directory, image_files)
    found |= lists
    note = ""
    if snapshot.header.include_images:
        folder = f"{FOLDER}/images"
        found["images"], kept, refused = write_image_files(
            snapshot.open, directory, image_files, folder
        )
        note = (
            f"{kept:,} of {kept + refused:,} pictures are here, upright and without metadata "
            "(EXIF, XMP, IPTC, comments). Color profiles stay, and the coded pixels of upright "
            "JPEG, PNG and WebP files are unchanged; sha256 of corpus is that of the file as it "
            "was imported. The others are listed in refused_images.csv, each with the reason.\n\n"
        )
        if found["rerank"] and snapshot.header.include_images:
            note += (
                "INQUIRE's scripts for re-ranking read this folder where it lies at "
                "evendrow/INQUIRE-Rerank below the folder in which they are started. They need an "
                f"image in each row of rerank; {counted(without, 'row has', 'rows have')} none.\n\n"
            )
    configurations = [
        name
        for name, files in found.items()
        if any(file.name.startswith(f"{FOLDER}/{name}/") for file in files)
    ]
    for name in configurations:
        found[name] += _placeholder(directory, name, found[name])
    with text_file(directory, CARD) as file:
        file.write(_card(snapshot, configurations, note))
    return [WrittenFile(CARD, Access.OPEN), *(file for files in found.values() for file in files)]


def _placeholder(directory: Path, name: str, files: list[WrittenFile]) -> list[WrittenFile]:
    if any(file.access is Access.OPEN for file in files):
        return []
    path = f"{FOLDER}/{name}/WITHHELD.md"
    with text_file(directory, path) as file:
        file.write("The files of this configuration tell labels of the test split.\n")
    return [WrittenFile(path, Access.OPEN)]


def _queries(snapshot: Snapshot, directory: Path) -> list[WrittenFile]:
    schema = pa.schema(list(_QUERY_COLUMNS.items()))
    files = []
    for split in ACCESS:
        chosen = (
            tuple(getattr(query, column) for column in _QUERY_COLUMNS)
            for query in snapshot.queries_of(split).values()
        )
        name = split_name(f"{FOLDER}/queries", SPLIT_NAMES[split])
        files += write_batches(directory, name, Access.OPEN, schema, batches_of(schema, chosen))
    return files


def _qrels(snapshot: Snapshot, directory: Path) -> list[WrittenFile]:
    pairs = pair_columns(snapshot)
    files = []
    for split, access in ACCESS.items():
        chosen = pairs.of_split(snapshot, split)
        columns = [chosen.query_ids, chosen.image_ids, chosen.relevant.astype("int64")]
        schema = _QRELS
        if chosen.gains is not None:
            columns.append(chosen.gains)
            schema = schema.append(pa.field("grade", pa.int64()))
        whole = pa.record_batch([pa.array(column) for column in columns], schema=schema)
        parts = (
            whole.slice(start, ROWS_AT_A_TIME) for start in range(0, whole.num_rows, ROWS_AT_A_TIME)
        )
        name = split_name(f"{FOLDER}/qrels", SPLIT_NAMES[split])
        files += write_batches(directory, name, access, schema, parts)
    return files


def _corpus(snapshot: Snapshot, directory: Path) -> list[WrittenFile]:
    schema = schema_of(SnapshotImage)
    files = []
    for ending, part, access in image_lists(snapshot):
        name = split_name(f"{FOLDER}/corpus", f"corpus{ending}")
        rows = batches(part, "images", schema.names)
        files += write_batches(directory, name, access, schema, rows)
    return files


def _rerank(
    snapshot: Snapshot, directory: Path, image_files: ImageFiles
) -> tuple[dict[str, list[WrittenFile]], int]:
    """Write the lists with and without labels; the files of both, and how many rows with labels
    have no image."""
    labeled = schema_of(ListedImage)
    if snapshot.header.negatives_known:
        place = labeled.get_field_index("judged")
        labeled = labeled.set(place, labeled.field(place).with_nullable(False))
    bare = pa.schema([field for field in labeled if field.name not in LABEL_COLUMNS])
    found: dict[str, list[WrittenFile]] = {"rerank": [], "rerank_unlabelled": []}
    without = 0
    for split, access in ACCESS.items():
        images = list(listed_images(snapshot, split))
        for folder, schema, who in (
            ("rerank", labeled, access),
            ("rerank_unlabelled", bare, Access.OPEN),
        ):
            if folder == "rerank" and snapshot.header.include_images:
                shards = Shards(directory, f"{FOLDER}/{folder}", SPLIT_NAMES[split])
                rows = _with_images(snapshot, images, schema, image_files)
                files, kept = write_shards(shards, image_schema(schema), rows, who)
                without += len(images) - kept
            else:
                row = attrgetter(*schema.names)
                parts = batches_of(schema, map(row, images))
                name = split_name(f"{FOLDER}/{folder}", SPLIT_NAMES[split])
                files = write_batches(directory, name, who, schema, parts)
            found[folder] += files
    return found, without


def _with_images(
    snapshot: Snapshot, images: list[ListedImage], schema: pa.Schema, image_files: ImageFiles
) -> Iterator[Row]:
    ids = np.array([one.inat24_image_id for one in images], dtype=np.int64)
    more = images_of(snapshot, ids, ["sha256", "license_url"])
    row = attrgetter(*schema.names)
    for one in images:
        image_id, path = one.inat24_image_id, one.inat24_file_name
        sha256, url = more[image_id]
        data = allowed_bytes(image_files, image_id, path, sha256, one.license, url)
        yield data, path, row(one)


def _card(snapshot: Snapshot, configurations: list[str], note: str) -> str:
    header = snapshot.header
    queries = snapshot.queries.values()
    # JSON texts are YAML texts too, whatever stands in them.
    lines = [
        "---",
        f"pretty_name: {json.dumps(f'{header.name} v{header.version}', ensure_ascii=False)}",
        "license: other",
        "license_name: see-attribution-of-each-image",
        "tags:",
        "- image-retrieval",
        "- text-to-image-retrieval",
        "- biodiversity",
    ]
    if configurations:
        lines.append("configs:")
    default = next(iter(configurations), "")
    if snapshot.header.include_images and "rerank" in configurations:
        default = "rerank"
    for name in configurations:
        lines += [f"- config_name: {name}", f"  data_dir: {name}"]
        lines += ["  default: true"] if name == default else []
    counts = ", ".join(
        f"{sum(query.split == split for query in queries)} {word}"
        for split, word in (("val", "validation"), ("test", "test"))
    )
    about = dict(_ABOUT)
    if snapshot.graded_queries:
        about["qrels"] += (
            " and grade (3 definitely, 2 partly, 1 mostly not, 0 definitely not; 1 or 0 in queries "
            "without grades)"
        )
    title = plain(f"{header.name} v{header.version}")
    lines += [
        "---",
        "",
        f"# {title}",
        "",
        "A benchmark of text-to-image retrieval: "
        f"{counted(len(queries), 'query', 'queries')} ({counts}), judged by people over "
        f"{counted(snapshot.open.image_count, 'image', 'images')}. Made {header.made_at[:10]} with "
        f"{plain(header.software)}. DATASHEET.md tells how.",
        "",
        "| configuration | holds |",
        "|---|---|",
        *(f"| {name} | {about[name]} |" for name in configurations),
        "",
        "```python",
        "from datasets import load_dataset",
        "",
        'queries = load_dataset("path/of/this/folder", "queries", split="test")',
        "```",
        "",
        "Splits are called validation and test. Images that nobody judged for a query have no row "
        "in qrels. Every image has a licence of its own: see the columns license, license_url and "
        "rights_holder of corpus.",
        "",
    ]
    return "\n".join(lines) + "\n" + note if note else "\n".join(lines)


FORMAT = Format(
    key="hugging-face",
    title="Hugging Face data set",
    about="Parquet files with a data card, for datasets.load_dataset; with or without the images.",
    write=write,
)

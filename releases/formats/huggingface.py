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

The configurations name folders, not files, so that the folder is readable without the files of test
labels too. A split without rows has no file, and a configuration without files isn't in the card,
since `datasets` refuses both: it reads no configuration at all where the folder of one is empty. So
the folder of a configuration whose files may all be withheld has WITHHELD.md as well. relevance is
1 or 0; where a query was labeled with grades, qrels has them in a further column, see `trec`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Final

import numpy as np
import pyarrow as pa

from core.csv_rows import spreadsheet_text
from core.licenses import license_of
from releases.formats.base import Files
from releases.formats.inquire_rerank import COLUMNS, UNLABELED_COLUMNS, ListedImage, listed_images
from releases.formats.parquet import (
    Row,
    allowed_bytes,
    batches_of,
    image_schema,
    write_batches,
    write_images,
)
from releases.formats.writing import (
    SPLIT_NAMES,
    counted,
    images_of,
    plain,
)
from releases.snapshot.snapshot import ROWS_AT_A_TIME, Snapshot, SnapshotImage, schema_of

FOLDER: Final = "huggingface"
REFUSED_FILE: Final = f"{FOLDER}/refused_images.csv"

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
_IMAGE_TEXTS: Final = ("file_name", "license", "license_url", "rights_holder")
_IMAGES: Final = image_schema(
    [pa.field("image_id", pa.int64()), *(pa.field(name, pa.string()) for name in _IMAGE_TEXTS)]
)

#: Configuration -> its content, for the card.
_ABOUT: Final = {
    "queries": "the queries: text, category, iconic group, species filter, guidelines",
    "qrels": "the judged pairs: query_id, image_id, relevance (1 or 0)",
    "corpus": "what is known of each image that a pair or a fixed list names",
    "rerank": "the fixed list of each query that is fit for re-ranking, with relevance",
    "rerank_unlabelled": "the same lists without relevance",
    "images": "the pictures themselves, where their licence allows copies",
}


def write(snapshot: Snapshot, files: Files) -> None:
    """Write the folder; the image files, those of the open lists, only where the header says so."""
    _write_queries(snapshot, files)
    _write_qrels(snapshot, files)
    schema = schema_of(SnapshotImage)
    images = snapshot.batches("images", schema.names)
    write_batches(files, f"{FOLDER}/corpus", f"corpus{files.images}", schema, images)
    _write_lists(snapshot, files)
    refused: set[int] = set()
    if snapshot.header.include_images and not files.images:
        refused = _write_image_files(snapshot, files)
    for name, withheld in (
        ("qrels", snapshot.withholds("pairs")),
        ("corpus", snapshot.withholds("images")),
        ("rerank", bool(files.below(f"{FOLDER}/rerank_unlabelled"))),
    ):
        if withheld and not files.below(f"{FOLDER}/{name}"):
            text = "The files of this configuration tell labels of the test split.\n"
            files.text(f"{FOLDER}/{name}/WITHHELD.md", [text])
    files.text(f"{FOLDER}/README.md", _card(snapshot, files, refused))


def _write_queries(snapshot: Snapshot, files: Files) -> None:
    schema = pa.schema(list(_QUERY_COLUMNS.items()))
    for split, name in SPLIT_NAMES.items():
        rows = map(attrgetter(*schema.names), snapshot.queries_of(split).values())
        write_batches(files, f"{FOLDER}/queries", name, schema, batches_of(schema, rows))


def _write_qrels(snapshot: Snapshot, files: Files) -> None:
    for split, qrels in snapshot.labeled_qrels():
        columns = [qrels.pair_queries, qrels.image_ids, qrels.relevant.astype("int64")]
        schema = _QRELS
        if qrels.gains is not None:
            columns.append(qrels.gains)
            schema = schema.append(pa.field("grade", pa.int64()))
        whole = pa.record_batch([pa.array(column) for column in columns], schema=schema)
        parts = (
            whole.slice(start, ROWS_AT_A_TIME) for start in range(0, whole.num_rows, ROWS_AT_A_TIME)
        )
        write_batches(files, f"{FOLDER}/qrels", SPLIT_NAMES[split], schema, parts)


def _write_lists(snapshot: Snapshot, files: Files) -> None:
    """Write the fixed lists with labels, of the splits that have them, and without."""
    labeled = schema_of(ListedImage)
    if snapshot.header.negatives_known:
        place = labeled.get_field_index("judged")
        labeled = labeled.set(place, labeled.field(place).with_nullable(False))
    bare = pa.schema([labeled.field(name) for name in UNLABELED_COLUMNS])
    for split, name in SPLIT_NAMES.items():
        for folder, schema in (("rerank", labeled), ("rerank_unlabelled", bare)):
            where, images = f"{FOLDER}/{folder}", listed_images(snapshot, split)
            if schema is labeled and split not in snapshot.labeled_splits:
                continue
            if schema is labeled and snapshot.header.include_images:
                rows = _with_images(snapshot, images, files)
                write_images(files, where, name, image_schema(schema), rows)
            else:
                batches = batches_of(schema, map(attrgetter(*schema.names), images))
                write_batches(files, where, name, schema, batches)


def _with_images(snapshot: Snapshot, images: Iterator[ListedImage], files: Files) -> Iterator[Row]:
    listed = list(images)
    ids = np.array([image.inat24_image_id for image in listed], dtype=np.int64)
    details = images_of(snapshot, ids, ["sha256", "license_url"])
    row = attrgetter(*COLUMNS)
    for image in listed:
        image_id, path = image.inat24_image_id, image.inat24_file_name
        sha256, url = details[image_id]
        data = allowed_bytes(files.image_files, image_id, path, sha256, image.license, url)
        yield data, path, row(image)


def _write_image_files(snapshot: Snapshot, files: Files) -> set[int]:
    """Write the images that may be passed on, and the list of those that are left out; returns the
    ids of the latter.

    The bytes are as `image_files` gives them: without metadata, and the pixels as they were, which
    also a license without derivatives allows (retrieval/images/metadata.py).
    """
    refused = set()

    def allowed() -> Iterator[Row]:
        columns = ("image_id", "sha256", *_IMAGE_TEXTS)
        for image_id, sha256, *texts in snapshot.rows("images", columns):
            name, license, url, _ = texts
            data = allowed_bytes(files.image_files, image_id, name, sha256, license, url)
            if data is None:
                refused.add(image_id)
            else:
                yield data, name, (image_id, *texts)

    def reasons() -> Iterator[tuple[int | str, ...]]:
        columns = ("image_id", "rights_holder", "license", "license_url")
        for image_id, holder, license, url in snapshot.rows("images", columns):
            if image_id in refused:
                why = license_of(license, url).refusal
                cells = map(spreadsheet_text, (holder, license, url))
                yield image_id, *cells, why or "the image's file isn't here or cannot be read"

    write_images(files, f"{FOLDER}/images", "images", _IMAGES, allowed())
    header = ("image_id", "rights_holder", "license", "license_url", "reason")
    files.csv(REFUSED_FILE, header, reasons())
    return refused


def card_lines(
    title: str, configurations: Mapping[str, Sequence[str]], default: str = ""
) -> list[str]:
    """The front matter of a data card: each configuration with the lines that say where its files
    are."""
    # JSON texts are YAML texts too, whatever stands in them.
    lines = [
        "---",
        f"pretty_name: {json.dumps(title, ensure_ascii=False)}",
        "license: other",
        "license_name: see-attribution-of-each-image",
        "tags:",
        "- image-retrieval",
        "- text-to-image-retrieval",
        "- biodiversity",
    ]
    if configurations:
        lines.append("configs:")
    for name, where in configurations.items():
        lines += [f"- config_name: {name}", *where]
        lines += ["  default: true"] if name == default else []
    return [*lines, "---"]


def _front_matter(
    title: str, configurations: Mapping[str, Sequence[str]], *, images: bool
) -> list[str]:
    """`card_lines`; `images`: whether the release was made with them."""
    default = next(iter(configurations), "")
    if images and "rerank" in configurations:
        default = "rerank"
    return [*card_lines(title, configurations, default), ""]


def repository_front_matter(title: str, names: Collection[str], *, images: bool) -> list[str]:
    """The front matter of a card beside the release's files, of which `names` are there.

    Each configuration names its files: otherwise `datasets` takes the most frequent kind of file
    for that of all configurations, and most are no Parquet.
    """
    configurations = {}
    for name in _ABOUT:
        folder = f"{FOLDER}/{name}/data/"
        splits = {file.removeprefix(folder).split("-")[0]: None
                  for file in names if file.startswith(folder)}  # fmt: skip
        if splits:
            configurations[name] = ["  data_files:"] + [
                line
                for split in splits
                for line in (f"  - split: {split}", f"    path: {folder}{split}-*.parquet")
            ]
    return _front_matter(title, configurations, images=images)


def _card(snapshot: Snapshot, files: Files, refused: set[int]) -> Iterator[str]:
    header = snapshot.header
    configurations = {
        name: [f"  data_dir: {name}"] for name in _ABOUT if files.below(f"{FOLDER}/{name}")
    }
    queries = snapshot.queries.values()
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
    title = f"{header.name} v{header.version}"
    lines = [
        *_front_matter(title, configurations, images=header.include_images),
        f"# {plain(title)}",
        "",
        "A benchmark of text-to-image retrieval: "
        f"{counted(len(queries), 'query', 'queries')} ({counts}), judged by people over "
        f"{counted(snapshot.image_count, 'image', 'images')}. Made {header.made_at[:10]} with "
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
    yield "\n".join(lines)
    if not header.include_images:
        return
    yield (
        f"\n{snapshot.image_count - len(refused):,} of {snapshot.image_count:,} pictures are here, "
        "upright and without metadata (EXIF, XMP, IPTC, comments). Color profiles stay, and the "
        "coded pixels of upright JPEG, PNG and WebP files are unchanged; sha256 of corpus is that "
        "of the file as it was imported. The others are listed in refused_images.csv, each with "
        "the reason.\n\n"
    )
    if "rerank" in configurations:
        without = sum(
            image.inat24_image_id in refused
            for split in SPLIT_NAMES
            for image in listed_images(snapshot, split)
        )
        yield (
            "INQUIRE's scripts for re-ranking read this folder where it lies at "
            "evendrow/INQUIRE-Rerank below the folder in which they are started. They need an "
            f"image in each row of rerank; {counted(without, 'row has', 'rows have')} none.\n\n"
        )

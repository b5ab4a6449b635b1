"""A text-to-image retrieval task that `mteb` 2 runs, of a release that holds images.

    mteb/corpus/data/…     configuration corpus: id, image, license, license_url, rights_holder
    mteb/query/data/…      configuration query, splits validation and test: id, text
    mteb/qrels/data/…      configuration qrels: query-id, corpus-id, score (1 or 0)
    mteb/task.py           the task; its data set is this folder, or a copy of it on the Hub
    mteb/README.md         the card: how to run it, and what its measures are called here

Ids are texts, as mteb has them. Images that may not be passed on are in neither corpus nor qrels.
mteb would score a query without a relevant image 0, so qrels have none. Unjudged images have no row
there, and count as not relevant. Where the labels of the test split are hidden, all of this is of
the open snapshot: its lists of images lack some that the hidden labels name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from operator import attrgetter
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from django.utils.text import slugify

from releases.formats.base import Files
from releases.formats.huggingface import card_lines
from releases.formats.parquet import (
    Row,
    allowed_bytes,
    batches_of,
    image_schema,
    write_batches,
    write_images,
)
from releases.formats.writing import SPLIT_NAMES, citation, counted, plain
from releases.snapshot.snapshot import Header, Snapshot

FOLDER: Final = "mteb"
#: The first version of the formats that has this one, see `Header.formats`.
_SINCE: Final = 3

_LICENSE: Final = ("license", "license_url", "rights_holder")
_CORPUS: Final = image_schema(pa.field(name, pa.string()) for name in ("id", *_LICENSE))
_QUERY: Final = pa.schema([("id", pa.string()), ("text", pa.string())])
_QRELS: Final = pa.schema(
    [("query-id", pa.string()), ("corpus-id", pa.string()), ("score", pa.int64())]
)

_TASK: Final = '''\
"""An MTEB task, for `mteb` 2; README.md tells how to run it."""

import os
from pathlib import Path

from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata

#: This folder, or a repository with its files on the Hugging Face Hub: "owner/name".
DATA_SET = os.environ.get("RELEASE_DATA_SET") or str(Path(__file__).resolve().parent)
REVISION = os.environ.get("RELEASE_REVISION") or "main"


class ReleaseRetrieval(AbsTaskRetrieval):
    k_values = (1, 5, 10, 50, 100, 1000)
    metadata = TaskMetadata(
        name=%(name)s,
        description=%(description)s,
        dataset={"path": DATA_SET, "revision": REVISION},
        type="Any2AnyRetrieval",
        category="t2i",
        modalities=["text", "image"],
        eval_splits=%(splits)s,
        eval_langs=["eng-Latn"],
        main_score="ndcg_at_10",
        domains=["Nature"],
        task_subtypes=["Image Text Retrieval"],
        license="multiple",
        annotations_creators="human-annotated",
        dialect=[],
        sample_creation="found",
        prompt={"query": "Find an image that matches the given caption."},
        bibtex_citation=%(citation)s,
    )

    def task_specific_scores(self, scores, qrels, *args, **names):
        """INQUIRE's mAP@50, which divides by min(50, R), and mAP and nDCG@10 without rounding."""
        totals = {query: sum(map(bool, qrels[query].values())) for query in scores}
        by_query = {
            "inquire_map_at_50": [
                score["map_cut_50"] * totals[query] / min(50, totals[query])
                for query, score in scores.items()
            ],
            "exact_map": [score["map_cut_1000"] for score in scores.values()],
            "exact_ndcg_at_10": [score["ndcg_cut_10"] for score in scores.values()],
        }
        return {name: sum(values) / len(values) for name, values in by_query.items()}
'''

_USAGE: Final = """
```python
import sys

import mteb

sys.path.insert(0, "path/of/this/folder")
from task import ReleaseRetrieval

model = mteb.get_model("openai/clip-vit-base-patch32")
mteb.evaluate(model, ReleaseRetrieval())
```

To read a copy on the Hugging Face Hub, set RELEASE_DATA_SET to its owner/name.

| score of mteb | measure of the release's leaderboard |
|---|---|
| ndcg_at_10 | nDCG@10, by relevant or not; its unrounded value is exact_ndcg_at_10 |
| map_at_1000 | mAP of a ranking of the first 1,000 images; unrounded exact_map |
| map_at_50 | uncapped mAP@50, over all R relevant images |
| inquire_map_at_50 | mAP@50, over min(50, R) as INQUIRE's |
| recall_at_50, precision_at_50, mrr_at_50, hit_rate_at_50 | R@50, P@50, MRR@50, hit@50 |

Both count unjudged images as not relevant, and leave out queries without a relevant image. mteb
puts images with equal scores into trec_eval's order.
"""


def write(snapshot: Snapshot, files: Files) -> None:
    """Write the folder, without a task where no query can be scored; nothing of a release without
    images, nor of hidden labels."""
    if not snapshot.header.include_images or snapshot.header.formats < _SINCE or files.images:
        return
    write_images(files, f"{FOLDER}/corpus", "corpus", _CORPUS, _allowed(snapshot, files))
    corpus = _corpus_ids(files)
    for split, name in SPLIT_NAMES.items():
        texts = map(attrgetter("query_id", "text"), snapshot.queries_of(split).values())
        queries = ((str(query_id), text) for query_id, text in texts)
        write_batches(files, f"{FOLDER}/query", name, _QUERY, batches_of(_QUERY, queries))
    for split, qrels in snapshot.labeled_qrels():
        there = qrels.where(np.isin(qrels.image_ids, corpus))
        scored = there.only(there.query_ids[there.totals() > 0])
        rows = ((str(query), str(image), score) for query, image, score in scored.rows())
        folder = f"{FOLDER}/qrels"
        write_batches(files, folder, SPLIT_NAMES[split], _QRELS, batches_of(_QRELS, rows))
    if splits := _scored_splits(files):
        files.text(f"{FOLDER}/task.py", [_task(snapshot.header, splits)])
    files.text(f"{FOLDER}/README.md", _card(snapshot, files, len(corpus)))


def _allowed(snapshot: Snapshot, files: Files) -> Iterator[Row]:
    """The images that may be passed on, by id."""
    columns = ("image_id", "file_name", "sha256", *_LICENSE)
    for image_id, path, sha256, license, url, holder in snapshot.rows("images", columns):
        data = allowed_bytes(files.image_files, image_id, path, sha256, license, url)
        if data is not None:
            yield data, path, (str(image_id), license, url, holder)


def _corpus_ids(files: Files) -> npt.NDArray[np.int64]:
    """(n,) the ids of the images in the corpus, as this run or the one before wrote it."""
    shards = (files.directory / name for name in sorted(files.below(f"{FOLDER}/corpus")))
    parts = [
        pq.read_table(shard, columns=["id"])["id"].cast("int64").to_numpy() for shard in shards
    ]
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def _scored_splits(files: Files) -> list[str]:
    names = files.below(f"{FOLDER}/qrels")
    return [split for split in SPLIT_NAMES.values() if any(f"/{split}-" in name for name in names)]


def _task(header: Header, splits: list[str]) -> str:
    """The module of the task."""
    name = "".join(map(str.capitalize, slugify(header.name).split("-")))
    title = f"{header.name} v{header.version}"
    texts = {
        "name": f"{name or 'Release'}V{header.version}T2IRetrieval",
        "description": f"Images that match a query about nature, as people judged them: {title}.",
        "splits": splits,
        "citation": citation(header),
    }
    # JSON texts and lists are Python's too.
    return _TASK % {key: json.dumps(text, ensure_ascii=False) for key, text in texts.items()}


def _card(snapshot: Snapshot, files: Files, images: int) -> Iterator[str]:
    header, splits = snapshot.header, _scored_splits(files)
    title = f"{header.name} v{header.version}"
    configurations = {
        name: [f"  data_dir: {name}"]
        for name in ("corpus", "query", "qrels")
        if files.below(f"{FOLDER}/{name}")
    }
    yield "\n".join(card_lines(title, configurations))
    yield (
        f"\n\n# {plain(title)} for MTEB\n\n"
        f"A task of text-to-image retrieval for mteb 2: {counted(images, 'image', 'images')}, and "
        f"{counted(len(snapshot.queries), 'query', 'queries')} that people judged them for. "
    )
    if not splits:
        yield "No query has a relevant image here whose label may be told: there is no task.\n"
        return
    yield f"The task has the labels of the {' and '.join(splits)} queries.\n{_USAGE}"
    if without := snapshot.image_count - images:
        yield (
            f"\n{counted(without, 'image', 'images')} of {snapshot.image_count:,} may not be "
            "passed on or can't be read: these are in neither corpus nor qrels, so scores differ "
            "from the leaderboard's.\n"
        )
    if header.corpus_images > snapshot.image_count:
        yield (
            "\nThe corpus is every image that a judgment for these queries or a fixed list names. "
            f"Runs on the leaderboard rank {header.corpus_images:,} images, so their scores are no "
            "higher.\n"
        )
    if snapshot.graded_queries:
        yield (
            "\nnDCG on the leaderboard counts the grades of queries that have some; here an image "
            "is relevant or not.\n"
        )

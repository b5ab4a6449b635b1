"""Taking a snapshot: reading everything of a release at one moment of the database."""

from __future__ import annotations

from array import array
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, groupby
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from django.db import connection

from core.jobs.kinds import JobFailed
from core.registries import SNAPSHOT_FACTS, SNAPSHOT_TABLES
from core.sql import repeatable_read
from labeling.judging.consensus import consensus
from labeling.queries.models import Benchmark
from releases.making import fixed_lists, images
from releases.making.audits import released_audits, released_release_audits
from releases.making.labels import (
    Effort,
    complete_queries,
    graded_query_ids,
    released_judgment_count,
    released_judgments,
    released_model_ranks,
    released_queries,
)
from releases.making.progress import Progress
from releases.models import Release
from releases.snapshot.release_files import JudgmentRow
from releases.snapshot.snapshot import (
    Header,
    ListModel,
    Pair,
    SnapshotQuery,
    SnapshotWriter,
    software,
)
from retrieval.embedding.counts import embedded_models
from retrieval.embedding.models import EmbeddingModel
from retrieval.encoding.model_specs import ModelSpecError

CONSENSUS_RULE: Final = (
    "The judgment of a reviewer or admin decides, the latest where there are several. Without one, "
    "the majority decides, where unsure counts as not relevant; a tie is not relevant."
)
GRADES_RULE: Final = (
    "Queries with grades have four: definitely, partly, mostly not, definitely not. Each says "
    "whether definitely and partly are relevant or definitely alone. The consensus grade is the "
    "median of those that say what was decided, rounded down."
)

JUDGMENTS_STEP: Final = "Judgments and their consensus"
QUERIES_STEP: Final = "Queries"
FIXED_STEP: Final = "Fixed lists for re-ranking"
AUDITS_STEP: Final = "Audits"
IMAGES_STEP: Final = "Images"
CORPUS_STEP: Final = "Corpus fingerprint"
SNAPSHOT_STEPS: Final = (
    JUDGMENTS_STEP, QUERIES_STEP, AUDITS_STEP, FIXED_STEP, IMAGES_STEP, CORPUS_STEP,
)  # fmt: skip


@dataclass(slots=True)
class _Labels:
    """What the pass over the judgments counts."""

    efforts: dict[int, Effort]
    image_ids: array[int]
    annotators: int


def snapshot_take(*, release: Release, directory: Path, progress: Progress) -> None:
    """Write the snapshot of a release that is to be made here into an empty directory.

    Everything is read in one transaction that sees one moment of the database, by streaming: memory
    grows with the judged images alone, by a few bytes each. JobFailed: the model of the fixed lists
    can't be loaded.
    """
    writer = SnapshotWriter(directory)
    with repeatable_read():
        made_at = _now()
        benchmark = release.benchmark
        labels = _labels_write(writer, benchmark, progress)
        queries = _queries_write(writer, benchmark, labels, progress)
        graded = any(query.grades for query in queries)
        with progress.step(AUDITS_STEP):
            _audits_write(writer, benchmark)
        model = _rerank_model(release)
        try:
            fixed_images = _fixed_write(writer, model, benchmark, len(queries), progress)
            writer.table("vectors", fixed_lists.released_vectors(model, benchmark))
        except ModelSpecError as error:
            raise JobFailed(f"The fixed lists for re-ranking can't be made: {error}") from error
        image_ids = np.union1d(np.array(labels.image_ids, dtype=np.int64), fixed_images)
        with progress.step(IMAGES_STEP, len(image_ids)) as count, writer.rows("images") as write:
            for image in images.released_images(image_ids.tolist()):
                write(image)
                count(1)
        if fields := images.released_fields():
            values = images.released_field_values(image_ids.tolist(), fields)
            writer.table("custom_fields", values)
        with progress.step(CORPUS_STEP):
            corpus = images.corpus(benchmark.species_ids)
    several = Benchmark.objects.filter(screening=False).count() > 1
    writer.header(
        Header(
            name=release.name,
            version=release.version,
            made_at=made_at.isoformat(timespec="seconds"),
            made_by=release.created_by.get_username() if release.created_by else "",
            software=software(),
            origin=release.origin,
            corpus_images=corpus.images,
            corpus_species=corpus.species,
            corpus_fingerprint=corpus.fingerprint,
            models=_list_models(queries),
            rerank_model=model.name if model else "",
            include_images=bool(release.options.get("include_images")),
            consensus=f"{CONSENSUS_RULE} {GRADES_RULE}" if graded else CONSENSUS_RULE,
            annotators=labels.annotators,
            negatives_known=True,
            confidence=benchmark.setting("CERTIFICATE_CONFIDENCE"),
            test_labels=release.test_labels,
            benchmark=benchmark.name if several else "",
            pay_per_hour=release.options.get("pay_per_hour", ""),
            **{name: fact for facts in SNAPSHOT_FACTS for name, fact in facts().items()},
        )
    )


def _now() -> datetime:
    """The time of the database, in UTC."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now.astimezone(UTC)


def _labels_write(writer: SnapshotWriter, benchmark: Benchmark, progress: Progress) -> _Labels:
    """Write judgments and pairs in one pass."""
    efforts: dict[int, Effort] = defaultdict(Effort)
    people: dict[int, set[int]] = defaultdict(set)
    image_ids = array("q")
    graded = graded_query_ids(benchmark)
    total = released_judgment_count(benchmark)
    with (
        progress.step(JUDGMENTS_STEP, total) as count,
        writer.rows("judgments") as write_judgment,
        writer.rows("pairs") as write_pair,
    ):
        for (query_id, image_id), group in groupby(
            released_judgments(benchmark), key=lambda pair: (pair[0].query_id, pair[0].image_id)
        ):
            votes = []
            judgment: JudgmentRow
            for judgment, vote in group:
                write_judgment(judgment)
                votes.append(vote)
                efforts[query_id].seconds += judgment.seconds
                people[query_id].add(judgment.annotator)
            decided = consensus(votes)
            write_pair(
                Pair(
                    query_id=query_id,
                    image_id=image_id,
                    relevant=decided.relevant,
                    votes=decided.votes,
                    rank=judgment.rank,
                    grade=decided.grade if query_id in graded else None,
                )
            )
            image_ids.append(image_id)
            count(len(votes))
    for query_id, numbers in people.items():
        efforts[query_id].annotators = len(numbers)
    annotators = len(set(chain.from_iterable(people.values())))
    return _Labels(efforts=efforts, image_ids=image_ids, annotators=annotators)


def _queries_write(
    writer: SnapshotWriter, benchmark: Benchmark, labels: _Labels, progress: Progress
) -> list[SnapshotQuery]:
    with progress.step(QUERIES_STEP, complete_queries(benchmark).count()):
        queries = list(released_queries(benchmark, labels.efforts))
        writer.table("queries", queries)
        writer.table("model_ranks", released_model_ranks(benchmark))
        for table in SNAPSHOT_TABLES:
            writer.table(table.name, table.rows(benchmark))
    return queries


def _audits_write(writer: SnapshotWriter, benchmark: Benchmark) -> None:
    with writer.rows("rounds") as write_round, writer.rows("pools") as write_image:
        for rounds, pool in released_audits(benchmark):
            for drawn_round in rounds:
                write_round(drawn_round)
            for image in pool:
                write_image(image)
    with (
        writer.rows("release_audits") as write_audit,
        writer.rows("audited") as write_image,
        writer.rows("seeds") as write_seed,
    ):
        for audits, audited, seeds in released_release_audits(benchmark):
            for write, rows in ((write_audit, audits), (write_image, audited), (write_seed, seeds)):
                for row in rows:
                    write(row)


def _rerank_model(release: Release) -> EmbeddingModel | None:
    """The model of the fixed lists, if there is one and any image is embedded under it."""
    return embedded_models().filter(name=release.options.get("rerank_model", "")).first()


def _fixed_write(
    writer: SnapshotWriter,
    model: EmbeddingModel | None,
    benchmark: Benchmark,
    queries: int,
    progress: Progress,
) -> npt.NDArray[np.int64]:
    """Write the fixed lists; the ids of their images."""
    image_ids = array("q")
    with progress.step(FIXED_STEP, queries if model else 0) as count, writer.rows("fixed") as write:
        for fixed in fixed_lists.released_fixed_lists(model, benchmark) if model else ():
            for row in fixed:
                write(row)
                image_ids.append(row.image_id)
            count(1)
    return np.array(image_ids, dtype=np.int64)


def _list_models(queries: list[SnapshotQuery]) -> list[ListModel]:
    depths: defaultdict[str, list[int]] = defaultdict(list)
    for query in queries:
        for name in query.pool or [query.model]:
            depths[name].append(query.list_depth)
    return [
        ListModel(name=name, depths=sorted(set(of_model)), queries=len(of_model))
        for name, of_model in sorted(depths.items())
        if name
    ]

"""The demo's release and its runs, made by a job after the server is up.

Each step leaves what it finds done, so that the job can be cut short and repeated: labels by ids
that follow from query and image, the release and the runs by their names.
"""

from __future__ import annotations

import io
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction

from benchmark.releases.models import Release
from benchmark.releases.requests import release_create
from benchmark.reranking.services import RerankChoice, rerank_begin
from benchmark.runs.baselines import baselines_begin, baselines_job
from benchmark.runs.models import Run
from benchmark.runs.selectors import fixed_lists, release_queries
from benchmark.runs.services import run_card_update, run_publish
from benchmark.runs.submissions import run_submit
from benchmark.scoring.run_files import RunLine, write_trec
from core.jobs.kinds import JobFailed
from core.jobs.models import Job
from core.jobs.services import job_advance, job_create, job_retry
from demo.loading import demo_queries_load
from demo.queries import JUDGED, read_scenes
from labeling.candidates.models import CandidateList
from labeling.judging.models import Relevance
from labeling.judging.services import LARGEST_BATCH, JudgmentInput, judgments_record
from labeling.lifecycle.services import query_transition
from labeling.queries.models import Query
from retrieval.corpus.models import Image
from retrieval.embedding.models import Embedding, EmbeddingModel
from retrieval.encoding.encoders import load_encoder
from retrieval.ranking.selectors import text_vector

JOB_KIND: Final = "demo_release"
RELEASE_NAME: Final = "Demo"
DATASET: Final = "demo"
#: Labels of a query before its streak of negatives can end it.
MINIMUM_LABELS: Final = 300
#: Images of the damaged run for a query, and how many of them are re-ranked.
DEPTH: Final = 500
RERANKED: Final = 50
#: How much noise is added to the unit vectors, by length.
NOISE: Final = 0.9
SEED: Final = 4
WAIT_SECONDS: Final = 0.5

DAMAGED: Final = "Demo model, damaged vectors"
SECOND_STAGE: Final = "Damaged vectors, top 50 by the demo model"

Vectors = npt.NDArray[np.float32]


def demo_release_begin(*, admin: Any, researcher: Any, labeller: Any) -> Job:
    """Have the demo's release made, with runs of four kinds; the unfinished or done job if there
    is one, and one that failed is taken up again."""
    with transaction.atomic():
        # Of two requests, one waits and finds the other's job.
        get_user_model().objects.select_for_update().get(pk=admin.pk)
        last = Job.objects.filter(kind=JOB_KIND).order_by("-pk").first()
        if last is not None:
            job_retry(job=last)
            return last
        return job_create(
            kind=JOB_KIND,
            params={"researcher": researcher.pk, "labeller": labeller.pk},
            created_by=admin,
            title="The demo's release and its runs",
        )


def demo_release_step(job: Job, deadline: float) -> bool:
    """Do one step after the other until `deadline` (of `time.monotonic`); True when all is there.

    JobFailed: one of the jobs that it waits for failed.
    """
    steps: list[Callable[[Job], bool]] = [
        _queries_labeled,
        _release_made,
        _baselines_made,
        _damaged_submitted,
        _second_stage_made,
    ]
    if job.total is None:
        job_advance(job=job, total=len(steps))
    while job.done < len(steps):
        if steps[job.done](job):
            job_advance(job=job, done=1)
        else:
            # Other jobs have the next turn.
            time.sleep(WAIT_SECONDS)
            return False
        if time.monotonic() > deadline:
            return job.done == len(steps)
    return True


def simulated_labels(
    ranked: list[int], relevant: frozenset[int], *, minimum: int, streak: int
) -> list[tuple[int, bool]]:
    """What a tireless annotator says of the first images of a list: image id and relevance, until
    `streak` in a row are not relevant and at least `minimum` are labeled, or the list ends."""
    labels = []
    row = 0
    for image_id in ranked:
        hit = image_id in relevant
        labels.append((image_id, hit))
        row = 0 if hit else row + 1
        if row >= streak and len(labels) >= minimum:
            break
    return labels


def damaged_vectors(vectors: Vectors, *, noise: float, seed: int) -> Vectors:
    """Unit vectors (n, d) with noise of that length added, of unit length again; the same for the
    same seed."""
    drawn = np.random.default_rng(seed).standard_normal(vectors.shape).astype(np.float32)
    drawn *= noise / np.linalg.norm(drawn, axis=1, keepdims=True)
    damaged = vectors + drawn
    result: Vectors = damaged / np.linalg.norm(damaged, axis=1, keepdims=True)
    return result


def _queries_labeled(job: Job) -> bool:
    """Open the queries, label their lists and complete them; whether all are complete."""
    if _release() is not None:
        return True
    admin, labeller = job.created_by, _person(job, "labeller")
    queries = demo_queries_load(by=admin, demo_queries=JUDGED)
    truth = _truth()
    complete = True
    for demo, query in zip(JUDGED, queries, strict=True):
        if query.state != Query.State.OPEN:
            continue
        frozen = query.lists.filter(frozen_at__isnull=False).last()
        if frozen is None:
            pending = query.lists.select_related("job").last()
            _refuse_stopped(pending.job if pending is not None else None)
            complete = False
            continue
        _label(query, frozen, labeller, truth[demo.query_id])
        query_transition(
            query=query,
            to_state=Query.State.COMPLETE,
            by=admin,
            note="The drawn scenes tell every image that is relevant.",
        )
    return complete


def _release_made(job: Job) -> bool:
    release = _release()
    if release is None:
        release = release_create(
            name=RELEASE_NAME,
            created_by=job.created_by,
            options={"rerank_model": settings.EMBEDDING_MODEL},
        )
    _refuse_stopped(release.job)
    return release.files_ready


def _baselines_made(job: Job) -> bool:
    release = _made_release()
    asked = baselines_job(release)
    if asked is None:
        asked = baselines_begin(release=release, created_by=job.created_by)
    _refuse_stopped(asked)
    return asked.state == Job.State.DONE


def _damaged_submitted(job: Job) -> bool:
    """The damaged run of both tasks, as uploads of the researcher."""
    release = _made_release()
    researcher = _person(job, "researcher")
    ready = True
    for task in (Run.Task.FULL, Run.Task.RERANK):
        run = Run.objects.filter(release=release, task=task, name=DAMAGED).first()
        if task == Run.Task.RERANK and not fixed_lists(release):
            continue
        if run is None:
            run = run_submit(
                release=release,
                owner=researcher,
                file=_damaged_file(release, task),
                file_name="damaged.trec",
                task=task,
                card={
                    "name": DAMAGED,
                    "description": "The demo model's image vectors with noise added to them, "
                    "to see what a worse model does.",
                    **_card(),
                },
                publish=True,
                limited=False,
            )
        _refuse_stopped(run.job)
        ready = ready and run.published
    return ready


def _second_stage_made(job: Job) -> bool:
    """The damaged run's first images put into the demo model's order."""
    release = _made_release()
    run = Run.objects.filter(release=release, name=SECOND_STAGE).first()
    if run is None:
        first = Run.objects.get(release=release, task=Run.Task.FULL, name=DAMAGED)
        choice = RerankChoice(
            release=release,
            first_stage=first,
            depth=RERANKED,
            embedding_model=EmbeddingModel.objects.get(name=settings.EMBEDDING_MODEL),
            name=SECOND_STAGE,
        )
        run = rerank_begin(choice=choice, created_by=job.created_by)
    _refuse_stopped(run.job)
    if run.ready and not run.published:
        run_publish(run=run_card_update(run=run, **_card()))
    return run.ready


def _label(query: Query, frozen: CandidateList, labeller: Any, relevant: frozenset[int]) -> None:
    """Store the labels of the list's first images, each as if it had taken a second or two."""
    ranked = list(frozen.candidates.order_by("rank").values_list("image_id", flat=True))
    labels = simulated_labels(ranked, relevant, minimum=MINIMUM_LABELS, streak=settings.STOP_STREAK)
    items = [
        JudgmentInput(
            image_id=image_id,
            relevance=Relevance.RELEVANT if hit else Relevance.NOT_RELEVANT,
            client_id=uuid.uuid5(uuid.NAMESPACE_URL, f"demo:{query.query_id}:{image_id}"),
            seconds=1.0 + (image_id % 10) / 10 + (0.5 if hit else 0.0),
        )
        for image_id, hit in labels
    ]
    for start in range(0, len(items), LARGEST_BATCH):
        judgments_record(
            query=query, annotator=labeller, items=items[start : start + LARGEST_BATCH]
        )


def _truth() -> Mapping[int, frozenset[int]]:
    """The images that truly answer each query, by the demo query's id."""
    scenes = read_scenes(Path(settings.VAR_DIR) / "demo")
    ids = dict(Image.objects.filter(dataset=DATASET).values_list("source_id", "pk"))
    return {
        demo.query_id: frozenset(
            ids[str(number)]
            for number, scene in scenes.items()
            if demo.matches(scene) and str(number) in ids
        )
        for demo in JUDGED
    }


def _damaged_file(release: Release, task: str) -> io.BytesIO:
    """A TREC run of the damaged vectors, over the corpus or within the fixed lists."""
    model = EmbeddingModel.objects.get(name=settings.EMBEDDING_MODEL)
    rows = list(
        Embedding.objects.filter(model=model).order_by("image_id").values_list("image_id", "vector")
    )
    ids = np.array([image_id for image_id, _ in rows], dtype=np.int64)
    vectors = np.array([vector for _, vector in rows], dtype=np.float32)
    vectors = damaged_vectors(vectors, noise=NOISE, seed=SEED)
    fixed = fixed_lists(release)
    file = io.StringIO()
    for query_id, query in release_queries(release).items():
        if task == Run.Task.RERANK and query_id not in fixed:
            continue
        kept = np.isin(ids, fixed[query_id]) if task == Run.Task.RERANK else slice(None)
        scores = vectors[kept] @ np.array(text_vector(model, query.text), dtype=np.float32)
        order = np.lexsort((ids[kept], -scores))[:DEPTH]
        lines = (
            RunLine(query_id, int(image_id), rank, float(score))
            for rank, (image_id, score) in enumerate(
                zip(ids[kept][order], scores[order], strict=True), start=1
            )
        )
        write_trec(lines, file, tag="damaged")
    return io.BytesIO(file.getvalue().encode())


def _release() -> Release | None:
    """The first version of the demo's release, once it is begun."""
    return Release.objects.filter(name=RELEASE_NAME, version=1).first()


def _made_release() -> Release:
    return Release.objects.get(name=RELEASE_NAME, version=1)


def _card() -> dict[str, Any]:
    """What is told of a method that works with the vectors of the model in use."""
    return {"parameters": load_encoder(settings.EMBEDDING_MODEL).parameters / 1e6}


def _person(job: Job, role: str) -> Any:
    return get_user_model().objects.get(pk=job.params[role])


def _refuse_stopped(other: Job | None) -> None:
    """Fail with what stopped a job that is waited for."""
    if other is not None and other.state in (Job.State.FAILED, Job.State.CANCELED):
        raise JobFailed(f"{other.title or other.kind} {other.state}. {other.error}".strip())

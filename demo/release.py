"""The demo's release and its runs, made by a job after the server is up.

Each slice of the job does what isn't done yet, then waits for other jobs without blocking them. A
slice can be interrupted and repeated: labels have ids made from query and image, and the release
and the runs are recognized by their names.
"""

from __future__ import annotations

import io
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction

from core.jobs.kinds import JobFailed
from core.jobs.models import Job
from core.jobs.services import job_create, job_retry
from demo.queries import JUDGED, DemoQuery, read_scenes
from demo.steps import DATASET, demo_queries_load
from evaluation.reranking.services import RerankChoice, rerank_begin
from evaluation.runs.baselines import baselines_begin, baselines_job
from evaluation.runs.models import Run
from evaluation.runs.selectors import release_data
from evaluation.runs.services import run_card_update, run_publish
from evaluation.runs.store import load_run
from evaluation.runs.submissions import run_submit
from evaluation.scoring.run_files import Ranking, RunLine, write_trec
from labeling.audits.services import LARGEST_DRAW
from labeling.blind.services import blind_show
from labeling.judging.blind import RELEASE_AUDIT
from labeling.judging.models import Relevance
from labeling.judging.services import LARGEST_BATCH, judgments_record
from labeling.judging.sources import JudgmentSource
from labeling.judging.writer import JudgmentInput
from labeling.lifecycle.services import query_transition
from labeling.queries.models import Query
from releases.making.services import release_create
from releases.models import Release
from retrieval.corpus.models import Image
from retrieval.embedding.in_use import model_in_use
from retrieval.embedding.models import EmbeddingModel

JOB_KIND: Final = "demo_release"
RELEASE_NAME: Final = "Demo"
DAMAGED: Final = "Demo model, damaged scores"
SECOND_STAGE: Final = "Damaged scores, top 50 by the demo model"
#: Labels of a query before its streak of negatives can end it.
MINIMUM_LABELS: Final = 300
#: Images of the damaged run for a query, and how many of them are re-ranked.
DEPTH: Final = 500
RERANKED: Final = 50
#: Standard deviation of the noise that is added to the scores.
NOISE: Final = 0.056
SEED: Final = 4
WAIT_SECONDS: Final = 0.5


def demo_release_begin(*, admin: Any, researcher: Any, labeler: Any) -> Job:
    """Create the job that makes the demo's release, with runs of four kinds, or return the existing
    one; a failed job is retried."""
    with transaction.atomic():
        # If two requests come at once, the second waits and uses the first one's job.
        get_user_model().objects.select_for_update().get(pk=admin.pk)
        last = Job.objects.filter(kind=JOB_KIND).order_by("-pk").first()
        if last is not None:
            job_retry(job=last)
            return last
        return job_create(
            kind=JOB_KIND,
            params={"researcher": researcher.pk, "labeler": labeler.pk},
            created_by=admin,
            title="The demo's release and its runs",
        )


def demo_release_step(job: Job) -> bool:
    """Do what can be done now; True when everything is there.

    JobFailed: a job that it waits for failed.
    """
    for other in _work(job):
        if other is None or other.state == Job.State.DONE:
            continue
        if other.state in (Job.State.FAILED, Job.State.CANCELED):
            raise JobFailed(f"{other.title or other.kind} {other.state}. {other.error}".strip())
        time.sleep(WAIT_SECONDS)
        return False
    return True


def _work(job: Job) -> Iterator[Job | None]:
    """Make each part in turn; yields the jobs that must be done before the next."""
    people = get_user_model().objects
    release = Release.objects.filter(name=RELEASE_NAME, version=1).first()
    if release is None:
        queries = demo_queries_load(by=job.created_by, demo_queries=JUDGED)
        unlabeled = [pair for pair in zip(JUDGED, queries, strict=True) if pair[1].state == "open"]
        for _, query in unlabeled:
            yield query.lists.select_related("job").latest("pk").job
        for demo_query, query in unlabeled:
            labeler = people.get(pk=job.params["labeler"])
            demo_query_complete(demo_query, query, labeler=labeler, by=job.created_by)
        release = release_create(
            name=RELEASE_NAME,
            created_by=job.created_by,
            options={"rerank_model": model_in_use()},
        )
    yield release.job
    yield baselines_job(release) or baselines_begin(release=release, created_by=job.created_by)
    runs = Run.objects.filter(release=release)
    model = EmbeddingModel.objects.get(name=model_in_use())
    for baseline in runs.filter(kind=Run.Kind.MODEL, embedding_model=model):
        if baseline.task == Run.Task.RERANK and not release_data(release).fixed:
            continue
        run = runs.filter(task=baseline.task, name=DAMAGED).first() or run_submit(
            release=release,
            owner=people.get(pk=job.params["researcher"]),
            file=damaged_run(load_run(baseline.local_path)),
            file_name="damaged.trec",
            task=baseline.task,
            card={
                "name": DAMAGED,
                "description": "The demo model's scores with noise added to them, to see what a "
                "worse model does.",
                "parameters": baseline.parameters,
            },
            publish=True,
            limited=False,
        )
        yield run.job
    first = runs.get(task=Run.Task.FULL, name=DAMAGED)
    choice = RerankChoice(
        release=release,
        first_stage=first,
        depth=RERANKED,
        embedding_model=model,
        name=SECOND_STAGE,
    )
    second = runs.filter(name=SECOND_STAGE).first() or rerank_begin(
        choice=choice, created_by=job.created_by
    )
    yield second.job
    if not second.published:
        run_publish(run=run_card_update(run=second, parameters=first.parameters))


def simulated_labels(
    ranked: list[int], relevant: set[int], *, minimum: int, streak: int
) -> list[tuple[int, bool]]:
    """The labels (image id, relevance) of a list's first images, until `streak` in a row are not
    relevant and at least `minimum` are labeled, or the list ends.
    """
    labels = []
    negatives = 0
    for image_id in ranked:
        hit = image_id in relevant
        labels.append((image_id, hit))
        negatives = 0 if hit else negatives + 1
        if negatives >= streak and len(labels) >= minimum:
            break
    return labels


def damaged_run(rankings: dict[int, Ranking]) -> io.BytesIO:
    """A TREC run of the rankings with noise added to the scores, always the same."""
    rng = np.random.default_rng(SEED)
    file = io.StringIO()
    for query_id, ranking in sorted(rankings.items()):
        scores = ranking.scores + rng.normal(0, NOISE, len(ranking.scores))
        order = np.lexsort((ranking.image_ids, -scores))[:DEPTH]
        lines = (
            RunLine(query_id, int(ranking.image_ids[row]), rank, float(scores[row]))
            for rank, row in enumerate(order, start=1)
        )
        write_trec(lines, file, tag="damaged")
    return io.BytesIO(file.getvalue().encode())


def relevant_images(demo_query: DemoQuery) -> set[int]:
    """The ids of the corpus's images that were drawn to show what the query asks for."""
    ids = dict(Image.objects.filter(dataset=DATASET).values_list("source_id", "pk"))
    scenes = read_scenes(Path(settings.VAR_DIR) / "demo")
    return {
        ids[str(number)]
        for number, scene in scenes.items()
        if demo_query.matches(scene) and str(number) in ids
    }


@transaction.atomic
def demo_query_complete(
    demo_query: DemoQuery, query: Query, *, labeler: Any, by: Any, whole: bool = False
) -> None:
    """Store the labels of the list's first images and of the release's audit, or of the whole list,
    each as if it had taken one or two seconds, and complete the query.
    """
    relevant = relevant_images(demo_query)
    candidates = query.lists.latest("pk").candidates.order_by("rank")
    ranked = list(candidates.values_list("image_id", flat=True))
    minimum = len(ranked) if whole else MINIMUM_LABELS
    labels = simulated_labels(ranked, relevant, minimum=minimum, streak=settings.STOP_STREAK)
    _judge(query, labeler, labels, JudgmentSource.LIST)
    query_transition(query=query, to_state=Query.State.SUBMITTED, by=labeler)
    while drawn := blind_show(
        kind=RELEASE_AUDIT, query=query, annotator=labeler, count=LARGEST_DRAW
    ).to_judge:
        labels = [(image_id, image_id in relevant) for image_id in drawn]
        _judge(query, labeler, labels, JudgmentSource.AUDIT)
    query_transition(
        query=query,
        to_state=Query.State.COMPLETE,
        by=by,
        note="Labeled by what is drawn in each image.",
    )


def _judge(query: Query, labeler: Any, labels: list[tuple[int, bool]], source: str) -> None:
    items = [
        JudgmentInput(
            image_id=image_id,
            relevance=Relevance.RELEVANT if hit else Relevance.NOT_RELEVANT,
            client_id=uuid.uuid5(uuid.NAMESPACE_URL, f"demo:{query.query_id}:{image_id}"),
            seconds=1.0 + (image_id % 10) / 10 + (0.5 if hit else 0.0),
            source=source,
        )
        for image_id, hit in labels
    ]
    for start in range(0, len(items), LARGEST_BATCH):
        judgments_record(query=query, annotator=labeler, items=items[start : start + LARGEST_BATCH])

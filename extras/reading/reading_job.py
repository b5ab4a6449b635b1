"""Reading as a job: images of queries' candidate lists, in order, to a depth.

An image that was read with the same prompt is not read again, so nothing is paid for twice, however
often a job is started or killed.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import asdict
from functools import reduce
from operator import or_
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Avg, Q, QuerySet
from PIL import Image as PillowImage

from core.errors import Conflict
from core.ids import id_of
from core.jobs.kinds import JobFailed
from core.jobs.models import Job
from core.jobs.services import job_create, job_note
from core.locks import lock_key, transaction_lock
from evaluation.reranking.asking import PART, Asking, Outcome, asking_begin
from evaluation.reranking.estimate import Estimate
from evaluation.reranking.multimodal.answers import Question
from evaluation.reranking.multimodal.prompt import Reply, Score, Usage
from evaluation.reranking.pairs import Pair, images_to_send
from evaluation.reranking.services import checked_setup
from evaluation.reranking.setup import GUESSED_TOKENS
from extras.reading.models import Reader, Reading
from extras.reading.prompt import read_grade
from extras.reading.readers import Asked, asked_of, endpoint_of, installed_reader
from labeling.candidates.models import Candidate
from labeling.queries.models import Benchmark, Query
from retrieval.flags.selectors import is_withdrawn
from retrieval.images.decoding import ImageRefused
from retrieval.images.files import ImageGone

JOB_KIND: Final = "read_images"
MAX_DEPTH: Final = 1_000_000
#: Images that an entry point gets at a time.
AT_ONCE: Final = 16


def queries_to_read(text: str, benchmark: Benchmark | None = None) -> list[Query]:
    """The queries with a ready list that a text names: “open”, “all” (but rejected ones), or
    numbers separated by commas; with a benchmark, its alone. Raises ValidationError.
    """
    ready = Query.objects.select_related("benchmark", "current_list").order_by("query_id")
    ready = ready.filter(current_list__frozen_at__isnull=False)
    if benchmark is not None:
        ready = ready.filter(benchmark=benchmark)
    states = {"open": Q(state=Query.State.OPEN), "all": ~Q(state=Query.State.REJECTED)}
    numbers = {id_of(part.strip()) or 0 for part in text.split(",")}
    found = list(ready.filter(states.get(text, Q(query_id__in=numbers))))
    if not found or (text not in states and len(found) < len(numbers)):
        raise ValidationError(
            {"queries": "Write open, all, or numbers of queries with a ready list: 3, 17."}
        )
    return found


def reading_estimate(*, reader: Reader, queries: Sequence[Query], depth: int) -> Estimate:
    """What reading the first `depth` images of each query takes; sends nothing."""
    images = already_read = 0
    for query in queries:
        there = _candidates(query.current_list_id, 1, depth)
        images += there.count()
        already_read += Reading.objects.filter(
            reader=reader,
            query=query,
            prompt_sha256=asked_of(reader, query).sha256,
            image__in=there.values("image"),
        ).count()
    requests = images - already_read
    means = reader.readings.filter(prompt_tokens__gt=0).aggregate(
        prompt=Avg("prompt_tokens"), completion=Avg("completion_tokens")
    )
    measured = means["prompt"] is not None
    prompt, completion = means.values() if measured else GUESSED_TOKENS
    if reader.entry_point:
        prompt = completion = 0.0
    usage = Usage(requests, round(requests * prompt), round(requests * completion))
    paces = [1 / rpm for rpm in [reader.requests_per_minute] if rpm]
    last = reading_jobs(reader).filter(result__requests__gt=0, active_seconds__gt=0).first()
    if last is not None:
        paces.append(last.active_seconds / 60 / last.result["requests"])
    return Estimate(
        queries=len(queries),
        pairs=images,
        unavailable=0,
        answered=already_read,
        requests=requests,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        measured=measured,
        cost=endpoint_of(reader, None).prices.cost(usage),
        minutes=requests * max(paces) if paces else None,
    )


def reading_jobs(reader: Reader) -> QuerySet[Job]:
    """The jobs of a reader, the last first."""
    return Job.objects.filter(kind=JOB_KIND, params__reader=reader.pk).order_by("-pk")


def reading_checked(*, reader: Reader, depth: int, max_cost: float | None) -> None:
    """Raise ValidationError, with the field's name, for limits that are none."""
    if not 1 <= depth <= MAX_DEPTH:
        raise ValidationError({"depth": f"Choose a depth from 1 to {MAX_DEPTH:,}."})
    if not reader.entry_point:
        checked_setup(endpoint_of(reader, max_cost))
    elif max_cost is not None:
        raise ValidationError({"max_cost": "A Python entry point has no prices."})


@transaction.atomic
def reading_begin(
    *, reader: Reader, queries: Sequence[Query], depth: int, max_cost: float | None, by: Any
) -> Job:
    """Have the reader read the first `depth` images of each query's list, judged ones too, for at
    most `max_cost` US dollars. Raises ValidationError, and Conflict while the reader is at work.
    """
    reading_checked(reader=reader, depth=depth, max_cost=max_cost)
    transaction_lock(lock_key("job_kind"))
    # Two jobs would read images twice, and pass the limit of requests.
    if reading_jobs(reader).filter(state__in=Job.UNFINISHED).exists():
        raise Conflict(f"{reader.name} is at work. Wait for its job, or stop it.")
    lists = [one.current_list for one in queries if one.current_list is not None]
    return job_create(
        kind=JOB_KIND,
        params={
            "reader": reader.pk,
            "lists": [[one.pk, min(depth, one.size)] for one in lists],
            "max_cost": max_cost,
        },
        created_by=by,
        title=f"{reader.name} reads {len(lists):,} queries to rank {depth:,}",
    )


def queries_of(job: Job) -> QuerySet[Query]:
    """Those of which a job reads images."""
    return Query.objects.filter(lists__in=[pk for pk, _ in job.params["lists"]])


def reading_step(job: Job, deadline: float) -> bool:
    """Read until `deadline`; True when all images are read or failed. JobFailed: see `Asking`; the
    reader or its entry point is gone.
    """
    reader = Reader.objects.filter(pk=job.params["reader"]).first()
    if reader is None:
        raise JobFailed("The reader was deleted.")
    lists: list[list[int]] = job.params["lists"]
    if job.total is None or job.cursor.get("stopped"):
        asking_begin(job, sum(_candidates(pk, 1, depth).count() for pk, depth in lists))
    step = (_EntryPointStep if reader.entry_point else _Step)(reader, job, deadline)
    while step.part * PART < sum(depth for _, depth in lists):
        if not step.settle(_pairs(lists, step.part)) or step.late:
            return False
    return True


def _candidates(list_id: int | None, first: int, last: int) -> QuerySet[Candidate]:
    """Those of a list from one rank to another, without withdrawn images."""
    return Candidate.objects.filter(
        ~is_withdrawn("image_id"), list=list_id, rank__range=(first, last)
    )


def _pairs(lists: Sequence[Sequence[int]], part: int) -> list[Pair]:
    """(number of the query, image id) of a part: PART ranks, counted over all lists."""
    start, windows = part * PART, []
    for list_id, depth in lists:
        first, last = max(start, 0) + 1, min(start + PART, depth)
        if first <= last:
            windows.append(Q(list=list_id, rank__range=(first, last)))
        start -= depth
    rows = Candidate.objects.filter(~is_withdrawn("image_id"), reduce(or_, windows))
    return list(rows.order_by("list_id", "rank").values_list("list__query__query_id", "image_id"))


class _Step(Asking):
    """One slice of the work; its tokens are the job's."""

    def __init__(self, reader: Reader, job: Job, deadline: float) -> None:
        super().__init__(job, deadline, setup=endpoint_of(reader, job.params["max_cost"]))
        self.reader = reader
        self.paid = Usage(**{name: job.result.get(name, 0) for name in asdict(Usage())})
        self.queries: dict[int, Query] = {}
        self.asked: dict[int, Asked] = {}

    def questions(self, part: Sequence[Pair]) -> tuple[list[Question], dict[Pair, str]]:
        new = {number for number, _ in part} - self.queries.keys()
        for query in Query.objects.select_related("benchmark").filter(query_id__in=new):
            self.queries[query.query_id] = query
            self.asked[query.query_id] = asked_of(self.reader, query)
        part = [pair for pair in part if pair[0] in self.asked]
        shown = {one.image_id for number, _ in part for one in self.asked[number].examples}
        side = self.reader.max_side
        images, refused = images_to_send(shown | {image_id for _, image_id in part}, side=side)
        questions = []
        for query_id, image_id in part:
            if image_id in images:
                asked = self.asked[query_id]
                # No image is an example of itself, or the answer would stand beside it.
                examples = tuple(
                    (one.line, images[one.image_id])
                    for one in asked.examples
                    if one.image_id in images and one.image_id != image_id
                )
                questions.append(
                    Question(query_id, image_id, asked.prompt, images[image_id], examples)
                )
        return questions, {pair: refused[pair[1]] for pair in part if pair[1] in refused}

    def answered(self, questions: Sequence[Question]) -> Collection[Pair]:
        rows = Reading.objects.filter(
            reader=self.reader,
            query__query_id__in={one.query_id for one in questions},
            image__in={one.image_id for one in questions},
        )
        read = set(rows.values_list("query__query_id", "image_id", "prompt_sha256"))
        return {one.key for one in questions if (*one.key, self.asked[one.query_id].sha256) in read}

    def store(self, replies: list[tuple[Question, Reply]], paid: Usage) -> None:
        with transaction.atomic():
            Reading.objects.bulk_create(
                [
                    Reading(
                        reader=self.reader,
                        query=self.queries[question.query_id],
                        image_id=question.image_id,
                        probability=reply.score.score,
                        prompt_sha256=self.asked[question.query_id].sha256,
                        prompt_tokens=reply.usage.prompt_tokens,
                        completion_tokens=reply.usage.completion_tokens,
                    )
                    for question, reply in replies
                ],
                ignore_conflicts=True,
            )
            self.paid += paid
            cost = self.setup.prices.cost(self.paid)
            job_note(job=self.job, members={**asdict(self.paid), "cost": cost})

    read = staticmethod(read_grade)


class _EntryPointStep(_Step):
    """One slice of the work of a Python entry point."""

    def ask(self, pending: deque[Question]) -> bool:
        read = installed_reader(self.reader.entry_point)
        while pending and not self.stop and not self.late:
            query_id = pending[0].query_id
            outcomes: list[Outcome] = []
            batch: list[Question] = []
            images = []
            while pending and pending[0].query_id == query_id and len(batch) < AT_ONCE:
                question = pending.popleft()
                try:
                    with PillowImage.open(io.BytesIO(question.image.jpeg())) as opened:
                        images.append(opened.convert("RGB"))
                    batch.append(question)
                except (ImageGone, ImageRefused, OSError) as error:
                    outcomes.append((question, error))
            if batch:
                query = self.queries[query_id]
                try:
                    probabilities = read(query.text, query.all_guidelines, images)
                except JobFailed as error:
                    self.stop, probabilities = error, []
                outcomes += [
                    (question, Reply(Score(None, None, score), Usage(1), usage_known=True))
                    for question, score in zip(batch, probabilities, strict=False)
                ]
            self.take(outcomes, pending)
        if self.stop is not None:
            self.stopped(self.stop)
        return not pending

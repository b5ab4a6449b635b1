"""Submitted runs: stored as they come, read and checked whole by a job, and limited on the test
split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, BinaryIO, Final

import numpy as np
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils import timezone

from core import storage
from core.csv_rows import MAX_ERRORS, RowError
from core.errors import Conflict, FileRefused, LimitReached
from core.jobs.kinds import JobFailed
from core.jobs.models import Job
from core.jobs.services import job_advance
from evaluation.runs.corpus import in_corpus
from evaluation.runs.models import Run, Submission
from evaluation.runs.selectors import release_data
from evaluation.runs.services import CARD_FIELDS, card_validate, run_score_begin, run_store
from evaluation.runs.store import save_upload
from evaluation.scoring import hidden_labels
from evaluation.scoring.run_files import Ranking, read_run
from releases.models import Release

#: A day of the limit is these hours, wherever they begin, so that midnight gives nobody twice as
#: many.
DAY: Final = timedelta(hours=24)
SPLITS: Final = ("val", "test", "all")
#: Submitted files of a person that may wait to be read.
WAITING_AT_MOST: Final = 10


class RunRefused(FileRefused):
    """A run file has errors, and nothing of it is scored."""

    def __str__(self) -> str:
        more = f" (and {len(self.errors) - 1} more)" if self.errors[1:] else ""
        return f"{self.errors[0]}{more}"


@dataclass(frozen=True, slots=True)
class Allowance:
    """How many submissions on test splits a person has left."""

    limit: int
    """In 24 hours."""
    left: int
    next_at: datetime | None
    """When the next becomes free, if none is left; None too where the limit is 0."""

    @property
    def sentence(self) -> str:
        """The state in words."""
        if self.left:
            return f"{self.left} of {self.limit} submissions on the test split are left today."
        if self.next_at is None:
            return "No submissions on the test split are taken here."
        return (
            f"All {self.limit} submissions on the test split of 24 hours are used; the next is "
            f"free at {self.next_at:%Y-%m-%d %H:%M} UTC."
        )

    @property
    def reached(self) -> LimitReached:
        """The error where none is left."""
        free = self.next_at
        wait = None if free is None else (free - timezone.now()).total_seconds()
        return LimitReached(self.sentence, wait=wait)


def allowance_of(person: Any) -> Allowance:
    """What the person has left now, over all releases. Runs that were deleted count."""
    limit: int = settings.TEST_SUBMISSIONS_PER_DAY
    since = timezone.now() - DAY
    recent = Submission.objects.filter(person=person.pk, test_split=True, made_at__gt=since)
    # With the limit lowered meanwhile there may be more than it allows.
    times = list(recent.order_by("-made_at").values_list("made_at", flat=True)[: max(limit, 1)])
    left = max(limit - len(times), 0)
    free = None if left or not limit else times[limit - 1] + DAY
    return Allowance(limit=limit, left=left, next_at=free)


def submission_record(*, person: Any, run: Run, test_split: bool, limited: bool = True) -> None:
    """Count a submission, in the transaction that makes its run.

    Of one person's submissions at the same moment, one waits for the other. LimitReached, unless
    `limited` is false; Conflict where WAITING_AT_MOST files wait.
    """
    get_user_model().objects.select_for_update().get(pk=person.pk)
    waiting = Run.objects.filter(owner=person, sha256="", job__state__in=Job.UNFINISHED)
    if limited and waiting.filter(kind=Run.Kind.UPLOAD).count() >= WAITING_AT_MOST:
        raise Conflict(
            f"{WAITING_AT_MOST} of your files wait to be read. Submit this one when they are."
        )
    if limited and test_split:
        allowance = allowance_of(person)
        if not allowance.left:
            raise allowance.reached
    Submission.objects.create(person=person, release=run.release, run=run, test_split=test_split)


def require_open_board(release: Release) -> None:
    """Conflict: the board is closed, so that runs with test queries aren't taken any more."""
    if release.board_closed_at:
        raise Conflict(
            f"The board of {release} is closed: runs with test queries aren’t taken any more."
        )


def run_submit(
    *,
    release: Release,
    owner: Any,
    file: BinaryIO,
    file_name: str,
    task: str = Run.Task.FULL,
    split: str = "all",
    card: dict[str, Any],
    publish: bool = False,
    limited: bool = True,
) -> Run:
    """Store a run file as it is; a job reads it (`run_read`) and scores it.

    `split` says which queries it holds: "val", "test" or "all" for both. `card` has fields of
    CARD_FIELDS; only the name is needed. The run is private unless `publish` is set, which
    shows it once it is scored. `owner` None is the operator's; only those and submissions with
    `limited` false pass the limit of the test split. Until the file is read it counts as one with
    test queries, unless `split` is "val".

    Raises RunRefused for more than RUN_MAX_BYTES, LimitReached, ValidationError (with the fields
    named), NoSnapshot, Conflict for re-ranking a release without fixed lists, for test queries on a
    closed board and where WAITING_AT_MOST files of the owner wait, and OSError where it can't be
    stored.
    """
    if task == Run.Task.RERANK and not release_data(release).fixed:
        raise Conflict(f"{release} has no fixed lists, so there is nothing to re-rank.")
    run = Run(
        release=release,
        owner=owner,
        task=task,
        kind=Run.Kind.UPLOAD,
        **{name: card[name] for name in CARD_FIELDS if name in card},
    )
    run.name = run.name.strip()
    card_validate(run)
    test_split = split != "val"
    if test_split:
        require_open_board(release)
    if limited and owner is not None and test_split:
        # Before anything is stored; counted again below.
        allowance = allowance_of(owner)
        if not allowance.left:
            raise allowance.reached
    _check_size(file, file_name)
    try:
        with transaction.atomic():
            run.save()
            save_upload(run.upload, file)
            if owner is not None:
                submission_record(person=owner, run=run, test_split=test_split, limited=limited)
            run_score_begin(
                run=run,
                created_by=owner,
                publish=publish,
                upload={"name": file_name, "split": split},
            )
    except BaseException:
        # Nothing but this run could have had the number.
        if run.pk is not None:
            storage.remove(run.upload)
        raise
    return run


def run_read(*, run: Run, job: Job) -> None:
    """Read the file of a submitted run, and count it as what it holds; done again, the outcome is
    the same.

    JobFailed for a file with errors, which the job's result then lists. Such a submission doesn't
    count. NoSnapshot: there is nothing to check it against.
    """
    upload = job.params.get("upload")
    if upload is None:
        return
    if not run.sha256:
        try:
            with storage.local_file(run.upload).open("rb") as file:
                rankings = read_submission(
                    file, upload["name"], release=run.release, task=run.task, split=upload["split"]
                )
        except FileNotFoundError:
            raise JobFailed("The submitted file is missing; submit it again.") from None
        except RunRefused as error:
            with transaction.atomic():
                job_advance(
                    job=job, result={"errors": [asdict(row_error) for row_error in error.errors]}
                )
                Submission.objects.filter(run=run).delete()
            storage.remove(run.upload)
            raise JobFailed(f"The file is refused. {error}") from None
        _store(run, rankings, job)
    storage.remove(run.upload)


def _store(run: Run, rankings: dict[int, Ranking], job: Job) -> None:
    """Store what was read, and count the submission as what it holds."""
    queries = release_data(run.release).queries
    test_split = any(queries[query_id].split == "test" for query_id in rankings)
    with transaction.atomic():
        # Of a job that was canceled, or whose run was deleted meanwhile, nothing is stored.
        job_advance(job=job)
        run_store(run=run, rankings=rankings)
        Submission.objects.filter(run=run).update(test_split=test_split)


def read_submission(
    file: BinaryIO, file_name: str, *, release: Release, task: str, split: str
) -> dict[int, Ranking]:
    """The ranking of each query in a file, checked line by line and then as a whole; RunRefused for
    one with errors. NoSnapshot: there is nothing to check it against."""
    data = release_data(release)
    _check_size(file, file_name)

    def unknown(image_ids: Sequence[int]) -> list[int]:
        ids = np.array(image_ids, dtype=np.int64)
        missing: list[int] = ids[~in_corpus(release, ids)].tolist()
        return missing

    rerank = task == Run.Task.RERANK
    rankings, errors = read_run(
        file,
        name=file_name,
        queries={query_id: query.split for query_id, query in data.queries.items()},
        split=None if split == "all" else split,
        unknown_images=None if rerank else unknown,
        allowed_images={query_id: set(ids.tolist()) for query_id, ids in data.fixed.items()}
        if rerank
        else None,
        max_bytes=settings.RUN_MAX_TEXT_BYTES,
    )
    errors = errors or short_rankings(release, task, rankings, file_name)
    if errors:
        raise RunRefused(errors)
    return rankings


def _check_size(file: BinaryIO, file_name: str) -> None:
    """RunRefused for a file of more than RUN_MAX_BYTES, which is then at its beginning."""
    size = file.seek(0, 2)
    file.seek(0)
    if size > settings.RUN_MAX_BYTES:
        text = f"the file has {size:,} bytes; {settings.RUN_MAX_BYTES:,} are taken"
        raise RunRefused([RowError(file_name, 1, "", text)])


def short_rankings(
    release: Release, task: str, rankings: Mapping[int, Ranking], file_name: str
) -> list[RowError]:
    """The errors of a run that is too short to be measured on hidden labels. A run that holds test
    queries has to rank at least `hidden_labels.DEPTH` images, or all that there are, for each of
    them, so that no score reveals the labels of a few images.
    """
    data = release_data(release)
    test = [query_id for query_id, query in data.queries.items() if query.split == "test"]
    if not release.labels_hidden or not any(query_id in rankings for query_id in test):
        return []
    if task == Run.Task.RERANK:
        sizes = {i: len(data.fixed[i]) for i in test if i in data.fixed}
    else:
        sizes = dict.fromkeys(test, data.header.corpus_images or hidden_labels.DEPTH)
    errors = []
    for query_id, size in sizes.items():
        depth = min(hidden_labels.DEPTH, size)
        ranked = len(rankings[query_id].image_ids) if query_id in rankings else 0
        if ranked < depth:
            message = (
                f"query {query_id} has {ranked} images; the labels of the test split are hidden, "
                f"so a run ranks at least {depth} images for each of its queries"
            )
            errors.append(RowError(file_name, 1, "image_id", message))
    return errors[:MAX_ERRORS]

"""Submitted runs: read and checked whole, kept private, limited on the test split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, BinaryIO, Final

import numpy as np
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils import timezone

from benchmark.models import Release, Run, Submission
from benchmark.runs.corpus import in_corpus
from benchmark.runs.files import Ranking, read_run
from benchmark.runs.selectors import release_data
from benchmark.runs.services import CARD_FIELDS, card_validate, run_score_begin, run_store
from labeling.errors import Conflict
from labeling.query_csv import RowError

#: A day of the limit is these hours, wherever they begin, so that midnight gives nobody twice as
#: many.
DAY: Final = timedelta(hours=24)
SPLITS: Final = ("val", "test", "all")


class RunRefused(Exception):
    """A run file has errors, and nothing of it was kept."""

    def __init__(self, errors: Sequence[RowError]) -> None:
        super().__init__(f"{errors[0]}" + (f" (and {len(errors) - 1} more)" if errors[1:] else ""))
        self.errors = list(errors)


class LimitReached(Exception):
    """Somebody has no submission on the test split left now."""

    def __init__(self, allowance: Allowance) -> None:
        super().__init__(allowance.sentence)
        self.allowance = allowance


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
    `limited` is false.
    """
    get_user_model().objects.select_for_update().get(pk=person.pk)
    if limited and test_split:
        allowance = allowance_of(person)
        if not allowance.left:
            raise LimitReached(allowance)
    Submission.objects.create(person=person, release=run.release, run=run, test_split=test_split)


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
    """Take in a run file: checked line by line, stored, and scored by a job.

    `split` says which queries it holds: "val", "test" or "all" for both. `card` has the fields of
    CARD_FIELDS, of which only the name is needed. It is private unless `publish` is set, which
    shows it once it is scored. `owner` None is the operator's; only those and submissions with
    `limited` false pass the limit of the test split.

    Raises RunRefused, LimitReached, ValidationError (with the fields named), NoSnapshot, Conflict
    for re-ranking a release without fixed lists, and OSError where it can't be stored.
    """
    data = release_data(release)
    if task == Run.Task.RERANK and not data.fixed:
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
    if limited and owner is not None and split != "val":
        # Before anything is read; counted again below.
        allowance = allowance_of(owner)
        if not allowance.left:
            raise LimitReached(allowance)
    rankings = _read(file, file_name, release=release, task=task, split=split)
    test_split = any(data.queries[query_id].split == "test" for query_id in rankings)
    try:
        with transaction.atomic():
            run.save()
            if owner is not None:
                submission_record(person=owner, run=run, test_split=test_split, limited=limited)
            run = run_store(run=run, rankings=rankings)
            run_score_begin(run=run, created_by=owner, publish=publish)
    except BaseException:
        # Nothing but this run could have had the number.
        if run.pk is not None:
            run.path.unlink(missing_ok=True)
        raise
    return run


def _read(
    file: BinaryIO, file_name: str, *, release: Release, task: str, split: str
) -> dict[int, Ranking]:
    data = release_data(release)
    file.seek(0, 2)
    size = file.tell()
    if size > settings.RUN_MAX_BYTES:
        text = f"the file has {size:,} bytes; {settings.RUN_MAX_BYTES:,} are taken"
        raise RunRefused([RowError(file_name, 1, "", text)])
    file.seek(0)

    def unknown(image_ids: Sequence[int]) -> list[int]:
        ids = np.array(image_ids, dtype=np.int64)
        return ids[~in_corpus(release, ids)].tolist()

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
    if errors:
        raise RunRefused(errors)
    return rankings

"""Runs of detectors on a release's boxes: submitting, scoring and deleting them."""

from __future__ import annotations

import hashlib
import json
from typing import Any, BinaryIO, Final

from django.db import transaction

from core import storage
from core.errors import Conflict, Invalid
from core.jobs.models import Job
from core.jobs.services import job_create
from evaluation.runs.submissions import WAITING_AT_MOST
from extras.boxes.detection import figures_of, read_results
from extras.boxes.models import DetectionRun
from extras.boxes.services import LARGEST_UPLOAD
from releases.models import Release
from releases.selectors import release_file_path

KIND: Final = "score_boxes"
ALL_BOXES: Final = "coco/boxes.json"
VAL_BOXES: Final = "coco/boxes_val.json"


def truth_name(release: Release) -> str:
    """The file of boxes that everybody's runs are scored on: where test labels are hidden, that of
    the validation queries. A release without boxes has none.
    """
    return VAL_BOXES if release.labels_hidden else ALL_BOXES


def truth_of(release: Release, name: str) -> dict[str, Any]:
    """A release's file of boxes. Conflict: it has none of that name."""
    path = release_file_path(release=release, name=name)
    if path is None:
        raise Conflict(f"{release} has no {name} to score boxes on.")
    with storage.reading(path) as file:
        truth: dict[str, Any] = json.load(file)
        return truth


@transaction.atomic
def detection_submit(*, release: Release, owner: Any, name: str, file: BinaryIO) -> DetectionRun:
    """Check a results file and have a job score it.

    Raises Invalid for a name that can't be printed and a file of more than LARGEST_UPLOAD or with
    wrong entries, and Conflict where the release has no boxes or WAITING_AT_MOST files of the owner
    aren't scored.
    """
    if not name.isprintable():
        raise Invalid({"name": ["Use characters that can be printed, in one line."]})
    if DetectionRun.objects.filter(owner=owner, figures__isnull=True).count() >= WAITING_AT_MOST:
        raise Conflict(f"{WAITING_AT_MOST} of your files aren't scored yet.")
    data = file.read(LARGEST_UPLOAD + 1)
    if len(data) > LARGEST_UPLOAD:
        raise Invalid({"file": [f"The file has more than {LARGEST_UPLOAD // 2**20} MiB."]})
    run = DetectionRun.objects.create(
        release=release,
        name=name,
        owner=owner,
        results=read_results(data, truth_of(release, truth_name(release))),
        sha256=hashlib.sha256(data).hexdigest(),
    )
    title = f"Score {name} on the boxes of {release}"
    run.job = job_create(kind=KIND, params={"run": run.pk}, created_by=owner, title=title)
    run.save(update_fields=["job"])
    return run


def score_step(job: Job, _deadline: float) -> bool:
    """Score a run in one slice, unless it was deleted meanwhile."""
    run = DetectionRun.objects.filter(pk=job.params["run"], figures__isnull=True).first()
    if run is not None and run.results is not None:
        figures = figures_of(truth_of(run.release, truth_name(run.release)), run.results)
        DetectionRun.objects.filter(pk=run.pk).update(figures=figures, results=None)
    return True


def detection_delete(*, run: DetectionRun) -> None:
    """Delete a run; a job that waits for it then has nothing to score."""
    run.delete()

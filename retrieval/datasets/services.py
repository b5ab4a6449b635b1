"""What an admin says of a data set as a whole: stored at once, and applied to its images by a
job.
"""

from __future__ import annotations

import time
from typing import Any, Final

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import connection, transaction

from core.errors import Conflict
from core.jobs.models import Job
from core.jobs.services import job_advance, job_get_or_create
from core.locks import is_locked, lock_key, transaction_lock
from core.sql import fetch_all
from retrieval.corpus.models import DatasetMark, Image
from retrieval.datasets.selectors import dataset_mark_of
from retrieval.importing.marks import LICENSE_UNKNOWN, LOCATIONS_OBSCURED
from retrieval.importing.services import BEING_REMOVED, removal_goes_on

KIND: Final = "mark_dataset"
CHANGED_AT_ONCE: Final = 5000
_IMAGE: Final = Image._meta.db_table
#: What a mark does to images, and which it concerns.
_STATEMENTS: Final = {"license_unknown": LICENSE_UNKNOWN, "locations_obscured": LOCATIONS_OBSCURED}
_CONCERNED: Final = {
    "license_unknown": "license <> '' OR license_url <> ''",
    "locations_obscured": "latitude IS NOT NULL AND NOT coordinates_obscured",
}
_SAID: Final = {
    ("license_unknown", True): "Set the license to unknown",
    ("license_unknown", False): "Took back that the license is unknown",
    ("locations_obscured", True): "Marked the locations as obscured",
    ("locations_obscured", False): "Took back that the locations are obscured",
}


def dataset_mark(
    *,
    dataset: str,
    by: Any,
    license_unknown: bool | None = None,
    locations_obscured: bool | None = None,
) -> tuple[DatasetMark, Job | None]:
    """Say that a data set's license is unknown, or that its locations are obscured, or take that
    back; None leaves it. Returns the mark, and the job that changes the images where there are any.

    It also holds for later imports of the data set. What is taken back stays with the images until
    they are imported again. Counts the images that are concerned, for the log. Raises Missing for
    an unknown data set, Conflict while images are imported or a data set is removed.
    """
    given = {"license_unknown": license_unknown, "locations_obscured": locations_obscured}
    wanted = {name: value for name, value in given.items() if value is not None}
    before = dataset_mark_of(dataset)
    # Said again, it also concerns images that a canceled job has left.
    counts = {name: _concerned(dataset, name) for name, value in wanted.items() if value}
    with transaction.atomic():
        transaction_lock(lock_key("job_kind"))
        # An import has read the mark before; one that begins after this reads the new one.
        if is_locked(lock_key("importing")):
            raise Conflict("Images are being imported. Mark the data set after that.")
        if removal_goes_on():
            raise Conflict(BEING_REMOVED)
        mark, _ = DatasetMark.objects.update_or_create(dataset=dataset, defaults=wanted)
        for name, value in wanted.items():
            if value != getattr(before, name):
                about = f": {counts[name]:,} images" if value else ""
                _log(mark, by, f"{_SAID[name, value]}{about}")
        marks = [name for name, count in counts.items() if count]
        if not marks:
            return mark, None
        title = ", ".join(_SAID[name, True] for name in marks)
        job = job_get_or_create(
            kind=KIND,
            params={"dataset": dataset, "marks": marks},
            created_by=by,
            title=f"{dataset}: {title}",
        )
        return mark, job


def _concerned(dataset: str, name: str) -> int:
    statement = f"SELECT count(*) FROM {_IMAGE} WHERE dataset = %s AND ({_CONCERNED[name]})"
    [(count,)] = fetch_all(statement, [dataset])
    return int(count)


def _log(mark: DatasetMark, by: Any, what: str) -> None:
    LogEntry.objects.create(
        user=by,
        content_type=ContentType.objects.get_for_model(DatasetMark),
        object_id=str(mark.pk),
        object_repr=mark.dataset,
        action_flag=CHANGE,
        change_message=what,
    )


def mark_step(job: Job, deadline: float) -> bool:
    """Change the images of a data set as its mark says, in the order of their ids there; True when
    all are done. The result counts those that were changed; what was taken back meanwhile isn't
    done any more.
    """
    dataset = job.params["dataset"]
    if job.total is None:
        job_advance(job=job, total=Image.objects.filter(dataset=dataset).count())
    while True:
        with transaction.atomic():
            following = Image.objects.filter(
                dataset=dataset, source_id__gt=job.cursor.get("after", "")
            ).order_by("dataset", "source_id")
            rows = list(following.values_list("pk", "source_id")[:CHANGED_AT_ONCE])
            if not rows:
                return True
            changed = _change(dataset, job.params["marks"], [pk for pk, _ in rows])
            result = {"changed": job.result.get("changed", 0) + changed}
            job_advance(job=job, done=len(rows), cursor={"after": rows[-1][1]}, result=result)
        if time.monotonic() >= deadline:
            return False


def _change(dataset: str, marks: list[str], ids: list[int]) -> int:
    """Change images, and return how many rows a mark has changed; images that were taken down stay
    as they are.
    """
    # In the order of their ids, as imports and embedding lock them.
    images = Image.objects.filter(pk__in=ids, takedown=None).order_by("pk")
    kept = list(images.select_for_update(no_key=True, of=("self",)).values_list("pk", flat=True))
    mark = DatasetMark.objects.get(dataset=dataset)
    changed = 0
    with connection.cursor() as cursor:
        for name in marks:
            if getattr(mark, name):
                cursor.execute(_STATEMENTS[name], [kept])
                changed += cursor.rowcount
    return changed

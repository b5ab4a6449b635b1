"""The demo's people, pictures and queries. Each step can be cut short and done again."""

import json
import os
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from django.conf import settings

from annotator.models import User
from annotator.services import user_create
from core.access import Role
from core.jobs.models import Job
from demo.corpus import write_corpus
from demo.loading import DemoSpeciesMissing, demo_queries_load
from demo.release import demo_release_begin
from labeling.candidates.models import CandidateList
from labeling.queries.models import Query
from retrieval.embedding.services import embedding_job_create
from retrieval.encoding.encoders import ModelSpecError
from retrieval.importing.services import ImportReport, import_images

DATASET = "demo"
POLL_SECONDS = 0.2
LABELLER = "simulated"
CAST = {
    "admin": Role.ADMIN,
    "reviewer": Role.REVIEWER,
    "annotator": Role.ANNOTATOR,
    "researcher": Role.RESEARCHER,
}

Progress = Callable[[int, int], None]


class DemoError(RuntimeError):
    """A step of the demo failed; the message says which and why."""


@dataclass(frozen=True)
class Person:
    """One of the demo's users, with the password that was generated."""

    name: str
    role: str
    password: str


def demo_people() -> list[Person]:
    """The demo's users, made with generated passwords at the first call.

    The passwords are kept in a file that only its owner reads. A user who is missing from the
    database is made again with the same password; one who exists is left alone. Who is new in
    CAST joins a demo that was made before.
    """
    file = Path(settings.VAR_DIR) / "demo_passwords.json"
    people = [Person(**one) for one in json.loads(file.read_text())] if file.exists() else []
    known = {person.name for person in people}
    joining = [
        Person(name, role.value, secrets.token_urlsafe(9))
        for name, role in CAST.items()
        if name not in known
    ]
    if joining:
        people += joining
        _write_private(file, json.dumps([asdict(person) for person in people], indent=1))
    for person in people:
        if not User.objects.filter(username=person.name).exists():
            user_create(username=person.name, role=Role(person.role), password=person.password)
    return people


def demo_corpus_draw(*, count: int, progress: Progress) -> Path:
    """Draw what is missing of the demo's `count` pictures; the folder that holds train.json."""
    return write_corpus(Path(settings.VAR_DIR) / "demo", count=count, progress=progress)


def demo_corpus_import(*, corpus: Path, progress: Progress) -> ImportReport:
    """Bring the drawn pictures into the corpus, as any data set in the iNat24 layout.

    Raises DemoError if one of them was refused.
    """
    report = import_images(path=corpus / "train.json", dataset=DATASET, progress=progress)
    if report.refused_count:
        raise DemoError(f"{report.refused_count} of the demo's pictures were refused: {report}")
    return report


def demo_queries_open() -> list[Query]:
    """Import the demo's queries where they are missing and open them.

    Raises DemoError if the corpus lacks the species of one.
    """
    try:
        return demo_queries_load(by=User.objects.get(username="admin"))
    except DemoSpeciesMissing as error:
        raise DemoError(f"{error} Too few pictures were asked for (--images).") from error


def demo_release_job() -> Job:
    """The job that labels fifteen more queries as the scenes truly are, makes a release of them,
    and runs on it: it works on while the demo is used."""
    people = {name: User.objects.get(username=name) for name in ("admin", "researcher")}
    labeller = User.objects.filter(username=LABELLER).first()
    if labeller is None:
        # Nobody logs in as a simulation, so nobody is told the password.
        labeller, _ = user_create(
            username=LABELLER, role=Role.ANNOTATOR, password=secrets.token_urlsafe(24)
        )
    return demo_release_begin(
        admin=people["admin"], researcher=people["researcher"], labeller=labeller
    )


def demo_embedding_job() -> Job:
    """The job that embeds what is not embedded yet under the model in use.

    Raises DemoError if EMBEDDING_MODEL does not name a model.
    """
    try:
        return embedding_job_create(created_by=User.objects.get(username="admin"))
    except ModelSpecError as error:
        raise DemoError(str(error)) from error


def job_wait(*, job: Job, progress: Progress) -> Job:
    """Wait until a worker has done a job.

    Raises DemoError if the job failed, or if it could not do all of its items.
    """
    while job.state in Job.UNFINISHED:
        time.sleep(POLL_SECONDS)
        job.refresh_from_db()
        if job.total:
            progress(job.done, job.total)
    if job.state != Job.State.DONE or job.failed:
        errors = "; ".join(str(error) for error in job.item_errors.all()[:3])
        raise DemoError(f"{job.title or job} {job.state}. {job.error} {errors}".strip())
    return job


def lists_wait(*, queries: Iterable[Query], progress: Progress) -> None:
    """Wait until each query has a frozen candidate list; DemoError if one of the jobs failed."""
    wanted = {query.pk for query in queries}
    while True:
        lists = CandidateList.objects.filter(query__in=wanted)
        ready = set(lists.filter(frozen_at__isnull=False).values_list("query_id", flat=True))
        progress(len(ready), len(wanted))
        if ready == wanted:
            return
        broken = lists.filter(frozen_at__isnull=True, job__state=Job.State.FAILED).first()
        if broken is not None and broken.job is not None:
            raise DemoError(f"The list of “{broken.text}” failed: {broken.job.error}")
        time.sleep(POLL_SECONDS)


def _write_private(path: Path, text: str) -> None:
    """Write a file that only its owner reads, whole or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)

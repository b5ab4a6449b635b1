"""The demo's people, images and queries. Each step can be interrupted and repeated."""

import json
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Max

from annotator.models import User
from annotator.people.services import user_create
from core.access import Role
from core.errors import Refused
from core.files import whole_file
from core.jobs.models import Job
from demo.corpus import write_corpus
from demo.queries import QUERIES, DemoQuery
from labeling.candidates.services import list_refresh, lists_refresh_stale
from labeling.lifecycle.services import lock_query_ids, query_create_in_state
from labeling.queries.models import Query
from retrieval.corpus.models import Image
from retrieval.embedding.models import Embedding
from retrieval.embedding.services import embedding_job_create
from retrieval.importing.services import import_images
from retrieval.importing.species_names import iconic_group
from retrieval.species.selectors import species_resolve

DATASET = "demo"
POLL_SECONDS = 0.2
LABELER = "simulated"
CAST = {
    "admin": Role.ADMIN,
    "reviewer": Role.REVIEWER,
    "annotator": Role.ANNOTATOR,
    "researcher": Role.RESEARCHER,
}

Progress = Callable[[int, int], None]


class DemoError(Refused):
    """A step of the demo failed; the message says which and why."""


@dataclass(frozen=True)
class Person:
    """One of the demo's users, with the password that was generated."""

    name: str
    role: str
    password: str


def demo_people() -> list[Person]:
    """The demo's users, created with generated passwords at the first call.

    The passwords are stored in a file that only its owner can read. A user who is missing from the
    database is created again with the same password; existing users stay as they are. New people
    in CAST are added to an existing demo.
    """
    file = Path(settings.VAR_DIR) / "demo_passwords.json"
    people = [Person(**row) for row in json.loads(file.read_text())] if file.exists() else []
    names = {person.name for person in people}
    joining = [
        Person(name, role.value, secrets.token_urlsafe(9))
        for name, role in CAST.items()
        if name not in names
    ]
    if joining:
        people += joining
        # Only the owner can read files of whole_file.
        with whole_file(file) as draft:
            draft.write(json.dumps([asdict(person) for person in people], indent=1).encode())
    for person in people:
        if not User.objects.filter(username=person.name).exists():
            user_create(username=person.name, role=Role(person.role), password=person.password)
    return people


def simulated_labeler() -> User:
    """The annotator of the demo's release, whose password nobody knows."""
    if not User.objects.filter(username=LABELER).exists():
        password = secrets.token_urlsafe(24)
        user_create(username=LABELER, role=Role.ANNOTATOR, password=password)
    return User.objects.get(username=LABELER)


def demo_corpus_import(*, count: int, drawing: Progress, importing: Progress) -> None:
    """Draw the missing ones of the demo's `count` images, and import all.

    Raises DemoError if an image was refused.
    """
    corpus = write_corpus(Path(settings.VAR_DIR) / "demo", count=count, progress=drawing)
    report = import_images(path=corpus / "train.json", dataset=DATASET, progress=importing)
    if report.refused_count:
        raise DemoError(f"{report.refused_count} of the demo's images were refused: {report}")


def demo_image_count() -> int:
    """How many images of the demo are in the corpus."""
    return Image.objects.filter(dataset=DATASET).count()


def demo_embed(*, by: User, progress: Progress, model_name: str = "") -> None:
    """Embed what isn't embedded yet by a model, by default the one in use, and wait for the job.

    Raises ModelSpecError if the name, or EMBEDDING_MODEL, isn't a model's; DemoError if the job
    failed.
    """
    job = embedding_job_create(model_name=model_name, created_by=by)
    wait_for_job(job, progress)


def demo_queries_load(*, by: Any, demo_queries: Sequence[DemoQuery] = QUERIES) -> list[Query]:
    """Create and open demo queries, `by` an admin; returns them in order.

    A demo query that exists stays as it is, so a repeat only adds missing queries and requests
    failed lists again. Raises DemoError if the demo corpus isn't imported yet.
    """
    loaded = [_load(demo_query, by) for demo_query in demo_queries]
    lists_refresh_stale(by=by)
    return loaded


@transaction.atomic
def _load(demo_query: DemoQuery, by: Any) -> Query:
    lock_query_ids()
    existing = Query.objects.filter(text=demo_query.query_text).first()
    if existing is not None:
        return existing
    species, missing = species_resolve(demo_query.species)
    if missing:
        raise DemoError(
            f"The corpus lacks {', '.join(map(str, missing))}, which the species filter of "
            f"“{demo_query.query_text}” names. Import more of the demo corpus first (--images)."
        )
    id_taken = Query.objects.filter(query_id=demo_query.query_id).exists()
    return query_create_in_state(
        to_state=Query.State.OPEN,
        created_by=by,
        query_id=None if id_taken else demo_query.query_id,
        text=demo_query.query_text,
        category=demo_query.category,
        iconic_group=iconic_group(supercategory=demo_query.iconic_group),
        scientific_terms=demo_query.scientific_terms,
        split=demo_query.split,
        guidelines=demo_query.guidelines,
        species=species,
    )


def demo_queries_open(
    *, by: User, progress: Progress, demo_queries: Sequence[DemoQuery] = QUERIES
) -> list[Query]:
    """Open the queries to be labeled, and wait for candidate lists of all images that are embedded;
    DemoError if one fails.
    """
    queries = demo_queries_load(by=by, demo_queries=demo_queries)
    newest = Embedding.objects.aggregate(newest=Max("created_at"))["newest"]
    for query in queries:
        frozen_at = query.lists.latest("pk").frozen_at
        if query.state == Query.State.OPEN and frozen_at and frozen_at < newest:
            list_refresh(query=query, by=by)
    for done, query in enumerate(queries, start=1):
        wait_for_job(query.lists.latest("pk").job)
        progress(done, len(queries))
    return queries


def wait_for_job(job: Job | None, progress: Progress | None = None) -> None:
    """Wait until a worker has done a job, if there is one.

    Raises DemoError if the job failed, or if it could not do all of its items.
    """
    if job is None:
        return
    while job.state in Job.UNFINISHED:
        time.sleep(POLL_SECONDS)
        job.refresh_from_db()
        if job.total and progress:
            progress(job.done, job.total)
    if job.state != Job.State.DONE or job.failed:
        errors = "; ".join(str(error) for error in job.item_errors.all()[:3])
        raise DemoError(f"{job.title or job} {job.state}. {job.error} {errors}".strip())

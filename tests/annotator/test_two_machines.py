"""Two machines that share PostgreSQL, Redis and a bucket, and nothing else."""

from __future__ import annotations

import hashlib
import io
import urllib.error
import urllib.request
import uuid
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from django.db import connection

from annotator.backup.contents import folders
from core.jobs.models import Job
from core.jobs.services import TASK
from core.storage import FETCHED
from evaluation.runs.models import Run
from evaluation.runs.submissions import run_submit
from labeling.judging.services import judgments_record
from labeling.judging.writer import JudgmentInput
from labeling.lifecycle.services import query_create, query_transition
from releases.making.services import release_create, release_verify
from releases.models import Release
from retrieval.corpus.models import Image
from retrieval.embedding.services import embedding_job_create
from retrieval.importing.services import import_images
from tests.conftest import client_of, token_of
from tests.evaluation.runs import trec
from tests.processes import Served, database_url, redis_server, wait_for
from tests.retrieval.making import coco

pytestmark = [pytest.mark.e2e, pytest.mark.faults]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments: Any) -> None:
        return None


@pytest.fixture
def two(
    transactional_db: None, in_bucket: dict[str, str], settings: Any, tmp_path: Path
) -> Iterator[Served]:
    """The second machine: web server, worker and encoder of texts. The tests' process is `one`."""
    settings.VAR_DIR = tmp_path / "one"
    (settings.VAR_DIR / "releases").mkdir(parents=True)
    settings.EMBEDDING_MODEL = "demo"
    with redis_server(tmp_path) as redis:
        served = Served(
            tmp_path / "two",
            DATABASE_URL=database_url(connection.settings_dict),
            CELERY_BROKER_URL=redis.url,
            **in_bucket,
        )
        try:
            yield served.wait_healthy(300)
        finally:
            served.end()


def worked(two: Served) -> None:
    """Wait until the second machine has done all jobs."""
    with Celery(broker=two.environment["CELERY_BROKER_URL"], set_as_current=False) as app:
        for job in Job.objects.filter(state__in=Job.UNFINISHED):
            app.send_task(TASK, args=[job.pk, job.turn])
    unfinished = Job.objects.filter(state__in=Job.UNFINISHED)
    wait_for(lambda: not unfinished.exists(), what="the jobs", seconds=300)
    assert list(Job.objects.exclude(state="done").values_list("title", "error")) == []


def get(two: Served, token: str) -> Callable[[str], Any]:
    """Fetches an address of the second machine, following no redirect."""
    opener = urllib.request.build_opener(_NoRedirect())

    def fetch(path: str) -> Any:
        asked = urllib.request.Request(f"{two.url}{path}", headers={"Authorization": token})
        try:
            return opener.open(asked, timeout=60)
        except urllib.error.HTTPError as answer:
            return answer

    return fetch


def test_what_one_has_the_other_sees(
    two: Served, admin: Any, annotator: Any, researcher: Any, tmp_path: Path, settings: Any
) -> None:
    fetch = get(two, f"Token {token_of(admin)}")
    # Images come in on one.
    import_images(path=coco(tmp_path))
    images = list(Image.objects.order_by("pk"))
    for image in images:
        for address in (image.url, image.thumbnail_url):
            with fetch(address) as answer:
                here = client_of(admin).get(address)
                assert answer.read() == b"".join(here.streaming_content)  # type: ignore[attr-defined]
                assert answer.headers["Content-Security-Policy"]

    # The other embeds them, freezes the list, and makes the release.
    embedding_job_create(created_by=admin)
    worked(two)
    query = query_create(text="a red square", category="Species ID", split="val", created_by=admin)
    query = query_transition(query=query, to_state="open", by=admin)
    worked(two)
    items = [
        JudgmentInput(image_id=one.pk, relevance=relevance, client_id=uuid.uuid4())
        for one, relevance in zip(images, ["relevant"] + ["not_relevant"] * 99, strict=False)
    ]
    recorded = judgments_record(query=query, annotator=annotator, items=items)
    assert {one.status for one in recorded.outcomes} == {"stored"}
    query = query_transition(query=query, to_state="submitted", by=annotator, note="seen")
    query_transition(query=query, to_state="complete", by=admin, note="seen")
    options = {"include_images": True, "rerank_model": ""}
    release = release_create(name="Shared", created_by=admin, options=options)
    worked(two)
    release.refresh_from_db()
    assert release.files_ready

    # A run is submitted on one, and scored by the other.
    ranking = trec({query.query_id: [one.pk for one in images]})
    run = run_submit(
        release=release, owner=researcher, file=io.BytesIO(ranking), file_name="run.txt",
        card={"name": "Sent to one"}, publish=True,
    )  # fmt: skip
    worked(two)
    run.refresh_from_db()
    assert (run.ready, run.rows) == (True, len(images))

    # Both show all of it.
    here = client_of(admin)
    for address, text in (
        (f"/releases/{release.pk}/", "Shared"),
        (f"/releases/{release.pk}/statistics/", "Shared"),
        (f"/releases/{release.pk}/leaderboard/?split=val", "Sent to one"),
        (f"/runs/{run.pk}/", "Sent to one"),
        (f"/runs/{run.pk}/queries/{query.query_id}/", "a red square"),
    ):
        page = here.get(address)
        shown = (address, page.status_code, text in page.content.decode())
        assert shown == (address, 200, True)
    with fetch(f"/api/releases/{release.pk}/runs/") as answer:
        assert b"Sent to one" in answer.read()
    assert release_verify(release=release) == []

    # The archive comes from the bucket, for those who may have it.
    archive = f"/api/releases/{release.pk}/archive"
    with fetch(archive) as answer:
        assert answer.status == 302
        signed = answer.headers["Location"]
    with urllib.request.urlopen(signed) as answer:
        data = answer.read()
        assert f'"{release.slug}.zip"' in answer.headers["Content-Disposition"]
    assert hashlib.sha256(data).hexdigest() == release.archive["sha256"]
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        assert len(packed.namelist()) == len(release.file_list)
    assert get(two, f"Token {token_of(annotator)}")(archive).status in (403, 404)
    assert here.get(f"/releases/{release.pk}/files/judgments.csv").status_code == 302

    # Nothing lies on either machine but what was fetched, which can go.
    for var_dir in (Path(settings.VAR_DIR), two.var_dir):
        held = [one for name in folders() for one in (var_dir / name).rglob("*") if one.is_file()]
        assert held == []
        assert {one.name for one in (var_dir / FETCHED).iterdir()} == {"releases", "runs"}
    assert Release.objects.count() == 1
    assert Run.objects.filter(kind=Run.Kind.UPLOAD).count() == 1

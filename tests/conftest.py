"""What all tests share: people, their API clients, real workers and served applications."""

import os
import shutil
import urllib.request
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.db import connection
from django.test import Client, TransactionTestCase
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from rest_framework.test import APIClient

from annotator.postgres.embedded import embedded_postgres
from core.access import Role
from core.log_lines import request_id
from tests import ROOT
from tests.databases import empty_written_tables, use_copy
from tests.pages import Browser
from tests.people import PASSWORD
from tests.processes import Served, Worker, database_url, mounted_disk, wait_for
from tests.retrieval.buckets import KEYS, bucket
from tests.retrieval.buckets import bucket_server as server_of_buckets
from tests.settings import PROCESS

# No example fails for the time that it takes, which is the machine's.
hypothesis_settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis_settings.load_profile("untimed")

#: What may be missing where nothing else may: in continuous integration.
OPTIONAL = ("kubectl", "systemd-analyze", "only root", "there is no Python", "this checkout")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with whole applications, which take long, so that short tests keep all busy at the end;
    one process makes the world of all sites, while others test what doesn't wait for it.
    """
    for item in items:
        if item.get_closest_marker("pure") and "_django_db_helper" in item.fixturenames:  # type: ignore[attr-defined]
            raise pytest.UsageError(f"{item.nodeid} is marked as pure and uses the database.")
    first = ("tests/annotator/test_faults", "tests/annotator", "tests/demo", "tests/e2e", "tests")
    items.sort(key=lambda item: next(n for n, p in enumerate(first) if item.nodeid.startswith(p)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Have a test fail that is skipped where all is installed."""
    report = yield
    if report.skipped and os.environ.get("CI") and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if not reason.startswith(OPTIONAL):
            report.outcome, report.longrepr = "failed", f"Skipped, though all is here: {reason}"
    return report


def pytest_unconfigure(config: pytest.Config) -> None:
    """Wait for the end of the session's database server, and remove the session's folder."""
    if not hasattr(config, "workerinput") and "INQUIRE_TESTS_DIR" in os.environ:
        folder = Path(os.environ["INQUIRE_TESTS_DIR"])
        embedded_postgres(folder).leave(wait=True)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def django_db_setup(django_test_environment: None, django_db_blocker: Any) -> None:
    """Give this process a database of its own, in place of the one that pytest-django makes."""
    with django_db_blocker.unblock():
        use_copy(f"test_{PROCESS}")
    TransactionTestCase._fixture_teardown = empty_written_tables


@pytest.fixture(autouse=True)
def outside_of_requests() -> None:
    """End the request that an earlier test left open: its answer unread, or by an exception."""
    request_id.set(None)


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder of real data beside the checkout (photos, INQUIRE's files)."""
    folder = Path(os.environ.get("INQUIRE_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip("the folder of real data, ../shared, is not here")
    return folder


def person(name: str, role: Role) -> Any:
    """A user as `create_user` makes them, with the password PASSWORD."""
    from annotator.people.services import user_create

    return user_create(username=name, role=role, password=PASSWORD)


def token_of(user: Any) -> str:
    """A new API token of the user's."""
    from annotator.people.tokens import token_create

    user.refresh_from_db()
    return token_create(user=user, name=f"test {user.api_tokens.count()}", days=30)[1]


@pytest.fixture
def annotator(db: None) -> Any:
    """An annotator."""
    return person("ann", Role.ANNOTATOR)


@pytest.fixture
def other_annotator(db: None) -> Any:
    """A second annotator."""
    return person("otto", Role.ANNOTATOR)


@pytest.fixture
def researcher(db: None) -> Any:
    """A researcher."""
    return person("rosa", Role.RESEARCHER)


@pytest.fixture
def reviewer(db: None) -> Any:
    """A reviewer."""
    return person("rita", Role.REVIEWER)


@pytest.fixture
def admin(db: None) -> Any:
    """An admin."""
    return person("ada", Role.ADMIN)


def api_of(user: Any) -> APIClient:
    """An API client that sends the user's token, as scripts do."""
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {token_of(user)}")
    return client


def client_of(user: Any) -> Client:
    """A browser's client in which the user is logged in."""
    client = Browser()
    client.force_login(user)
    return client


@pytest.fixture
def clients(annotator: Any, reviewer: Any, admin: Any) -> dict[str, Client]:
    """A browser's client of each role, and one of nobody."""
    people = {"annotator": annotator, "reviewer": reviewer, "admin": admin}
    return {"anonymous": Browser()} | {role: client_of(user) for role, user in people.items()}


@pytest.fixture
def anonymous_api() -> APIClient:
    """An API client without a token."""
    return APIClient()


@pytest.fixture
def annotator_api(annotator: Any) -> APIClient:
    """The annotator's API client."""
    return api_of(annotator)


@pytest.fixture
def other_annotator_api(other_annotator: Any) -> APIClient:
    """The second annotator's API client."""
    return api_of(other_annotator)


@pytest.fixture
def researcher_api(researcher: Any) -> APIClient:
    """The researcher's API client."""
    return api_of(researcher)


@pytest.fixture
def reviewer_api(reviewer: Any) -> APIClient:
    """The reviewer's API client."""
    return api_of(reviewer)


@pytest.fixture
def admin_api(admin: Any) -> APIClient:
    """The admin's API client."""
    return api_of(admin)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own that a test can fill or make read-only."""
    with mounted_disk(tmp_path / "disk") as folder:
        yield folder


@pytest.fixture
def bucket_server() -> Iterator[str]:
    """A real S3 server with the buckets `state` and `other`; its address."""
    with server_of_buckets() as address:
        # It remembers what servers before it in this process had.
        urllib.request.urlopen(f"{address}/moto-api/reset", data=b"")
        for name in ("state", "other"):
            bucket(address, name, {})
        yield address


@pytest.fixture
def in_bucket(bucket_server: str, settings: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The files of the state lie in a bucket; the variables that say so to other processes."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    settings.S3_ENDPOINT_URL = bucket_server
    settings.STORAGE_URL = "s3://state/here"
    settings.STORAGES = {**settings.STORAGES, "default": {"BACKEND": "core.bucket.Bucket"}}
    return {"S3_ENDPOINT_URL": bucket_server, "STORAGE_URL": settings.STORAGE_URL, **KEYS}


@pytest.fixture
def demo_encoder(settings: Any) -> str:
    """Makes the demo model the one in use, and returns its name."""
    settings.EMBEDDING_MODEL = "demo"
    return "demo"


@pytest.fixture
def start_worker(transactional_db: None, tmp_path: Path) -> Iterator[Callable[..., Worker]]:
    """Starts real Celery workers on the test database; they are ended after the test.

    `start_worker(CELERY_BROKER_URL=…, concurrency=2)`: other names are environment variables.
    Returns once the worker shows a sign of life.
    """
    from annotator.celery import app
    from annotator.models import WorkerHeartbeat

    started: list[Worker] = []
    # A test may have a state folder of its own; messages go through that of the session.
    messages = Path(app.conf.broker_transport_options["folder"])
    own = Path(django_settings.VAR_DIR)
    if own != messages.parent and not (own / messages.name).exists():
        own.mkdir(mode=0o700, parents=True, exist_ok=True)
        (own / messages.name).symlink_to(messages)
    with app.connection_for_write() as broker:
        broker.default_channel.queue_declare(queue="celery")
        broker.default_channel.queue_purge(queue="celery")

    def start(*, concurrency: int = 2, **environment: str) -> Worker:
        basics = {
            "VAR_DIR": str(django_settings.VAR_DIR),
            "DATABASE_URL": database_url(connection.settings_dict),
            "EMBEDDING_MODEL": django_settings.EMBEDDING_MODEL,
        }
        log = tmp_path / f"worker-{len(started)}.log"
        worker = Worker({**basics, **environment}, log, concurrency=concurrency)
        started.append(worker)

        def beats() -> bool:
            assert worker.alive(), log.read_text()
            name = f":{worker.process.pid}"
            return bool(WorkerHeartbeat.objects.filter(worker__endswith=name).exists())

        wait_for(beats, what="the worker's first sign of life")
        return worker

    yield start
    for worker in started:
        if worker.alive():
            worker.kill()


@pytest.fixture
def worker(start_worker: Callable[..., Worker]) -> Worker:
    """A real Celery worker process on the test database."""
    return start_worker()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Starts `manage.py serve` with a state folder of its own; ended after the test.

    `serve()` waits until all is healthy; `serve("demo", wait=False)` runs another command.
    """
    started: list[Served] = []

    def start(
        *arguments: str, var_dir: Path | None = None, wait: bool = True, **environment: str
    ) -> Served:
        served = Served(var_dir or tmp_path / "var", *arguments, **environment)
        started.append(served)
        return served.wait_healthy() if wait else served

    yield start
    for served in started:
        served.end()

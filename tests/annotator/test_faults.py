"""What protects people's labels while parts of a site fail: each judgment is stored once and in
order, a job goes on, and a backup is whole or not there. `make test-faults` runs the other faults.
"""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import threading
import urllib.error
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from annotator.backup.archive import archive_verify
from tests import ROOT
from tests.processes import Redis, fill, mounted_disk, redis_server, wait_for
from tests.site import Site
from tests.worlds import start_site

pytestmark = pytest.mark.e2e

TEXT = "a hopper on a stone"


@dataclass
class Equipped:
    """A site with an open query, and what is beside it; None for what this machine can't have."""

    site: Site
    query: int
    disk: Path | None
    redis: Redis | None


@pytest.fixture(scope="module")
def equipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Equipped]:
    """A site on a small disk, which reaches its worker by Redis."""
    folder = tmp_path_factory.mktemp("faults")
    with ExitStack() as stack:

        def there(part: Any) -> Any:
            try:
                return stack.enter_context(part)
            except pytest.skip.Exception:
                return None

        disk, redis = there(mounted_disk(folder / "disk")), there(redis_server(folder))
        variables = {"DISK_MIN_FREE_BYTES": "0"}
        if redis:
            variables["CELERY_BROKER_URL"] = redis.url
        site = start_site((disk or folder) / "var", **variables)
        stack.callback(site.served.end)
        site.served.wait_healthy()
        yield Equipped(site, site.open_query(TEXT), disk, redis)


@dataclass
class Labeler:
    """Somebody who judges one image after another, and repeats what wasn't acknowledged, as the
    labeling page does.
    """

    site: Site
    query: int
    acknowledged: list[tuple[int, str]] = field(default_factory=list)
    refusals: int = 0
    gives_up: bool = False

    def work(self, ended: threading.Event) -> None:
        found = self.site.candidates("ann", self.query)["results"]
        images = cycle([one["image"] for one in found])
        relevances = cycle(["relevant", "not_relevant", "unsure", "not_relevant"])
        while not ended.is_set():
            image, relevance = next(images), next(relevances)
            act = {
                "image": image, "relevance": relevance, "client_id": str(uuid.uuid4()),
                "seconds": 2.5, "source": "list",
            }  # fmt: skip
            while not (self.gives_up or self.sent(act)):
                self.refusals += 1
                ended.wait(0.05)
            self.acknowledged.append((image, relevance))

    def sent(self, act: dict[str, Any]) -> bool:
        try:
            path = f"/api/queries/{self.query}/judgments/"
            [result] = self.site.api("ann", "POST", path, [act])["results"]
        except urllib.error.HTTPError as error:
            if error.code not in (503, 507):
                raise
            return False
        except (OSError, http.client.HTTPException):
            return False
        assert result["status"] in ("stored", "repeated"), result
        return True

    def goes_on(self, acts: int = 10) -> None:
        """Wait until some more are acknowledged."""
        wanted = len(self.acknowledged) + acts
        wait_for(lambda: len(self.acknowledged) >= wanted, what="judgments", pause=0.02)

    @contextmanager
    def refused(self) -> Iterator[None]:
        """Wait after the block until one more was refused."""
        before = self.refusals
        yield
        wait_for(lambda: self.refusals > before, what="a refusal", pause=0.01)


@contextmanager
def labeling(site: Site, query: int) -> Iterator[Labeler]:
    """Somebody labels while the block runs; afterwards each judgment is there once, in order."""
    wait_for(site.served.healthy, seconds=90, what="a healthy site", pause=0.1)
    with site.served.database() as cursor:
        cursor.execute("SELECT coalesce(max(id), 0) FROM labeling_judgmentevent")
        last = cursor.fetchone()[0]
    labeler, ended, errors = Labeler(site, query), threading.Event(), []

    def work() -> None:
        try:
            labeler.work(ended)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        labeler.goes_on(3)
        yield labeler
        labeler.goes_on()
    finally:
        ended.set()
        thread.join(60)
        labeler.gives_up = True
    assert errors == []
    with site.served.database() as cursor:
        cursor.execute(
            "SELECT image_id, relevance FROM labeling_judgmentevent WHERE id > %s ORDER BY id",
            [last],
        )
        assert cursor.fetchall() == labeler.acknowledged


def kill(site: Site, *words: str) -> None:
    """SIGKILL to all processes of the site with these words in their command lines."""
    found = wait_for(lambda: site.served.find(*words), what=" ".join(words))
    for process in found:
        process.send_signal(signal.SIGKILL)
    killed = {process.pid for process in found}
    wait_for(
        lambda: not killed & {process.pid for process in site.served.find(*words)},
        what="their end",
    )


@pytest.mark.parametrize("words", [("postgres", "-D"), ("gunicorn",)], ids=["database", "web"])
def test_judgments_outlive_a_killed_part(equipped: Equipped, words: tuple[str, ...]) -> None:
    with labeling(equipped.site, equipped.query):
        kill(equipped.site, *words)


def test_judgments_need_no_broker(equipped: Equipped) -> None:
    if equipped.redis is None:
        pytest.skip("redis-server is not installed")
    with labeling(equipped.site, equipped.query) as labeler:
        equipped.redis.kill()
        health = equipped.site.served.health
        wait_for(lambda: health()["broker"] == "unreachable", what="word of the broker")
        labeler.goes_on()
        assert labeler.refusals == 0
        equipped.redis.start()


def test_judgments_wait_for_room_on_the_disk(equipped: Equipped) -> None:
    if equipped.disk is None:
        pytest.skip("only root may mount a small disk")
    with labeling(equipped.site, equipped.query) as labeler:
        with labeler.refused():
            filler = fill(equipped.disk)
        filler.unlink()


def test_a_job_goes_on_after_its_worker_was_killed(equipped: Equipped) -> None:
    site = equipped.site
    site.served.wait_healthy()
    with site.served.database() as cursor:
        # Candidates wait to be written.
        cursor.execute("LOCK TABLE labeling_candidate IN SHARE MODE")
        fields = {"text": TEXT, "category": "Species ID", "split": "val"}
        query = site.api("ada", "POST", "/api/queries/", fields)["id"]
        site.api("ada", "PATCH", f"/api/queries/{query}/", {"state": "open"})

        def waiting() -> bool:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            return bool(cursor.fetchone()[0])

        wait_for(waiting, what="the job's middle", pause=0.02)
        kill(site, "celery", "worker")

    def ready() -> bool:
        return bool(site.candidates("ann", query, limit=1)["list"]["state"] == "ready")

    wait_for(ready, what="the list", seconds=120)
    lists = [site.candidates("ann", one)["results"] for one in (equipped.query, query)]
    first, second = ([(one["rank"], one["image"]) for one in found] for found in lists)
    assert first == second != []


def test_a_backup_that_is_cut_short_is_none_and_the_next_is_whole(
    equipped: Equipped, tmp_path: Path
) -> None:
    served = equipped.site.served
    served.wait_healthy()
    source = next((served.var_dir / "images").rglob("*.source"))
    content = source.read_bytes()
    source.unlink()
    # Who opens it waits for the other side.
    os.mkfifo(source)
    target, other = (tmp_path / "backups" / name for name in ("a.tar", "b.tar"))
    command = [sys.executable, "manage.py", "backup", str(target), "--quiet"]
    process = subprocess.Popen(command, cwd=ROOT, env=served.environment)
    wait_for(lambda: list(target.parent.glob(".a.tar.*")), what="the backup to begin")
    process.kill()
    process.wait()
    assert not target.exists()
    source.unlink()
    source.write_bytes(content)
    served.manage("backup", str(other), "--quiet")
    assert archive_verify(other)
    assert list(target.parent.iterdir()) == [other]

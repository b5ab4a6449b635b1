"""What a job's page tells of the devices that embed."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from core.jobs.models import Job
from core.jobs.services import Slice, job_note, job_slice_run
from core.locks import lock_key, locked, session_lock
from retrieval.embedding import services
from retrieval.embedding.device import device_lock, device_number
from retrieval.embedding.models import EmbeddingRange
from retrieval.embedding.progress import DeviceProgress, embedding_progress
from retrieval.embedding.services import embedding_job_create
from tests.retrieval.making import repeated_images

COUNT = 20

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("messages")]


@pytest.fixture
def job(settings: Any, tiny_model: str, admin: Any) -> Job:
    """A job to embed COUNT images in batches of four, not begun."""
    settings.EMBEDDING_MODEL = tiny_model
    settings.EMBEDDING_BATCH_SIZE = 4
    repeated_images(COUNT, ("red", "blue"), (64, 48))
    return embedding_job_create(created_by=admin)


def work_on(job: Job) -> None:
    while job_slice_run(job_id=job.pk) is Slice.MORE:
        pass
    job.refresh_from_db()


def test_a_device_counts_what_it_embeds(job: Job, clients: dict[str, Client]) -> None:
    assert embedding_progress(job).devices == []
    assert "Devices at work" not in clients["admin"].get(f"/jobs/{job.pk}/").content.decode()
    work_on(job)
    found = embedding_progress(job)
    [line] = found.devices
    assert (line.device, line.done, line.gone, line.left, line.taken) == ("CPU", COUNT, False, 0, 0)
    assert (found.working, found.remaining, found.seconds, found.cost) == (0, 0, None, None)
    page = clients["admin"].get(f"/jobs/{job.pk}/").content.decode()
    assert line.host not in page
    assert "Price of a device" not in page


def test_a_process_that_is_asked_to_end_gives_back_all_but_the_batch_in_hand(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = services._Slice._store

    def asked_to_end_after(self: Any, *arguments: Any) -> None:
        stored(self, *arguments)
        monkeypatch.setattr(services, "ending", lambda: True)

    monkeypatch.setattr(services._Slice, "_store", asked_to_end_after)
    assert job_slice_run(job_id=job.pk) is Slice.MORE
    job.refresh_from_db()
    assert (job.done, job.state) == (4, "running")
    kept = EmbeddingRange.objects.values_list("pk", flat=True)
    assert kept
    assert locked([lock_key("embedding_range", pk) for pk in kept]) == set()
    assert job_slice_run(job_id=job.pk) is Slice.MORE
    job.refresh_from_db()
    assert job.done == 4
    monkeypatch.undo()
    work_on(job)
    assert (job.done, job.state) == (COUNT, "done")


def test_what_is_left_takes_time_and_costs_what_an_admin_has_entered(
    job: Job, clients: dict[str, Client]
) -> None:
    begun = timezone.now().timestamp()
    lines = {
        str(device_number()): {"device": "NVIDIA H100 0", "done": 300, "rate": 30.0, "ranges": [7]},
        "2": {"device": "NVIDIA H100 1", "done": 200, "rate": 20.0, "ranges": []},
        "3": {"device": "NVIDIA H100 2", "done": 100, "rate": 10.0, "ranges": [5, 6, 7]},
        "4": {"device": "NVIDIA H100 3", "done": 0, "rate": 9.0, "ranges": [], "seen": begun - 99},
    }
    for number, line in lines.items():
        job_note(job=job, members={number: {"host": "one", "seen": begun, **line}})
    Job.objects.filter(pk=job.pk).update(state="running", total=180_600, done=600)
    EmbeddingRange.objects.create(pk=6, job=job, first_image=1, last_image=2)
    EmbeddingRange.objects.create(pk=7, job=job, first_image=3, last_image=4)
    path = f"/jobs/{job.pk}/"
    # The first device works, and has taken over the range 7 of the third, whose range 6 waits.
    with session_lock(device_lock(device_number())), session_lock(lock_key("embedding_range", 7)):
        job.refresh_from_db()
        found = embedding_progress(job)
        assert (found.working, found.rate, found.remaining) == (2, 50.0, 180_000)
        assert (found.seconds, found.cost) == (3600.0, None)
        gone = {one.device: (one.left, one.taken) for one in found.devices if one.gone}
        assert gone == {"NVIDIA H100 2": (1, 2), "NVIDIA H100 3": (0, 0)}
        assert clients["admin"].post(path, {"price": "-1"}).status_code == 200
        assert clients["admin"].post(path, {"price": "2.5"}).status_code == 302
        assert clients["annotator"].post(path, {"price": "9"}).status_code == 404
        page = clients["admin"].get(path).content.decode()
        assert "Cost to finish, about</dt><dd>5.00" in page
        assert "1 h 00 min" in page
        part = clients["admin"].get(f"{path}?part=devices").content.decode()
        assert "<html" not in part
        assert "its images wait for another device" in part
    assert clients["admin"].get(f"{path}?part=nonsense").status_code == 404


def test_the_speed_is_that_of_the_last_two_minutes(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = DeviceProgress(job)
    now = line._now()
    monkeypatch.setattr(line, "_now", lambda: now)
    for _ in range(30):
        now += 10.5
        [told] = line.line_after(42, [1]).values()
    assert told["rate"] == pytest.approx(4)
    assert (told["done"], told["ranges"]) == (30 * 42, [1])
    now += 60
    [told] = line.line_after(0, []).values()
    assert told["rate"] == pytest.approx(4 * 0.5, rel=0.2)
    # Another process of the device goes on from there.
    job_note(job=job, members={str(device_number()): told})
    [told] = DeviceProgress(job).line_after(1, []).values()
    assert told["done"] == 30 * 42 + 1

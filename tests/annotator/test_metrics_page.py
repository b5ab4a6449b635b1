"""What Prometheus reads."""

from __future__ import annotations

from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from annotator.models import Backup
from core.jobs.models import Job
from tests.conftest import api_of

pytestmark = pytest.mark.django_db(transaction=True)


def values(answer: Any) -> dict[tuple[str, ...], float]:
    """Each value by its name and its labels, which are in the order of their names."""
    assert answer.status_code == 200
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.content.decode())
        for sample in family.samples
    }


def test_admins_alone_read_it(clients: dict[str, Client], admin_api: Any) -> None:
    assert clients["anonymous"].get("/metrics").status_code == 401
    assert clients["annotator"].get("/metrics").status_code == 403
    assert clients["reviewer"].get("/metrics").status_code == 403
    assert clients["admin"].get("/metrics").status_code == 200
    assert admin_api.get("/metrics").status_code == 200


def test_it_tells_the_state(admin: Any, settings: Any) -> None:
    Job.objects.create(kind="embed", state=Job.State.FAILED)
    Job.objects.create(kind="embed")
    Job.objects.create(kind="embed")
    Backup.objects.create(file="a.tar", finished_at=Now())
    found = values(api_of(admin).get("/metrics"))
    assert found["inquire_jobs", "embed", "failed"] == 1
    assert found["inquire_jobs", "embed", "queued"] == 2
    assert 0 < found["inquire_disk_free_bytes",] <= found["inquire_disk_bytes",]
    assert found["inquire_database_bytes",] > 1_000_000
    assert found["inquire_workers",] == 0
    assert found["inquire_judgments_total",] == 0
    began = Backup.objects.get().started_at.timestamp()
    assert found["inquire_last_backup_timestamp_seconds",] == pytest.approx(began, abs=0.001)


def test_it_counts_requests_by_view_and_status(admin: Any, clients: dict[str, Client]) -> None:
    asked = [("GET", "200", "dashboard"), ("GET", "404", "query-detail"), ("other", "404", "")]

    def counts() -> list[float]:
        found = values(api_of(admin).get("/metrics"))
        return [found.get(("inquire_request_seconds_count", *one), 0) for one in asked]

    before = counts()
    clients["annotator"].get("/")
    clients["annotator"].get("/queries/1/")
    clients["annotator"].generic("BREW", "/no/such/address/")
    assert counts() == [number + 1 for number in before]

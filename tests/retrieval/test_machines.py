"""What workers find of their machines, and what it makes pages offer: the hub, the GPU."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import Client
from django.utils import timezone

from annotator.processes.worker import attend
from core.jobs.services import Slice, job_slice_run
from retrieval.embedding import machines
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.in_use import model_in_use
from retrieval.embedding.machines import hub_problem, hub_reach
from retrieval.embedding.models import Embedding, WorkerMachine
from retrieval.embedding.recommending import LARGE, Recommended, recommended_models
from retrieval.embedding.services import embedding_job_create
from tests.labeling.conftest import make_images
from tests.processes import free_port, wait_for
from tests.retrieval.making import repeated_images

pytestmark = pytest.mark.django_db
SMALL = "MobileCLIP2-S0/dfndr2b"


@contextmanager
def hub(status: int) -> Iterator[str]:
    """A hub that answers everything with a status; 0 for one that is silent."""
    end = threading.Event()

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            if not status:
                end.wait()
                return
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            end.set()
            server.shutdown()


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        (200, ""),
        (404, ""),
        (403, "answers 403"),
        (503, "answers 503"),
        (0, "no answer in"),
        (None, "Connection refused"),
    ],
)
def test_the_hub_is_asked(
    status: int | None, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    if status == 0:
        monkeypatch.setattr(machines, "PATIENCE", 0.2)
    with hub(status or 0) as address:
        if status is None:
            address = f"http://127.0.0.1:{free_port()}"
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
        found = hub_problem()
    assert problem in found
    assert bool(problem) is bool(found)


def test_the_hub_is_asked_over_a_proxy_and_not_when_offline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from huggingface_hub import close_session

    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://hub.invalid")
    assert hub_problem() == "HF_HUB_OFFLINE is set"
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    with hub(200) as address:
        monkeypatch.setenv("HTTP_PROXY", address)
        close_session()
        assert hub_problem() == ""
    close_session()


@pytest.mark.django_db(transaction=True)
def test_a_worker_notes_its_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    WorkerMachine.objects.create(name="gone", has_gpu=True, seen_at=Now() - timedelta(hours=1))
    assert hub_reach() is None
    stop = threading.Event()
    stop.set()
    attend("worker:1", stop)
    wait_for(lambda: hub_reach() is not None, what="the machine's row")
    wait_for(lambda: not WorkerMachine.objects.filter(name="gone").exists(), what="the sweep")
    reach = hub_reach()
    assert reach is not None
    assert (reach.reached, reach.problem) == (False, "HF_HUB_OFFLINE is set")


def machine(name: str, **fields: Any) -> None:
    """A machine that a worker has just looked at."""
    found = {"has_gpu": False, "hub_problem": "", "seen_at": Now(), **fields}
    WorkerMachine.objects.update_or_create(name=name, defaults=found)


def test_the_machines_decide_what_is_offered_everywhere(
    clients: dict[str, Client], settings: Any
) -> None:
    settings.EMBEDDING_MODEL, office = "", clients["admin"]

    def offered() -> set[str]:
        page = office.get("/models/").content.decode()
        shown = page.partition("data-chosen-model")[2].partition("<code>")[2].split("<")[0]
        named = office.get("/").content.decode().partition("data-first-steps")[2]
        step = next(one.name for one in recommended_models() if f"With {one.name}," in named)
        api = office.get("/api/models/").json()
        return {model_in_use(), shown, step, api["in_use"], api["recommended"][0]}

    make_images(2, embedded=False)
    machine("one")
    assert offered() == {SMALL}
    machine("two", has_gpu=True)
    assert offered() == {LARGE.name}
    settings.EMBEDDING_MODEL = "ViT-B-32/laion2b_s34b_b79k"
    assert offered() == {settings.EMBEDDING_MODEL, LARGE.name}


def test_what_was_embedded_by_the_earlier_default_stays_in_use(settings: Any) -> None:
    settings.EMBEDDING_MODEL = ""
    machine("one")
    [image] = make_images(1, embedded=False)
    model = embedding_model_get_or_create(name=LARGE.name, dimension=2)
    assert model_in_use() == SMALL
    Embedding.objects.create(model=model, image=image, vector=[1, 0], created_at=timezone.now())
    assert model_in_use() == LARGE.name


def test_pages_say_that_the_hub_is_away_and_what_to_do(
    clients: dict[str, Client], settings: Any
) -> None:
    settings.EMBEDDING_MODEL, office = "", clients["admin"]
    make_images(2, embedded=False)
    folder = settings.MODELS_DIR / "copied"
    folder.mkdir(parents=True)
    (folder / "open_clip_config.json").write_text("{}")
    assert "data-hub-away" not in office.get("/models/").content.decode()
    machine("one", hub_problem="no answer in 5 seconds")
    page = office.get("/models/").content.decode()
    for said in (
        "no answer in 5 seconds", "Use the built-in model to try things out", "Use a local folder",
        "<code>open_clip_config.json</code>", f"<code>{settings.MODELS_DIR}</code>",
        "open_clip_model.safetensors", str(folder), "tokenizers/OWNER/NAME",
    ):  # fmt: skip
        assert said in page, said
    assert "use a local folder, or the built-in model" in office.get("/corpus/").content.decode()
    assert office.get("/api/models/").json()["hub_reached"] is False
    # One of several machines reaches it.
    machine("two")
    assert "data-hub-away" not in office.get("/models/").content.decode()
    assert office.get("/api/models/").json()["hub_reached"] is True


def test_what_has_embedded_stays_in_use_when_the_machines_change(
    settings: Any, monkeypatch: pytest.MonkeyPatch, store: Path
) -> None:
    settings.EMBEDDING_MODEL = ""
    repeated_images(2, ["teal"], (40, 30))
    first = [Recommended("demo", "", "")]
    monkeypatch.setattr("retrieval.embedding.in_use.recommended_models", lambda: first)
    job = embedding_job_create()
    while job_slice_run(job_id=job.pk) is Slice.MORE:
        pass
    first[0] = Recommended("another", "", "")
    assert model_in_use() == "demo"

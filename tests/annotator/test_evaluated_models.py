"""Which models people may have evaluated: what reviewers learn of the server's files, and what of a
repository of the hub the job says.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from django.utils.html import escape

from core.jobs.models import Job
from core.jobs.services import job_slice_run
from labeling.lifecycle import text_limits
from retrieval.embedding.embedding_models import embedding_model_get_or_create, model_use
from retrieval.embedding.in_use import model_in_use
from retrieval.embedding.models import Embedding, EmbeddingModel
from retrieval.encoding.model_specs import CONFIG_NAME, DEMO_MODEL_DIR, WEIGHTS_NAME
from tests.annotator.world import World
from tests.conftest import api_of, client_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sockets_of_requests")]
HUB = "hf-hub:owner/name"


@pytest.fixture
def models(settings: Any, tmp_path: Path) -> Path:
    """The folder of models, with the demo's in it."""
    settings.MODELS_DIR = tmp_path / "models"
    shutil.copytree(DEMO_MODEL_DIR, settings.MODELS_DIR / "ours")
    return Path(settings.MODELS_DIR)


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The hub is away, and nothing was fetched from it; what it was asked for."""
    asked: list[str] = []

    def refuse(repository: str, name: str) -> str:
        asked.append(repository)
        raise OSError("no route to host")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", refuse)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "fetched"))
    return asked


def answers(world: World, role: str, name: str) -> tuple[int, str, int]:
    """What the API answers to an evaluation, without the model's name, and the page's status."""
    person, address = world.people[role], f"releases/{world.release.pk}/evaluate/"
    answer = api_of(person).post(f"/api/{address}", {"model": name})
    page = client_of(person).post(f"/{address}", {"model": name})
    if answer.status_code == 400:  # and both say the same
        assert escape(answer.json()["errors"][0]["detail"]) in page.content.decode()
    return answer.status_code, answer.content.decode().replace(name, "NAME"), page.status_code


def test_a_reviewer_learns_nothing_of_files_outside_the_folder_of_models(
    world: World, models: Path, tmp_path: Path
) -> None:
    (models / "link").symlink_to("/etc")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / CONFIG_NAME).write_text("{}")
    (broken / WEIGHTS_NAME).touch()
    shutil.copytree(DEMO_MODEL_DIR, tmp_path / "whole")
    told = {
        answers(world, "reviewer", name)
        for name in (
            *("/etc/passwd:/x", "/etc/passwd:/etc/passwd", "/x:/x", "/etc", "/nowhere", "/root/a"),
            *(str(broken), str(tmp_path / "whole"), f"local-dir:{broken}", "../etc", "./manage.py"),
            *(f"{models}/link", f"{models}/link/none", f"{models}/../broken"),
        )
    }
    assert len(told) == 1, told
    ((status, text, page),) = told
    assert (status, page) == (400, 200)
    assert f"only admins may name files of the server outside {models}" in text
    assert not Job.objects.filter(kind="evaluate_model").exists()
    assert "there is no directory NAME" in answers(world, "reviewer", f"{models}/none")[1]
    assert answers(world, "reviewer", str(models / "ours"))[0] == 202
    # An admin may name any, and is told what is wrong there.
    assert answers(world, "admin", str(tmp_path / "whole"))[0] == 202
    assert "lacks embed_dim" in answers(world, "admin", str(broken))[1]
    assert "there is no directory" in answers(world, "admin", "/nowhere")[1]


def test_a_model_that_is_known_here_may_be_named_wherever_it_lies(
    world: World, models: Path
) -> None:
    for name in (world.model, "/gone/since"):
        embedding_model_get_or_create(name=name, dimension=2)
        status, text, page = answers(world, "reviewer", name)
        assert (status, page) == (202, 302), text


def test_the_job_says_what_the_hub_does_not_give(world: World, away: list[str]) -> None:
    status, text, page = answers(world, "reviewer", HUB)
    assert (status, page) == (202, 302), text
    assert away == []
    job = Job.objects.get(kind="evaluate_model")
    assert job.title == f"Evaluate {HUB} on {world.release}"
    job_slice_run(job_id=job.pk)
    job.refresh_from_db()
    assert job.state == "failed"
    assert "could not be fetched (no route to host)" in job.error
    assert away
    # What is badly formed is refused at once.
    for name in ("hf-hub:owner", "hf-hub:../name", "nobody/knows", "no such"):
        assert answers(world, "reviewer", name)[0] == 400
    assert Job.objects.filter(kind="evaluate_model").count() == 1


def test_an_admin_chooses_a_model_of_the_hub_that_a_job_fetches(
    world: World, away: list[str], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = client_of(world.people["admin"])
    page = admin.get("/models/", {"model": HUB}).content.decode()
    assert "Its repository on the hub describes this model" in page
    assert 'value="use"' not in page
    refused = api_of(world.people["admin"]).post("/api/models/use/", {"model": HUB})
    assert refused.status_code == 400
    assert "a job that measures or embeds does that" in refused.json()["detail"]
    settings.EMBEDDING_MODEL = "demo"
    for action, kind in (("measure", "measure_model"), ("embed", "embed")):
        answer = admin.post("/models/", {"model": HUB, "action": action})
        job = Job.objects.get(kind=kind, params__model=HUB)
        assert answer["Location"] == f"/jobs/{job.pk}/"
    assert away == []
    assert model_in_use() == "demo"
    # Once it can be fetched, the job puts it to use.
    copy = lambda _repository, name: str(DEMO_MODEL_DIR / name)  # noqa: E731
    monkeypatch.setattr("huggingface_hub.hf_hub_download", copy)
    monkeypatch.setattr(
        "retrieval.encoding.loading._hub_weights", lambda _: str(DEMO_MODEL_DIR / WEIGHTS_NAME)
    )
    job_slice_run(job_id=job.pk)
    job.refresh_from_db()
    assert job.error == ""
    assert model_in_use() == HUB
    known = EmbeddingModel.objects.get(name=HUB)
    page = admin.get("/models/", {"model": HUB}).content.decode()
    assert re.search(rf"dimension\)</dt><dd>{known.dimension}</dd>", page)


def bodies(world: World) -> list[tuple[str, str, dict[str, Any]]]:
    """Requests of admins that name a model of the hub or a server of models, each with the method
    and what is sent."""
    release, query = world.release.pk, world.queries["open"].pk
    model, reader = {"model": HUB}, f"api/readers/{world.reader}/readings/"
    readers = [
        ("post", "api/readers/", {"name": "new", "endpoint": "ours", "model": "a/model"}),
        ("post", reader, {"queries": str(query), "depth": 2, "estimate": True}),
        ("post", reader, {"queries": str(query), "depth": 2}),
    ]
    text = {"text": "a toad " * 40, "category": "Species ID", "split": "val"}
    server = {"endpoint": "ours", "api_model": "a/model", "depth": 5, "first_stage": world.run.pk}
    return [
        ("get", "models/", model),
        *(("post", "models/", {**model, "action": one}) for one in ("use", "measure", "embed")),
        ("post", "api/models/use/", model),
        ("post", "api/models/measure/", model),
        ("post", "api/jobs/", {**model, "kind": "embed"}),
        ("post", f"api/releases/{release}/evaluate/", model),
        ("post", f"releases/{release}/evaluate/", model),
        ("post", f"api/releases/{release}/baselines/", {}),
        ("post", f"api/releases/{release}/rerank/estimate/", server),
        ("post", f"api/releases/{release}/rerank/", server),
        ("post", "api/queries/", text),
        ("post", "queries/new/", text),
        ("patch", f"api/queries/{world.queries['draft'].pk}/", {"text": "another toad " * 30}),
        ("get", "api/search/", {"text": "a toad"}),
        ("get", "api/images/matches/", {"text": "a toad"}),
        ("post", "api/backups/", {}),
        *(readers if world.reader else []),
    ]


def test_no_request_asks_the_hub_or_a_server_of_models(
    own_world: World, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also where a model of the hub is in use, and in a web process, which encodes no text."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(text_limits, "PATIENCE", 0.0)
    settings.TEXT_PROCESS, settings.SEARCH_TIMEOUT = True, 1
    settings.MULTIMODAL_ENDPOINTS = {"ours": "http://127.0.0.1:9/v1"}
    known = embedding_model_get_or_create(name="hf-hub:owner/in-use", dimension=2)
    Embedding.objects.create(
        model=known, image=own_world.image, vector=[1.0, 0.0], created_at=timezone.now()
    )
    answered = {}
    browser, program = client_of(own_world.people["admin"]), api_of(own_world.people["admin"])
    for in_use in (own_world.model, known.name):
        model_use(name=in_use)
        for method, address, sent in bodies(own_world):
            client = program if address.startswith("api/") else browser
            answer = getattr(client, method)(f"/{address}", sent)
            answered[method, address, in_use] = answer.status_code
    refused = {
        address: status
        for (_, address, in_use), status in answered.items()
        if status >= 400 and in_use == own_world.model
    }
    # All others did what they were asked for.
    assert refused == {"api/models/use/": 400, "api/search/": 503, "api/images/matches/": 503}
    assert 500 not in answered.values()

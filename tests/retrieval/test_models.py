"""The model in use: chosen on a page, stored in the database, obeyed by every process."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from core.jobs.models import Job
from core.jobs.services import Slice, job_slice_run
from labeling.candidates.selectors import models_in_use
from labeling.lifecycle.services import query_create
from retrieval.embedding import fetching
from retrieval.embedding.embedding_models import embedding_model_get_or_create, model_use
from retrieval.embedding.in_use import model_in_use
from retrieval.embedding.measuring import measure_job_create
from retrieval.embedding.models import Embedding, EmbeddingModel
from retrieval.embedding.services import embedding_job_create
from retrieval.encoding.model_specs import DEMO_MODEL_DIR, published_names
from retrieval.encoding.open_clip_import import open_clip_module
from retrieval.search.selectors import SearchUnavailable, search_images
from tests.labeling.conftest import make_images
from tests.processes import Worker, wait_for
from tests.retrieval.making import repeated_images
from tests.toy_model import toy_model

pytestmark = pytest.mark.django_db


def test_the_setting_presets_the_model_and_the_database_decides(settings: Any) -> None:
    settings.EMBEDDING_MODEL = "demo"
    assert model_in_use() == "demo"
    toy = toy_model()
    model_use(name=toy)
    assert model_in_use() == toy
    model_use(name="demo")
    model_use(name="demo")
    assert list(EmbeddingModel.objects.filter(in_use=True).values_list("name", flat=True)) == [
        "demo"
    ]
    with pytest.raises(IntegrityError), transaction.atomic():
        EmbeddingModel.objects.update(in_use=True)
    settings.EMBEDDING_MODEL = "another"
    assert embedding_model_get_or_create().name == "demo"


def test_searches_and_new_lists_go_by_the_model_in_use(settings: Any, admin: Any) -> None:
    settings.EMBEDDING_MODEL, settings.POOL_MODELS = "demo", []
    toy = toy_model()
    embedding_model_get_or_create(name=toy)
    make_images(3)
    with pytest.raises(SearchUnavailable, match="demo"):
        search_images(text="a toad", limit=2)
    model_use(name=toy)
    assert search_images(text="a toad", limit=2).model == toy
    query = query_create(text="a toad", category="Species ID", split="val", created_by=admin)
    assert models_in_use(query) == [toy]


@pytest.mark.parametrize("role", ["annotator", "reviewer"])
def test_others_than_admins_are_refused(clients: dict[str, Client], role: str) -> None:
    client = clients[role]
    assert client.get("/models/").status_code == 403
    assert client.post("/models/", {"model": "demo", "action": "use"}).status_code == 403
    assert client.get("/api/models/").status_code == 403
    for what in ("use", "measure"):
        sent = client.post(f"/api/models/{what}/", {"model": "demo"}, "application/json")
        assert sent.status_code == 403
    assert not EmbeddingModel.objects.exists()


def test_an_admin_measures_and_uses_a_model(clients: dict[str, Client], settings: Any) -> None:
    settings.EMBEDDING_MODEL = toy_model()
    embedding_model_get_or_create()
    repeated_images(12, ["teal", "gold"], (40, 30))
    admin = clients["admin"]
    page = admin.get("/models/", {"model": "demo"}).content.decode()
    assert "Measure on ten images" in page
    assert len(page) < 100_000
    answer = admin.post("/models/", {"model": "demo", "action": "measure"})
    job = Job.objects.get(kind="measure_model")
    assert answer["Location"] == f"/jobs/{job.pk}/"
    again = admin.post("/api/models/measure/", {"model": "demo"}, "application/json")
    assert again.json()["id"] == job.pk
    job_slice_run(job_id=job.pk)
    job.refresh_from_db()
    assert (job.state, job.done) == ("done", 10), job.error
    measured = EmbeddingModel.objects.get(name="demo")
    assert measured.seconds_per_image
    assert measured.parameters
    assert measured.image_flops
    assert measured.text_flops
    assert not Embedding.objects.filter(model=measured).exists()
    admin.post("/models/", {"model": "demo", "action": "use"})
    listed = admin.get("/api/models/").json()
    assert listed["in_use"] == "demo"
    assert [row["in_use"] for row in listed["models"]] == [True, False]
    assert listed["models"][0]["hours_left"] > 0
    assert listed["models"][0]["image_flops"] == measured.image_flops
    page = admin.get("/models/", {"model": "demo"}).content.decode()
    assert f"GFLOPs per image</dt><dd>{measured.image_flops / 1e9:.2f}</dd>" in page


def test_the_first_model_that_works_is_put_to_use(
    clients: dict[str, Client], settings: Any, store: Path, tmp_path: Path
) -> None:
    settings.EMBEDDING_MODEL = str(tmp_path / "preset")
    repeated_images(2, ["teal", "gold"], (40, 30))
    broken = tmp_path / "broken"
    shutil.copytree(DEMO_MODEL_DIR, broken)
    (broken / "open_clip_model.safetensors").write_bytes(b"no weights")
    admin = clients["admin"]

    def embed_by(name: str) -> str:
        assert "and use it" in admin.get("/models/", {"model": name}).content.decode()
        admin.post("/models/", {"model": name, "action": "embed"})
        job = Job.objects.filter(kind="embed").latest("pk")
        assert job.params["model"] == name
        assert model_in_use() == settings.EMBEDDING_MODEL
        while job_slice_run(job_id=job.pk) is Slice.MORE:
            pass
        return admin.get("/models/").content.decode()

    page = embed_by(str(broken))
    assert model_in_use() == settings.EMBEDDING_MODEL
    assert "In use" not in page
    failure = page.partition("data-failed-job")[2].partition("</div>")[0]
    assert f"Embed the corpus with {broken}</a> failed" in failure
    assert "it could not be loaded" in failure
    page = embed_by("demo")
    assert model_in_use() == "demo"
    assert page.count("In use") == 1
    assert "data-failed-job" not in page
    # One that comes later is only chosen, once it has embedded.
    page = admin.get("/models/", {"model": toy_model()}).content.decode()
    assert "and use it" not in page
    assert "Use for queries" not in page
    assert embedding_job_create(model_name=toy_model(), use=True).params["use"]
    answer = admin.post("/models/", {"model": toy_model(), "action": "use"})
    assert answer["Location"].startswith("/models/?model=")
    assert model_in_use() == toy_model()


def test_an_unknown_model_is_refused_with_what_is_accepted(clients: dict[str, Client]) -> None:
    admin = clients["admin"]
    for action in ("use", "measure", "embed"):
        page = admin.post("/models/", {"model": "no-such/model", "action": action})
        assert "open_clip knows no model called" in page.content.decode()
    sent = admin.post("/api/models/use/", {"model": "no-such/model"}, "application/json")
    assert sent.status_code == 400
    assert not EmbeddingModel.objects.exists()
    assert not Job.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_job_says_what_was_fetched_while_its_model_is_loaded(
    settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, clients: dict[str, Client]
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(fetching, "EVERY_SECONDS", 0.01)
    job = measure_job_create(name="demo")

    def said() -> Any:
        job.refresh_from_db()
        return (job.result.get("loading") or {}).get("bytes")

    with fetching.loading_noted(job):
        wait_for(lambda: said() is not None, what="a note")
        (tmp_path / "weights.incomplete").write_bytes(bytes(1000))
        wait_for(lambda: said() == 1000, what="the bytes")
    assert said() is None


def test_the_published_names_are_those_of_open_clip() -> None:
    known = {f"{name}/{tag}" for name, tag in open_clip_module().list_pretrained()}
    assert set(published_names()) <= known
    assert len(published_names()) > 150
    assert {"MobileCLIP2-S0/dfndr2b", "ViT-H-14-378-quickgelu/dfn5b"} <= set(published_names())


@pytest.mark.django_db(transaction=True)
def test_a_running_worker_goes_by_a_model_chosen_meanwhile(
    start_worker: Callable[..., Worker], settings: Any
) -> None:
    settings.EMBEDDING_MODEL = toy_model()
    embedding_model_get_or_create()
    repeated_images(3, ["teal"], (40, 30))
    start_worker()
    model_use(name="demo")
    job = embedding_job_create()
    wait_for(
        lambda: Job.objects.filter(pk=job.pk, state="done").exists(), what="the end of the job"
    )
    assert Embedding.objects.filter(model__name="demo").count() == 3

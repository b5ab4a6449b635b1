"""The two images of docker/Dockerfile do their work without the packages that they leave out."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import packages_distributions, requires
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from packaging.requirements import Requirement

from core.jobs.models import Job
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.models import Embedding
from retrieval.embedding.services import embedding_job_create
from retrieval.embedding.text_vectors import text_vector
from tests.annotator.test_start import ANSWERS
from tests.annotator.world import make_world
from tests.processes import ROOT, Worker, database_url, wait_for
from tests.retrieval.making import repeated_images

OPEN_CLIP = "open-clip-torch"
BLOCK = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {modules!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
"""


def left_out(image: str) -> list[str]:
    """The packages that an image goes without."""
    return (ROOT / f"docker/not-in-{image}.txt").read_text().splitlines()


def plain(package: str) -> str:
    """A package's name as all its spellings."""
    return re.sub(r"[-_.]+", "-", package).lower()


def required() -> set[str]:
    """The packages of requirements.txt."""
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    return {plain(Requirement(one).name) for one in lines if one and not one.startswith("#")}


def path_without(image: str, folder: Path) -> str:
    """A PYTHONPATH with which none of an image's missing packages can be imported."""
    missing = {plain(name) for name in left_out(image)}
    if OPEN_CLIP in missing:  # which the image has, without what it requires
        missing -= {OPEN_CLIP}
        needed = {Requirement(one) for one in requires(OPEN_CLIP) or []}
        missing |= {plain(one.name) for one in needed if one.marker is None} - required()
    modules = {
        module
        for module, packages in packages_distributions().items()
        if missing & {plain(one) for one in packages}
    }
    assert len(modules) >= len(missing)
    (folder / "sitecustomize.py").write_text(BLOCK.format(modules=modules))
    return str(folder)


@pytest.mark.parametrize("image", ["web", "worker"])
def test_what_is_left_out_is_a_requirement(image: str) -> None:
    assert left_out(image)
    assert {plain(name) for name in left_out(image)} <= required()


@pytest.mark.django_db(transaction=True)
def test_a_worker_embeds_without_what_serves_pages(
    demo_encoder: str, start_worker: Callable[..., Worker], tmp_path: Path
) -> None:
    repeated_images(40, ("red", "green"), (64, 48))
    job = embedding_job_create()
    worker = start_worker(PYTHONPATH=path_without("worker", tmp_path))

    def ended() -> bool:
        job.refresh_from_db()
        return job.state not in Job.UNFINISHED

    wait_for(ended, seconds=180, what="the end of the job")
    assert (job.state, job.error) == ("done", "")
    assert Embedding.objects.count() == 40
    assert "ModuleNotFoundError" not in worker.log.read_text()


@pytest.mark.django_db(transaction=True)
def test_texts_are_encoded_without_what_serves_pages(
    demo_encoder: str, settings: Any, tmp_path: Path
) -> None:
    settings.TEXT_PROCESS = True
    environment = os.environ | {
        "DATABASE_URL": database_url(connection.settings_dict),
        "DJANGO_SETTINGS_MODULE": "annotator.settings",
        "TEXT_PROCESS": "true",
        "EMBEDDING_MODEL": demo_encoder,
        "PYTHONPATH": path_without("worker", tmp_path),
    }
    encoding = subprocess.Popen(
        [sys.executable, "manage.py", "encode_texts"], cwd=ROOT, env=environment
    )
    try:
        model = embedding_model_get_or_create(name=demo_encoder)
        assert len(text_vector(model, "a frog", patience=120)) == model.dimension
        assert encoding.poll() is None
    finally:
        encoding.terminate()
        encoding.wait(30)


def test_every_page_is_answered_without_models(
    transactional_db: None, settings: Any, tmp_path: Path
) -> None:
    world = make_world(settings, tmp_path)
    addresses = sorted(f"/{one}" for one in world.addresses)
    done = subprocess.run(
        [sys.executable, "-c", ANSWERS, str(world.people["admin"].pk), json.dumps(addresses)],
        cwd=ROOT,
        env=os.environ
        | {
            "DJANGO_SETTINGS_MODULE": "annotator.settings",
            "DATABASE_URL": database_url(connection.settings_dict),
            "VAR_DIR": str(settings.VAR_DIR),
            "EMBEDDING_MODEL": settings.EMBEDDING_MODEL,
            "TEXT_PROCESS": "true",
            "PYTHONPATH": path_without("web", tmp_path),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    statuses, embed, imported = json.loads(done.stdout.splitlines()[-1])
    assert (embed, imported) == (302, [])
    assert len(statuses) > 100
    # No worker and no encoder is there.
    failed = {one: status for one, status in statuses.items() if status >= 500}
    assert set(failed) <= {"/healthz"}, done.stderr

"""The two images of docker/Dockerfile do their work without the packages that they leave out."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.metadata import packages_distributions, requires
from pathlib import Path

from django.conf import settings
from django.db import connection
from packaging.requirements import Requirement

from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.models import Embedding, EmbeddingModel
from retrieval.embedding.services import embedding_job_create
from retrieval.embedding.text_vectors import text_vector
from tests import ROOT
from tests.annotator.world import World
from tests.processes import database_url
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


def test_what_is_left_out_is_a_requirement() -> None:
    for image in ("web", "worker"):
        assert left_out(image)
        assert {plain(name) for name in left_out(image)} <= required()


WORKS = """
import sys
from annotator.celery import app
app.loader.import_default_modules()
from core.jobs.services import Slice, job_slice_run
from django.core.management import load_command_class
from retrieval.embedding.models import EmbeddingModel
from retrieval.embedding.text_vectors import text_vector

load_command_class("retrieval", "encode_texts")
while job_slice_run(job_id=int(sys.argv[1])) is Slice.MORE:
    pass
print(len(text_vector(EmbeddingModel.objects.get(), "a frog")))
"""


def test_a_worker_embeds_images_and_texts_without_what_serves_pages(
    transactional_db: None, demo_encoder: str, tmp_path: Path
) -> None:
    repeated_images(40, ("red", "green"), (64, 48))
    job = embedding_job_create()
    done = run(WORKS, [str(job.pk)], path_without("worker", tmp_path), demo_encoder)
    assert done == str(embedding_model_get_or_create(name=demo_encoder).dimension)
    job.refresh_from_db()
    assert (job.state, job.error) == ("done", "")
    assert Embedding.objects.count() == 40


ANSWERS = """
import json, sys
from annotator.wsgi import application
from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import Client

settings.ALLOWED_HOSTS = ["testserver"]
client = Client(HTTP_X_FORWARDED_FOR="127.0.0.1")
client.force_login(get_user_model().objects.get(pk=int(sys.argv[1])))
statuses = {one: client.get(one).status_code for one in json.loads(sys.argv[2])}
embed = client.post("/models/", {"model": "ViT-B-32/openai", "action": "embed"})
print(json.dumps([statuses, embed.status_code, sorted({"torch", "open_clip"} & set(sys.modules))]))
"""


def test_every_page_is_answered_without_models(own_world: World, tmp_path: Path) -> None:
    model = EmbeddingModel.objects.get(name=own_world.model)
    text_vector(model, "a bear")
    addresses = ["/search/?text=a+bear", *sorted(f"/{one}" for one in own_world.addresses)]
    arguments = [str(own_world.people["admin"].pk), json.dumps(addresses)]
    done = run(ANSWERS, arguments, path_without("web", tmp_path), own_world.model)
    statuses, embed, imported = json.loads(done)
    assert (embed, imported) == (302, [])
    assert len(statuses) > 100
    assert statuses["/search/?text=a+bear"] == 200
    # No worker and no encoder is there.
    failed = {one: status for one, status in statuses.items() if status >= 500}
    assert set(failed) <= {"/healthz"}, done


def run(code: str, arguments: list[str], path: str, model: str) -> str:
    """The last line that some Python writes with an image's packages on the tests' database."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env=os.environ
        | {
            "DJANGO_SETTINGS_MODULE": "annotator.settings",
            "DATABASE_URL": database_url(connection.settings_dict),
            "VAR_DIR": str(settings.VAR_DIR),
            "EMBEDDING_MODEL": model,
            "TEXT_PROCESS": "true" if code == ANSWERS else "false",
            "PYTHONPATH": path,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]

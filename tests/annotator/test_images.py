"""The images of docker/Dockerfile do their work with the packages that they have."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, requires
from inspect import getsource
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from packaging.requirements import Requirement

import extras
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.models import Embedding, EmbeddingModel
from retrieval.embedding.services import embedding_job_create
from retrieval.embedding.text_vectors import text_vector
from tests import ROOT
from tests.annotator.test_docker import COMPOSE
from tests.annotator.test_optional import Missing
from tests.annotator.world import World
from tests.processes import database_url
from tests.retrieval.making import repeated_images

OPEN_CLIP = "open-clip-torch"
IMAGES = ("web", "worker", "demo")
#: What goes on until it is stopped: asked for its help, it does all but that.
ENDLESS = {"gunicorn", "celery", "encode_texts", "demo"}
#: What an image has and never runs, and so doesn't have the packages of.
NEVER_RUN = {
    "web": {
        "retrieval.encoding.packed_linears",  # part of a model
    },
    "worker": {
        "annotator.processes.web_worker",
        # They draw the demo's images.
        "demo.corpus",
        "demo.drawing",
        "demo.management.commands.demo",
        "demo.management.commands.demo_data",
        "demo.management.commands.demo_truth",
        "demo.release",
        "demo.steps",
    },
    "demo": set(),
}


def plain(package: str) -> str:
    """A package's name as all its spellings."""
    return re.sub(r"[-_.]+", "-", package).lower()


def requirements() -> list[Requirement]:
    """The lines of requirements.txt."""
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    return [Requirement(one) for one in lines if one and not one.startswith("#")]


def left_out(image: str) -> set[str]:
    """The packages of requirements.txt that an image goes without."""
    file = ROOT / f"docker/not-in-{image}.txt"
    return set(map(plain, file.read_text().splitlines())) if file.exists() else set()


def installed(image: str) -> set[str]:
    """The packages that an image has: its requirements, and what these require."""
    out = left_out(image)
    waiting = [one for one in requirements() if plain(one.name) not in out]
    # Of open_clip the image has the package alone.
    found = {OPEN_CLIP} & out
    seen = set()
    while waiting:
        one = waiting.pop()
        found.add(plain(one.name))
        for extra in {"", *one.extras}:
            if (plain(one.name), extra) not in seen:
                seen.add((plain(one.name), extra))
                needed = map(Requirement, requires(one.name) or [])
                waiting += [
                    other
                    for other in needed
                    if other.marker is None or other.marker.evaluate({"extra": extra})
                ]
    return found


def path_of(image: str, folder: Path) -> str:
    """A PYTHONPATH with which none but an image's packages can be imported."""
    have = installed(image)
    modules = {
        module
        for module, packages in packages_distributions().items()
        if have.isdisjoint(map(plain, packages))
    }
    assert modules >= {"pytest", "deptry"}
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(
        f"import sys\n{getsource(Missing)}\nsys.meta_path.insert(0, Missing(*{modules!r}))\n"
    )
    return str(folder)


def ignored_modules() -> list[str]:
    """What of ours isn't copied into images, as modules."""
    return (ROOT / ".dockerignore").read_text().replace("/", ".").split()


def copied_packages() -> list[str]:
    """Our packages that are copied into images."""
    found = {one.parent.name for one in ROOT.glob("*/__init__.py")}
    return sorted(found - {*ignored_modules()})


def commands(image: str) -> list[list[str]]:
    """What the Dockerfile and the compose file start in an image, word by word."""
    stage = (ROOT / "docker/Dockerfile").read_text().partition(f"FROM base AS {image}\n")[2]
    found = [json.loads(stage.partition("\nCMD ")[2].partition("\n")[0])]
    for service in COMPOSE["services"].values():
        if service["image"] == f"inquire-annotator-{image}" and "command" in service:
            words = shlex.split(service["command"])
            line = words[-1] if words[:2] == ["sh", "-c"] else shlex.join(words)
            found += [shlex.split(one.removeprefix("exec ")) for one in line.split(" && ")]
    return found


def test_what_ships_is_named_alike_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    packages = project["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert copied_packages() == sorted(packages)
    deptry = tomllib.loads((ROOT / ".ci/deptry.toml").read_text())["tool"]["deptry"]
    assert deptry["known_first_party"] == [*packages, "tests", "bench", "docs"]
    assert f"\nSHIPPED := {' '.join(packages)}\n" in (ROOT / "Makefile").read_text()


@pytest.mark.parametrize("image", ["web", "worker"])
def test_what_is_left_out_is_a_requirement(image: str) -> None:
    assert left_out(image)
    assert left_out(image) <= {plain(one.name) for one in requirements()}


IMPORTS = """
import importlib, json, pkgutil, sys
import django

django.setup()
failed = {}
for package in json.loads(sys.argv[1]):
    for module in pkgutil.walk_packages([package], f"{package}."):
        try:
            importlib.import_module(module.name)
        except ImportError as error:
            failed[module.name] = str(error)
sys.modules["annotator.processes.gunicorn_conf"].on_exit(None)
print(json.dumps(failed))
"""


@pytest.mark.parametrize("image", IMAGES)
def test_every_module_can_be_imported_but_those_that_never_run(image: str, tmp_path: Path) -> None:
    imports = ["-c", IMPORTS, json.dumps(copied_packages())]
    done = run(imports, path_of(image, tmp_path), EXTRAS=",".join(extras.NAMES))
    failed = {
        module: error
        for module, error in json.loads(done.splitlines()[-1]).items()
        if not module.startswith(tuple(ignored_modules()))
    }
    assert failed.keys() == NEVER_RUN[image], failed


@pytest.mark.parametrize("image", IMAGES)
def test_every_command_runs(transactional_db: None, image: str, tmp_path: Path) -> None:
    path = path_of(image, tmp_path)
    run(["manage.py", "check"], path)
    named = commands(image)
    assert named
    for program, *words in named:
        assert program in {"python", "gunicorn", "celery"}
        endless = ["--help"] if {program, *words} & ENDLESS else []
        start = [] if program == "python" else ["-m", program]
        run([*start, *words, *endless], path, VAR_DIR=str(tmp_path / "var"))


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
    done = run(
        ["-c", WORKS, str(job.pk)], path_of("worker", tmp_path), EMBEDDING_MODEL=demo_encoder
    ).splitlines()[-1]
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
    addresses = ["/corpus/?text=a+bear", *sorted(f"/{one}" for one in own_world.addresses)]
    arguments = [str(own_world.people["admin"].pk), json.dumps(addresses)]
    done = run(
        ["-c", ANSWERS, *arguments],
        path_of("web", tmp_path),
        EMBEDDING_MODEL=own_world.model,
        TEXT_PROCESS="true",
    )
    statuses, embed, imported = json.loads(done.splitlines()[-1])
    assert (embed, imported) == (302, [])
    assert len(statuses) > 100
    assert statuses["/corpus/?text=a+bear"] == 200
    # No worker and no encoder is there.
    failed = {one: status for one, status in statuses.items() if status >= 500}
    assert set(failed) <= {"/healthz"}, done


def run(words: list[str], path: str, **environment: str) -> str:
    """What Python writes with an image's packages, on the tests' database."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env=os.environ
        | {
            "DJANGO_SETTINGS_MODULE": "annotator.settings",
            "DATABASE_URL": database_url(connection.settings_dict),
            "VAR_DIR": str(settings.VAR_DIR),
            "TEXT_PROCESS": "false",
            "PYTHONPATH": path,
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout

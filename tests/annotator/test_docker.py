"""The files of `docker/` set what the application reads, and nothing in them is open."""

import re

import pytest
import yaml

from tests import ROOT

pytestmark = pytest.mark.pure

COMPOSE = yaml.safe_load((ROOT / "docker/compose.yaml").read_text())
# Read by huggingface_hub, which loads models.
OTHERS = {"HF_HOME"}


def variables_read():
    """The names that the settings read through the typed reader."""
    text = (ROOT / "annotator/settings.py").read_text()
    return set(re.findall(r"env\.\w+\(\s*['\"](\w+)['\"]", text))


def test_every_variable_that_compose_or_an_image_sets_is_read_and_documented():
    for service in ("web", "worker", "gpu-worker", "texts"):
        names = set(COMPOSE["services"][service]["environment"])
        assert {"DATABASE_URL", "CELERY_BROKER_URL", "SECRET_KEY"} <= names
        assert names - variables_read() == set()
    assert COMPOSE["services"]["demo"]["environment"].keys() <= variables_read()
    text = (ROOT / "docker/Dockerfile").read_text().replace("\\\n", " ")
    names = set(re.findall(r"\b([A-Z_]+)=", text.split("ENV", 1)[1].split("\n", 1)[0]))
    ours = {name for name in names if not name.startswith(("PYTHON", "PIP_"))}
    assert ours >= {"VAR_DIR", "BIND"}
    assert ours - variables_read() - OTHERS == set()
    table = (ROOT / "docs/operations.md").read_text()
    assert {name for name in variables_read() if f"`{name}`" not in table} == set()


def test_secrets_have_no_defaults_and_nothing_is_open_to_the_network():
    text = (ROOT / "docker/compose.yaml").read_text()
    for secret in ("SECRET_KEY", "POSTGRES_PASSWORD"):
        assert set(re.findall(rf"\${{{secret}(:?.)", text)) == {":?"}
    published = {
        name: service["ports"]
        for name, service in COMPOSE["services"].items()
        if "ports" in service
    }
    assert published == {
        "web": ["127.0.0.1:${WEB_PORT:-8000}:8000"],
        "demo": ["127.0.0.1:${DEMO_PORT:-8001}:${DEMO_PORT:-8001}"],
    }


def test_the_images_do_not_run_as_root():
    text = (ROOT / "docker/Dockerfile").read_text()
    for target in ("web", "worker", "demo"):
        stage = text.partition(f"FROM base AS {target}\n")[2].partition("FROM ")[0]
        assert "USER inquire" in stage.partition("\nCMD ")[0].splitlines()
        assert (f"not-in-{target}.txt" in stage) is (target != "demo")

import re

import pytest
import yaml

from tests.processes import ROOT

COMPOSE = yaml.safe_load((ROOT / "docker/compose.yaml").read_text())
READERS = ("annotator/settings.py",)
# Read by huggingface_hub, which loads models.
OTHERS = {"HF_HOME"}


def variables_read():
    """The names that the settings read through the typed reader."""
    text = "".join((ROOT / name).read_text() for name in READERS)
    return set(re.findall(r"env\.\w+\(\s*['\"](\w+)['\"]", text))


@pytest.mark.parametrize("service", ["web", "worker", "gpu-worker", "texts"])
def test_every_variable_that_compose_sets_is_read(service):
    names = set(COMPOSE["services"][service]["environment"])
    assert {"DATABASE_URL", "CELERY_BROKER_URL", "SECRET_KEY"} <= names
    assert names - variables_read() == set()


def test_every_variable_that_the_image_sets_is_read():
    text = (ROOT / "docker/Dockerfile").read_text().replace("\\\n", " ")
    names = set(re.findall(r"\b([A-Z_]+)=", text.split("ENV", 1)[1].split("\n", 1)[0]))
    ours = {name for name in names if not name.startswith(("PYTHON", "PIP_"))}
    assert ours >= {"VAR_DIR", "BIND"}
    assert ours - variables_read() - OTHERS == set()


def test_secrets_have_no_defaults_and_nothing_is_open_to_the_network():
    text = (ROOT / "docker/compose.yaml").read_text()
    for secret in ("SECRET_KEY", "POSTGRES_PASSWORD"):
        assert set(re.findall(rf"\${{{secret}(:?.)", text)) == {":?"}
    published = {name: service.get("ports") for name, service in COMPOSE["services"].items()}
    assert published.pop("web") == ["127.0.0.1:${WEB_PORT:-8000}:8000"]
    assert set(published.values()) == {None}


@pytest.mark.parametrize("target", ["web", "worker"])
def test_the_images_do_not_run_as_root(target):
    text = (ROOT / "docker/Dockerfile").read_text()
    stage = text.partition(f"FROM base AS {target}\n")[2].partition("FROM ")[0]
    assert "USER inquire" in stage.partition("\nCMD ")[0].splitlines()
    assert f"not-in-{target}.txt" in stage


def test_each_service_has_an_image_that_is_built():
    targets = {
        name: service["build"]["target"]
        for name, service in COMPOSE["services"].items()
        if "build" in service
    }
    assert targets == {"web": "web", **dict.fromkeys(("worker", "gpu-worker", "texts"), "worker")}


@pytest.mark.parametrize("service", ["web", "database", "broker"])
def test_services_that_others_wait_for_have_a_health_check(service):
    assert COMPOSE["services"][service]["healthcheck"]["test"]


def test_the_table_of_settings_names_every_variable():
    text = (ROOT / "docs/operations.md").read_text()
    assert {name for name in variables_read() if f"`{name}`" not in text} == set()

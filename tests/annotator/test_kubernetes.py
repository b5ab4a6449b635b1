"""`deploy/kubernetes/`: Kustomize builds it, Kubernetes' schemas take it, and its parts fit each
other and the application."""

from __future__ import annotations

import re
import shutil
import subprocess
from argparse import ArgumentParser
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import click
import kubernetes_validate
import pytest
import yaml
from celery.bin.worker import worker as celery_worker
from django.core.management import get_commands, load_command_class
from django.urls import resolve
from gunicorn.config import Config

from tests import ROOT
from tests.annotator.test_docker import OTHERS, variables_read

FOLDER = ROOT / "deploy/kubernetes"
OVERLAYS = ("small", "large")
VERSION = "1.34"
KUBECTL = shutil.which("kubectl")
#: What boto3 reads.
BY_OTHERS = {*OTHERS, "AWS_SHARED_CREDENTIALS_FILE"}
SECRETS = "/run/secrets/inquire/"

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")
Resource = dict[str, Any]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the examples in place of secrets."""
    copy = tmp_path_factory.mktemp("kubernetes") / "kubernetes"
    shutil.copytree(FOLDER, copy, ignore=shutil.ignore_patterns("secrets.env", "aws-credentials"))
    for example in copy.glob("*/*.example"):
        example.rename(example.with_suffix(""))
    return copy


@pytest.fixture(params=OVERLAYS)
def built(request: Any, folder: Path) -> list[Resource]:
    """What an overlay makes."""
    return build(folder / request.param)


@cache
def build(overlay: Path) -> list[Resource]:
    """What Kustomize makes of a folder."""
    done = subprocess.run(
        [str(KUBECTL), "kustomize", str(overlay)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def of_kind(built: list[Resource], *kinds: str) -> dict[str, Resource]:
    """The resources of some kinds, by name."""
    return {one["metadata"]["name"]: one for one in built if one["kind"] in kinds}


def pods(built: list[Resource]) -> dict[str, Resource]:
    """The templates of pods, by the name of what makes them."""
    makers = of_kind(built, "Deployment", "StatefulSet")
    return {name: one["spec"]["template"] for name, one in makers.items()}


def containers(built: list[Resource]) -> Iterator[tuple[str, Resource, Resource]]:
    """Each container with its pod's name and specification."""
    for name, pod in pods(built).items():
        for one in pod["spec"].get("initContainers", []) + pod["spec"]["containers"]:
            yield f"{name}/{one['name']}", one, pod["spec"]


def selected(built: list[Resource], labels: dict[str, str]) -> list[Resource]:
    """The pods that have these labels."""
    return [pod for pod in pods(built).values() if labels.items() <= labels_of(pod).items()]


def labels_of(pod: Resource) -> dict[str, str]:
    """A pod's labels."""
    return dict(pod["metadata"]["labels"])


def ports(pod: Resource) -> set[Any]:
    """The names of a pod's ports."""
    return {port["name"] for one in pod["spec"]["containers"] for port in one.get("ports", [])}


def test_kubernetes_takes_each_resource(built: list[Resource]) -> None:
    assert len(built) > 15
    for one in built:
        kubernetes_validate.validate(one, VERSION, strict=True)


def test_selectors_find_their_pods(built: list[Resource]) -> None:
    for maker in of_kind(built, "Deployment", "StatefulSet").values():
        chosen = maker["spec"]["selector"]["matchLabels"]
        assert selected(built, chosen) == [maker["spec"]["template"]]
    for service in of_kind(built, "Service").values():
        if service["spec"].get("type") == "ExternalName":
            continue
        (pod,) = selected(built, service["spec"]["selector"])
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports(pod)
    for budget in of_kind(built, "PodDisruptionBudget").values():
        (pod,) = selected(built, budget["spec"]["selector"]["matchLabels"])
    for policy in of_kind(built, "NetworkPolicy").values():
        found = selected(built, policy["spec"]["podSelector"]["matchLabels"])
        assert found
        for rule in policy["spec"].get("ingress", []):
            for source in rule["from"]:
                wanted = source.get("podSelector", {}).get("matchLabels", {})
                assert selected(built, wanted)
            assert {port["port"] for port in rule["ports"]} <= ports(found[0])
    for scaler in of_kind(built, "HorizontalPodAutoscaler").values():
        scaled = of_kind(built, "Deployment")[scaler["spec"]["scaleTargetRef"]["name"]]
        assert "replicas" not in scaled["spec"]
    (ingress,) = of_kind(built, "Ingress").values()
    (path,) = ingress["spec"]["rules"][0]["http"]["paths"]
    service = of_kind(built, "Service")[path["backend"]["service"]["name"]]
    assert path["backend"]["service"]["port"]["name"] in {
        port["name"] for port in service["spec"]["ports"]
    }


def test_settings_are_known_and_secrets_are_files_that_exist(built: list[Resource]) -> None:
    (secret,) = of_kind(built, "Secret").values()
    for name, config in of_kind(built, "ConfigMap").items():
        if not name.startswith("inquire-settings"):
            continue
        for variable, value in config["data"].items():
            if value.startswith(SECRETS):
                assert value.removeprefix(SECRETS) in secret["data"], variable
            meant = variable if variable in BY_OTHERS else variable.removesuffix("_FILE")
            assert meant in variables_read() | BY_OTHERS
        assert {"SECRET_KEY_FILE", "DATABASE_URL_FILE"} <= set(config["data"])
        assert not {"SECRET_KEY", "DATABASE_URL", "CELERY_BROKER_URL"} & set(config["data"])
    claims = {
        claim["metadata"]["name"]
        for one in of_kind(built, "StatefulSet").values()
        for claim in one["spec"].get("volumeClaimTemplates", [])
    }
    for _, one, pod in containers(built):
        for reference in one.get("envFrom", []):
            assert reference["configMapRef"]["name"] in of_kind(built, "ConfigMap")
        for variable in one.get("env", []):
            assert "PASSWORD" not in variable["name"] or variable["value"].startswith(SECRETS)
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        assert {mount["name"] for mount in one["volumeMounts"]} <= {*volumes, *claims}
        for volume in volumes.values():
            if "secret" in volume:
                assert volume["secret"]["secretName"] == secret["metadata"]["name"]
                items = {item["key"] for item in volume["secret"].get("items", [])}
                assert items <= set(secret["data"])
            if "configMap" in volume:
                assert volume["configMap"]["name"] in of_kind(built, "ConfigMap")
            if "persistentVolumeClaim" in volume:
                claim = volume["persistentVolumeClaim"]["claimName"]
                assert claim in of_kind(built, "PersistentVolumeClaim")


def test_each_command_is_one(built: list[Resource]) -> None:
    programs = set()
    stages = re.findall(r"^FROM base AS (\w+)$", (ROOT / "docker/Dockerfile").read_text(), re.M)
    for place, one, _ in containers(built):
        image = re.search(r"/inquire-annotator-(\w+):", one["image"])
        if image is None:
            continue
        assert image[1] in stages
        program, *arguments = one["command"]
        programs.add((image[1], program))
        if program == "celery":
            assert arguments[:4] == ["-q", "-A", "annotator", "worker"], place
            celery_worker.make_parser(click.Context(celery_worker)).parse_args(arguments[4:])
        elif program == "gunicorn":
            given = Config().parser().parse_args(arguments)
            assert (ROOT / given.config).is_file()
            grace = of_kind(built, "Deployment")["inquire-web"]["spec"]["template"]["spec"]
            sleep = int(one["lifecycle"]["preStop"]["exec"]["command"][1])
            assert grace["terminationGracePeriodSeconds"] > sleep + given.graceful_timeout
        else:
            assert (program, arguments[0]) == ("python", "manage.py"), place
            parser(arguments[1]).parse_args(arguments[2:])
    assert programs == {
        *(("web", "gunicorn"), ("web", "python")),
        *(("worker", "celery"), ("worker", "python")),
    }


def parser(name: str) -> ArgumentParser:
    """The parser of a management command of ours or Django's."""
    return load_command_class(get_commands()[name], name).create_parser("manage.py", name)


def test_a_new_web_server_answers_before_an_old_one_ends(built: list[Resource]) -> None:
    web = of_kind(built, "Deployment")["inquire-web"]["spec"]
    assert web["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    (one,) = web["template"]["spec"]["containers"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        asked = one[probe]["httpGet"]
        assert resolve(asked["path"]).url_name == "healthz-web"

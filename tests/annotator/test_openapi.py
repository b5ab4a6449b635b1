"""The API answers as its description says: schemathesis with all its checks, as an admin, who sees
everything. (What is closed to others is for test_addresses.py.)

`st run ADDRESS/api/schema/ -H "Authorization: Token …"` with the configuration beside this file
does the same of any served application, with as many examples as one likes.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import schemathesis
from click.testing import CliRunner
from django.conf import settings
from drf_spectacular.generators import SchemaGenerator
from schemathesis.cli import schemathesis as command

from retrieval.embedding.models import EmbeddingModel
from tests import ROOT
from tests.annotator.world import World
from tests.conftest import token_of
from tests.labeling.conftest import FIRST_ID
from tests.people import PASSWORD

CONFIGURATION = ROOT / "tests/annotator/schemathesis.toml"
EXAMPLES = 1
CSV = (
    b",query_id,query_text,supercategory,category,iconic_group\n0,900,a newt,Species,Species ID,\n"
)
#: What is in no state here in which it could succeed: a release whose making failed, one with
#: halves, a re-ranking that stopped, two runs to fuse, a query with a reader, and a flag that isn't
#: one's own; and a file that nobody invents.
UNREACHED = {
    "POST /api/correlate/",
    "POST /api/queries/{id}/checks/send-back/",
    "POST /api/readers/{id}/calibration/",
    "POST /api/releases/{id}/fuse/",
    "POST /api/releases/{id}/retry/",
    "POST /api/readers/judgments/",
    "POST /api/releases/{id}/close-board/",
    "POST /api/runs/{id}/rerank/resume/",
    "DELETE /api/images/{id}/flags/{flag}/",
}


@pytest.fixture
def world(own_world: World, settings: Any) -> World:
    """One of everything, for the server's own connections to see, and lists that can be longer."""
    settings.CANDIDATE_DEPTH = 10
    settings.MULTIMODAL_ENDPOINTS = {"local": "http://127.0.0.1:9/v1"}
    return own_world


def named(world: World) -> dict[str, dict[str, Any]]:
    """What must name what is there to succeed, and so is called here: parts of the request."""
    model = EmbeddingModel.objects.get().name
    query, release = {"id": world.queries["open"].pk}, {"id": world.release.pk}
    draft, submitted, complete = (
        {"id": world.queries[state].pk} for state in ("draft", "submitted", "complete")
    )
    rerank = {"first_stage": world.run.pk, "depth": 5, "embedding_model": model}
    return {
        "GET /api/queries/{id}/similar/": {"path_parameters": query, "query": {"image": FIRST_ID}},
        "POST /api/queries/": {"body": {"text": "a newt", "category": "Species ID"}},
        "PATCH /api/queries/{id}/": {"path_parameters": draft, "body": {"text": "an eft"}},
        "POST /api/queries/{id}/examples/": {
            "path_parameters": query, "body": {"image": FIRST_ID + 1, "relevant": False},
        },
        **(_of_boxes(complete) if "boxes" in settings.EXTRAS else {}),
        **(_of_readers(world.reader, submitted) if "reading" in settings.EXTRAS else {}),
        "POST /api/queries/{id}/comments/": {
            "path_parameters": query, "body": {"text": "odd", "client_id": str(uuid4())},
        },
        "POST /api/queries/{id}/comments/resolve/": {
            "path_parameters": query, "body": {"resolved": True},
        },
        "POST /api/queries/{id}/audit/draws/": {"path_parameters": query, "body": {"count": 1}},
        "POST /api/queries/{id}/release-audit/draws/": {
            "path_parameters": query, "body": {"count": 1},
        },
        "GET /api/queries/{id}/second-opinions/": {"path_parameters": submitted},
        "POST /api/queries/{id}/second-opinions/draws/": {
            "path_parameters": submitted, "body": {"count": 1},
        },
        "POST /api/queries/{id}/requested/draws/": {
            "path_parameters": query, "body": {"count": 1},
        },
        "POST /api/queries/{id}/checks/": {
            "path_parameters": query, "body": {"image": FIRST_ID, "marked": False},
        },
        "POST /api/queries/{id}/extend/": {"path_parameters": query, "body": {"count": 1}},
        "POST /api/queries/import/": {
            "query": {"name": "queries_val.csv"}, "body": CSV, "media_type": "text/csv",
        },
        "DELETE /api/queries/{id}/": {"path_parameters": draft},
        "GET /api/search/": {"query": {"text": "a toad"}},
        "GET /api/data-sets/found/": {
            "query": {"dataset": world.image.dataset, "finding": "license"},
        },
        "GET /api/data-sets/figures/": {"query": {"dataset": world.image.dataset}},
        "POST /api/data-sets/mark/": {"body": {"dataset": world.image.dataset}},
        "GET /api/data-sets/removal/": {"query": {"dataset": world.image.dataset}},
        "POST /api/data-sets/removal/": {"body": {"dataset": world.image.dataset}},
        "POST /api/models/use/": {"body": {"model": model}},
        "POST /api/models/measure/": {"body": {"model": model}},
        "POST /api/releases/": {"body": {"name": "Newts", "rerank_model": ""}},
        "GET /api/releases/{id}/files/{name}": {
            "path_parameters": release | {"name": "inquire_queries_val.csv"},
        },
        "POST /api/releases/{id}/evaluate/": {
            "path_parameters": release, "body": {"model": model},
        },
        "POST /api/releases/{id}/rerank/estimate/": {"path_parameters": release, "body": rerank},
        "POST /api/releases/{id}/rerank/": {"path_parameters": release, "body": rerank},
        "POST /api/token/": {"body": {"username": "the-admin", "password": PASSWORD}},
        "DELETE /api/token/": {},  # the last, since it ends the token of all
    }  # fmt: skip


def _of_boxes(complete: dict[str, Any]) -> dict[str, dict[str, Any]]:
    drawn = {"image": FIRST_ID, "boxes": [], "client_id": str(uuid4())}
    return {
        "GET /api/queries/{id}/boxes/": {"path_parameters": complete},
        "PUT /api/queries/{id}/boxes/": {"path_parameters": complete, "body": {"images": "all"}},
        "POST /api/queries/{id}/boxes/": {"path_parameters": complete, "body": drawn},
    }


def _of_readers(reader: int, submitted: dict[str, Any]) -> dict[str, dict[str, Any]]:
    made = {"name": "another", "endpoint": "local", "model": "a/model"}
    switches = dict.fromkeys(("order", "queue", "opinions"), False)
    use = {"reader": None, "recall": None, **switches}
    return {
        "POST /api/readers/": {"body": made},
        "POST /api/readers/{id}/readings/": {
            "path_parameters": {"id": reader}, "body": {"depth": 3, "estimate": True},
        },
        "GET /api/queries/{id}/more-images/": {"path_parameters": submitted},
        "POST /api/queries/{id}/more-images/draws/": {
            "path_parameters": submitted, "body": {"count": 1},
        },
        "PUT /api/queries/{id}/reader/": {"path_parameters": submitted, "body": use},
    }  # fmt: skip


def configuration(world: World) -> str:
    """The configuration, with what is there in place of the addresses' parameters."""
    sections = [CONFIGURATION.read_text()]
    for part, values in world.parameters.items():
        named = ", ".join(
            f'"path.{"id" if name == "pk" else name}" = {value}'
            for name, value in values.items()
            if isinstance(value, int)
        )
        where = rf"include-path-regex = '^/api/{part}/\{{id\}}'"
        sections.append(f"[[operations]]\n{where}\nparameters = {{ {named} }}\n")
    return "\n".join(sections)


def answers(report: Path) -> dict[str, set[int]]:
    """The statuses that each operation answered."""
    found: defaultdict[str, set[int]] = defaultdict(set)
    for line in report.read_text().splitlines():
        if scenario := json.loads(line).get("ScenarioFinished"):
            for interaction in scenario["recorder"]["interactions"].values():
                found[scenario["recorder"]["label"]].add(interaction["response"]["status_code"])
    return found


def test_an_admin_is_answered_as_the_description_says(
    world: World, live_server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "schemathesis.toml"
    file.write_text(configuration(world))
    report = tmp_path / "report.ndjson"
    header = ["-H", f"Authorization: Token {token_of(world.people['admin'])}"]
    done = CliRunner().invoke(
        command,
        [
            "--config-file", str(file), "run", f"{live_server.url}/api/schema/", *header,
            "--phases=fuzzing", f"--max-examples={EXAMPLES}", "--generation-deterministic",
            "--continue-on-failure", "--no-color", f"--report-ndjson-path={report}",
        ],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    found = answers(report)
    operations = found.keys()
    reached = {name for name, seen in found.items() if any(one < 300 for one in seen)}
    described = SchemaGenerator().get_schema(public=True)["paths"]
    assert operations | {"DELETE /api/token/"} == {
        f"{method.upper()} {path}" for path, methods in described.items() for method in methods
    }
    assert operations - reached <= {*named(world), *UNREACHED}


def test_what_must_name_what_is_there_succeeds_as_the_description_says(
    world: World, live_server: Any
) -> None:
    schema = schemathesis.openapi.from_url(f"{live_server.url}/api/schema/")
    token = {"Authorization": f"Token {token_of(world.people['admin'])}"}
    for label, parts in named(world).items():
        method, path = label.split()
        case = schema[path][method].Case(**parts)
        answer = case.call(headers=token, timeout=None)  # its own would be ten seconds
        assert answer.status_code < 300, f"{label}: {answer.text}"
        case.validate_response(answer)

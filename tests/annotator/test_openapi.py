"""The API answers as its description says: schemathesis with all its checks, as each role.

`st run ADDRESS/api/schema/ -H "Authorization: Token …"` with the configuration beside this file
does the same of any served application, with as many examples as one likes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from drf_spectacular.generators import SchemaGenerator

from tests.annotator.world import World, make_world
from tests.processes import ROOT

CONFIGURATION = ROOT / "tests/annotator/schemathesis.toml"
EXAMPLES = 2
#: What a made-up body can't reach: it would have to name what is there, or a state that isn't.
UNREACHED = {
    "GET /api/queries/{id}/similar/",
    "POST /api/queries/",
    "PATCH /api/queries/{id}/",
    "DELETE /api/queries/{id}/",
    "POST /api/queries/{id}/examples/",
    "POST /api/queries/{id}/extend/",
    "POST /api/queries/import/",
    "POST /api/releases/",
    "POST /api/releases/{id}/rerank/",
    "POST /api/releases/{id}/rerank/estimate/",
    "POST /api/releases/{id}/retry/",
    "POST /api/runs/{id}/rerank/resume/",
    "POST /api/token/",
}


@pytest.fixture
def world(transactional_db: None, settings: Any, tmp_path: Path) -> World:
    """One of everything, for the server's own connections to see."""
    return make_world(settings, tmp_path)


def configuration(world: World) -> str:
    """The configuration, with what is there in place of the addresses' parameters."""
    sections = [CONFIGURATION.read_text()]
    for part, numbers in world.numbers.items():
        named = ", ".join(f'"path.{name}" = {number}' for name, number in numbers.items())
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


def test_each_role_is_answered_as_the_description_says(
    world: World, live_server: Any, tmp_path: Path
) -> None:
    file = tmp_path / "schemathesis.toml"
    file.write_text(configuration(world))
    reached: set[str] = set()
    operations = set()
    for role in ("anonymous", *world.people):
        report = tmp_path / f"{role}.ndjson"
        person = world.people.get(role)
        header = ["-H", f"Authorization: Token {person.auth_token.key}"] if person else []
        tool = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(file), "run"]
        done = subprocess.run(
            [
                *tool, f"{live_server.url}/api/schema/", *header,
                "--phases=fuzzing", f"--max-examples={EXAMPLES}", "--generation-deterministic",
                "--continue-on-failure", "--no-color", f"--report-ndjson-path={report}",
            ],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{role}: {done.stdout}{done.stderr}"
        found = answers(report)
        operations |= found.keys()
        reached |= {name for name, seen in found.items() if any(one < 300 for one in seen)}
    described = SchemaGenerator().get_schema(public=True)["paths"]
    assert operations == {
        f"{method.upper()} {path}" for path, methods in described.items() for method in methods
    }
    assert operations - reached <= UNREACHED

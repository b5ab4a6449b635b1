"""Which extras are installed is a setting, and one that isn't leaves no trace."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import extras
from annotator.environment import BadSetting, Environment
from tests import ROOT

SEEN = """
import json, sys
import django
django.setup()
from django.apps import apps
from django.conf import settings
from django.core.management import call_command, get_commands
from django.urls import get_resolver
from core import registries
from core.jobs.kinds import HANDLERS
from evaluation.leaderboard.marks import OTHER_FINDS, RUN_MARKS
from labeling.judging.blind import BLIND_KINDS
from labeling.learning.features import FEATURES
from labeling.lifecycle.benchmarks import SETTING_FIELDS
from releases.formats.registry import all_formats
from releases.importing.layout_files import LAYOUTS
from retrieval.encoding.model_specs import BASES
call_command("check")
get_resolver().url_patterns
print(json.dumps({
    "apps": sorted(app.name for app in apps.get_app_configs() if app.name.startswith("extras.")),
    "modules": sorted({name for name in sys.modules if name.startswith("extras.")}),
    "commands": sorted(n for n, app in get_commands().items() if app.startswith("extras.")),
    "lists": [len(one) for one in (
        registries.LINKS, registries.BACKUP_FOLDERS, registries.CONFUSIONS,
        registries.SNAPSHOT_FACTS, registries.QUERY_PANELS, registries.QUERY_TASKS,
        registries.IMAGE_PANELS[2:], registries.IMAGE_USES[9:],
        registries.SNAPSHOT_TABLES, LAYOUTS[1:], BASES,
        SETTING_FIELDS.keys() & {"BOX_SECOND_OPINION"}, FEATURES, BLIND_KINDS[4:], RUN_MARKS,
        OTHER_FINDS)],
    "jobs": sorted(HANDLERS),
    "settings": dir(settings),
    "formats": [one.key for one in all_formats()],
    "routes": sorted(name for name in get_resolver().reverse_dict if isinstance(name, str)),
}))
"""


def seen(value: str) -> dict[str, list[str]]:
    """What a process of these extras has."""
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings", "EXTRAS": value}
    command = [sys.executable, "-c", SEEN]
    done = subprocess.run(
        command, env=environment, cwd=ROOT, check=True, capture_output=True, text=True
    )
    answer: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return answer


def test_without_extras_nothing_of_them_is_there() -> None:
    without, with_all = seen(""), seen(",".join(extras.NAMES))
    assert [without[key] for key in ("apps", "modules", "commands")] == [[], [], []]
    assert without["lists"] == [0] * 16
    assert with_all["apps"] == [f"extras.{name}" for name in extras.NAMES]
    assert with_all["commands"] == [
        "add_context", "evaluate_boxes", "evaluate_species", "find_duplicates", "import_boxes",
        "import_lookalikes", "propose_faces", "propose_lookalikes", "simulate", "train_context",
    ]  # fmt: skip
    assert with_all["lists"] == [9, 1, 1, 1, 2, 1, 1, 2, 2, *[1] * 7]
    assert {*with_all["jobs"]} - {*without["jobs"]} == {
        "find_duplicates", "read_images", "score_boxes", "simulate", "species_task",
    }  # fmt: skip
    own = {
        "BOX_SECOND_OPINION", "RANKING_SHARDS", "RANKING_SHARD_IMAGES", "RANKING_SHARD_SECONDS",
    }  # fmt: skip
    assert {*with_all["settings"]} - {*without["settings"]} == own
    assert {*with_all["formats"]} - {*without["formats"]} == {
        "boxes", "nature", "readers",
    }  # fmt: skip
    assert with_all["formats"][-1] == "datasheet"
    gone = {*with_all["routes"]} - {*without["routes"]}
    assert gone >= {
        "compare-species", "correlations", "detection", "duplicates", "lookalikes", "query-boxes",
        "query-nature", "query-reader", "readers", "simulations", "species-board",
    }  # fmt: skip
    assert {*without["routes"]} < {*with_all["routes"]}


def test_the_setting_names_extras() -> None:
    choices = ("a", "b")
    for variables, expected in (
        ({}, ["a", "b"]), ({"EXTRAS": ""}, []), ({"EXTRAS": "b, a"}, ["a", "b"]),
    ):  # fmt: skip
        assert Environment(variables).chosen("EXTRAS", choices) == expected
    with pytest.raises(BadSetting, match="'c' is none of a, b"):
        Environment({"EXTRAS": "a,c"}).chosen("EXTRAS", choices)

"""Every import points back along the street, between the apps and between their folders."""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from tests import ROOT

pytestmark = pytest.mark.pure

MAY_IMPORT = {
    "core": set(),
    "curation": {"core"},
    "retrieval": {"core"},
    "labeling": {"core", "retrieval"},
    "releases": {"core", "retrieval", "labeling"},
    "evaluation": {"core", "retrieval", "labeling", "releases"},
    "extras": {"core", "retrieval", "labeling", "releases", "evaluation", "annotator"},
}
OWN = {*MAY_IMPORT, "annotator", "bench", "demo", "tests"}
WIRING = ("management", "migrations", "templatetags")
"""Where Django looks in an app's own folder: they wire, as do the modules beside them."""

PURE = [
    "annotator/postgres/guardian.py",
    "annotator/processes/supervisor.py",
    "core/csv_rows.py",
    "core/geo_grid.py",
    "core/graphs.py",
    "core/licenses.py",
    "core/line_stream.py",
    "core/obscured.py",
    "core/parent_death.py",
    "core/table_queries.py",
    "core/unpacking.py",
    "curation/config.py",
    "curation/corpus_files.py",
    "curation/fetching.py",
    "curation/filters.py",
    "curation/pipeline.py",
    "curation/report.py",
    "curation/sampling.py",
    "curation/sources",
    "curation/splits.py",
    "curation/tables.py",
    "curation/taxonomy.py",
    "evaluation/leaderboard/board.py",
    "evaluation/reranking/multimodal/prompt.py",
    "evaluation/reranking/order.py",
    "evaluation/scoring",
    "extras/boxes/coco.py",
    "extras/boxes/detection.py",
    "extras/boxes/matching.py",
    "extras/context/harmonics.py",
    "extras/lookalikes/overlap.py",
    "extras/reading/prompt.py",
    "extras/simulation/core.py",
    "extras/simulation/measures.py",
    "extras/simulation/report.py",
    "labeling/audits/draws.py",
    "labeling/blind/opinion_draws.py",
    "labeling/candidates/fusion.py",
    "labeling/candidates/rules.py",
    "labeling/candidates/stopping.py",
    "labeling/certificates",
    "labeling/judging/consensus.py",
    "labeling/judging/reliability.py",
    "labeling/judging/sources.py",
    "labeling/learning/ridge.py",
    "labeling/queries/categories.py",
    "labeling/queries/files.py",
    "labeling/queries/splits.py",
    "labeling/queries/transitions.py",
    "labeling/studio/keymap.py",
    "releases/difference/difference.py",
    "releases/importing/beir_files.py",
    "releases/importing/layout.py",
    "releases/importing/layout_files.py",
    "releases/snapshot",
    "releases/statistics/numbers.py",
    "releases/verifying/certificate_checks.py",
    "retrieval/embedding/files.py",
    "retrieval/encoding/unit_rows.py",
    "retrieval/importing/cells.py",
    "retrieval/importing/coco.py",
    "retrieval/importing/columns.py",
    "retrieval/importing/fields.py",
    "retrieval/importing/folder.py",
    "retrieval/importing/headers.py",
    "retrieval/importing/sheets.py",
    "retrieval/importing/species_names.py",
    "retrieval/importing/table_choice.py",
    "retrieval/importing/workbook.py",
    "retrieval/ranking/scan.py",
]
FRAMEWORK = {"django", "rest_framework", "celery", "psycopg2"}
CLOCKS = {"time.time", "datetime.now", "timezone.now", "date.today"}


@cache
def modules(path: Path) -> set[str]:
    """The modules that a file imports, at its top or anywhere else."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write the import in full"
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                found.add(name if is_module(name) else str(node.module))
    return found


def is_module(name: str) -> bool:
    path = ROOT / name.replace(".", "/")
    return path.with_suffix(".py").is_file() or path.is_dir()


def folder(module: str) -> str:
    """The folder of a subject that a module lies in, from the app on; the app's own for wiring."""
    app, *rest = module.split(".")
    if not rest or rest[0] in WIRING:
        return app
    path = ROOT / module.replace(".", "/")
    return module if path.is_dir() else module.rpartition(".")[0]


def sources(place: str) -> list[Path]:
    path = ROOT / place
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


def test_imports_point_back_along_the_street() -> None:
    wrong = set()
    for app, allowed in MAY_IMPORT.items():
        files = sources(app)
        assert len(files) > 5
        wrong |= {
            f"{path.relative_to(ROOT)} imports {module}"
            for path in files
            for module in modules(path)
            if module.split(".")[0] in OWN - allowed - {app}
        }
    assert wrong == set()


def arrows(app: str) -> dict[str, dict[str, set[str]]]:
    """For each folder of an app those that it imports from, with the imports."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for path in sources(app):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for module in modules(path):
            here, there = folder(name), folder(module)
            if module.split(".")[0] == app and here != there and here != app:
                found[here][there].add(f"{name} -> {module}")
    return found


@pytest.mark.parametrize("app", [*MAY_IMPORT, "annotator"])
def test_no_folder_imports_one_that_imports_it(app: str) -> None:
    imported = arrows(app)
    while leaves := {here for here, theirs in imported.items() if not set(theirs) & set(imported)}:
        for leaf in leaves:
            del imported[leaf]
    circle = {
        here: {f: theirs[f] for f in theirs if f in imported} for here, theirs in imported.items()
    }
    assert circle == {}


def test_pure_cores_know_no_framework_and_no_clock() -> None:
    for place in PURE:
        files = sources(place)
        assert files, place
        for path in files:
            known = {module.split(".")[0] for module in modules(path)}
            assert known & FRAMEWORK == set(), path
            if not place.startswith("annotator/"):
                assert [clock for clock in CLOCKS if clock in path.read_text()] == [], path

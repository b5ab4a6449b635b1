"""Every import points back along the street: annotator wires retrieval <- labeling <- benchmark."""

import ast

import pytest

from tests.processes import ROOT

FORBIDDEN = {
    "retrieval": {"labeling", "benchmark", "demo"},
    "labeling": {"benchmark", "demo"},
    "benchmark": {"demo"},
    "annotator": {"demo"},
}
PURE = [
    "labeling/categories.py",
    "labeling/consensus.py",
    "labeling/keymap.py",
    "labeling/query_csv.py",
    "labeling/splits.py",
    "labeling/stopping.py",
    "labeling/transitions.py",
    "retrieval/embedding_files.py",
    "retrieval/batch_size.py",
    "retrieval/binary_copy.py",
    "retrieval/likeness.py",
    "retrieval/matrix/arithmetic.py",
    "retrieval/matrix/files.py",
    "retrieval/matrix/selection.py",
    "retrieval/matrix/writing.py",
    "retrieval/relative_paths.py",
    "retrieval/unit_rows.py",
    "benchmark/board/tables.py",
    "benchmark/difference.py",
    "benchmark/inquire_layout.py",
    "benchmark/layout_labels.py",
    "benchmark/layout_store.py",
    "benchmark/licences.py",
    "benchmark/multimodal/endpoints.py",
    "benchmark/multimodal/pace.py",
    "benchmark/multimodal/prices.py",
    "benchmark/multimodal/prompt.py",
    "benchmark/multimodal/replies.py",
    "benchmark/reranking/order.py",
    "benchmark/runs/files.py",
    "benchmark/scoring/correlation.py",
    "benchmark/scoring/evaluation.py",
    "benchmark/scoring/expectations.py",
    "benchmark/scoring/measures.py",
    "benchmark/scoring/metrics.py",
    "benchmark/scoring/qrels.py",
    "benchmark/scoring/reports.py",
    "benchmark/scoring/rerank_rule.py",
    "benchmark/scoring/significance.py",
    "benchmark/statistics/numbers.py",
    "annotator/lifelines.py",
    "annotator/postgres_guardian.py",
    "annotator/supervisor.py",
]
FRAMEWORK = {"django", "rest_framework", "celery", "psycopg2"}
CLOCKS = {"time.time", "datetime.now", "timezone.now", "date.today"}


def imports(path):
    """The modules that a file imports, at its top or anywhere else."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write the import in full"
            found.add(node.module)
    return found


def sources(package):
    return sorted((ROOT / package).rglob("*.py"))


@pytest.mark.parametrize("package", FORBIDDEN)
def test_imports_point_back_along_the_street(package):
    files = sources(package)
    assert len(files) > 5
    wrong = {
        f"{path.relative_to(ROOT)} imports {module}"
        for path in files
        for module in imports(path)
        if module.split(".")[0] in FORBIDDEN[package] | {"tests"}
    }
    assert wrong == set()


@pytest.mark.parametrize("package", ["retrieval", "labeling", "benchmark"])
def test_the_wiring_is_not_imported_by_what_it_wires(package):
    wrong = {
        f"{path.relative_to(ROOT)} imports {module}"
        for path in sources(package)
        for module in imports(path)
        if module.split(".")[0] == "annotator"
    }
    assert wrong == set()


@pytest.mark.parametrize("name", PURE)
def test_pure_cores_know_no_framework(name):
    modules = {module.split(".")[0] for module in imports(ROOT / name)}
    assert modules & FRAMEWORK == set()


@pytest.mark.parametrize("name", [name for name in PURE if not name.startswith("annotator/")])
def test_pure_cores_know_no_clock(name):
    text = (ROOT / name).read_text()
    assert [clock for clock in CLOCKS if clock in text] == []

"""Imports of embeddings that are killed, or that run beside each other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from django.conf import settings
from django.db import connection

from core.jobs.models import Job
from retrieval.embedding import importing as embedding_import
from retrieval.embedding.importing import EmbeddingImportReport, import_embeddings
from retrieval.embedding.models import Embedding, EmbeddingCount, EmbeddingModel
from retrieval.embedding.selectors import embeddings_after
from retrieval.encoding.unit_rows import unit_rows
from tests.processes import ROOT, database_url, killed, wait_for
from tests.retrieval.layouts import write_part
from tests.threads import at_once

pytestmark = pytest.mark.django_db(transaction=True)


def corpus(folder: Path, count: int, dimension: int) -> np.ndarray:
    """Images 1 to `count`, with files of embeddings of all of them; the vectors (n, d)."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO retrieval_image (id, dataset, source_id, file_name, sha256, format, width,"
            " height, size_bytes, license, license_url, rights_holder, created_at) "
            "SELECT i, 'toy', i, i || '.jpg', md5(i::text), 'JPEG', 4, 3, 100, '', '', '', now()"
            " FROM generate_series(1, %s) i",
            [count],
        )
    rows = np.random.default_rng(4).normal(size=(count, dimension)).astype(np.float32)
    vectors = unit_rows(rows, scale=True).vectors
    ids = np.arange(1, count + 1)
    half = count // 2
    write_part(folder, 0, vectors[:half], {"image_id": ids[:half]})
    write_part(folder, 1, vectors[half:], {"image_id": ids[half:]})
    return vectors


def stored() -> np.ndarray:
    """All stored vectors, by image id."""
    return embeddings_after(EmbeddingModel.objects.get(name="theirs"), 0, limit=1_000_000)[1]


def test_an_import_killed_in_the_middle_goes_on_where_it_was(tmp_path: Path) -> None:
    vectors = corpus(tmp_path / "files", 40_000, 128)
    command = [sys.executable, "manage.py", "import_embeddings", "--model", "theirs"]
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "annotator.settings",
        "VAR_DIR": str(settings.VAR_DIR),
        "DATABASE_URL": database_url(connection.settings_dict),
    }
    first = subprocess.Popen(
        [*command, str(tmp_path / "files")], cwd=ROOT, env=environment, stderr=subprocess.DEVNULL
    )
    wait_for(Embedding.objects.exists, what="the first chunk", pause=0.005)
    killed(first)
    before = Embedding.objects.count()
    assert 0 < before < len(vectors)
    moments = dict(Embedding.objects.values_list("image_id", "created_at"))
    again = subprocess.run(
        [*command, str(tmp_path / "files")],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"{len(vectors) - before:,} stored, {before:,} were there" in again.stdout
    assert np.array_equal(stored(), vectors)
    kept = Embedding.objects.filter(image_id__in=list(moments))
    assert dict(kept.values_list("image_id", "created_at")) == moments
    assert EmbeddingCount.objects.get().embedded == len(vectors)
    assert Job.objects.get().kind == "pack_embeddings"


def test_two_imports_at_once_store_each_image_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_import, "chunk_rows", lambda dimension: 50)
    vectors = corpus(tmp_path, 2000, 8)
    reports: list[EmbeddingImportReport] = at_once(
        *[lambda: import_embeddings(model_name="theirs", directory=tmp_path)] * 3
    )
    assert sum(report.stored for report in reports) == 2000
    assert [report.stored + report.present for report in reports] == [2000] * 3
    assert np.array_equal(stored(), vectors)

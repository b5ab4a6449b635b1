"""Imports of embeddings that end in their middle, or that run beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval.corpus.models import Image
from retrieval.embedding import importing
from retrieval.embedding.importing import import_embeddings
from retrieval.embedding.models import Embedding, EmbeddingCount, EmbeddingModel
from retrieval.embedding.selectors import embeddings_after
from retrieval.encoding.unit_rows import unit_rows
from tests.retrieval.layouts import write_part
from tests.retrieval.making import new_image, random_vectors
from tests.threads import at_once

COUNT = 400


@pytest.fixture
def vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """The vectors (n, d) of the images 1 to COUNT, in two files; fifty are read at once."""
    monkeypatch.setattr(importing, "chunk_rows", lambda dimension: 50)
    Image.objects.bulk_create(new_image(number) for number in range(1, COUNT + 1))
    vectors = unit_rows(random_vectors(COUNT, 8).astype(np.float32), scale=True).vectors
    ids = np.arange(1, COUNT + 1)
    for number, rows in enumerate((slice(0, COUNT // 2), slice(COUNT // 2, None))):
        write_part(tmp_path, number, vectors[rows], {"image_id": ids[rows]})
    return vectors


def stored() -> np.ndarray:
    """All stored vectors, by image id."""
    return embeddings_after(EmbeddingModel.objects.get(name="theirs"), 0, limit=COUNT)[1]


@pytest.mark.django_db
def test_an_import_that_ended_goes_on_where_it_was(
    tmp_path: Path, vectors: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, calls = importing.embeddings_copy, []

    def ending(**options: Any) -> int:
        calls.append(None)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return copy(**options)

    with monkeypatch.context() as patched:
        patched.setattr(importing, "embeddings_copy", ending)
        with pytest.raises(KeyboardInterrupt):
            import_embeddings(model_name="theirs", directory=tmp_path)
    moments = dict(Embedding.objects.values_list("image_id", "created_at"))
    assert len(moments) == 150
    report = import_embeddings(model_name="theirs", directory=tmp_path)
    assert (report.stored, report.present) == (250, 150)
    assert np.array_equal(stored(), vectors)
    kept = Embedding.objects.filter(image_id__in=list(moments))
    assert dict(kept.values_list("image_id", "created_at")) == moments
    assert EmbeddingCount.objects.get().embedded == COUNT


@pytest.mark.django_db(transaction=True)
def test_two_imports_at_once_store_each_image_once(tmp_path: Path, vectors: np.ndarray) -> None:
    reports = at_once(*[lambda: import_embeddings(model_name="theirs", directory=tmp_path)] * 3)
    assert sum(report.stored for report in reports) == COUNT
    assert [report.stored + report.present for report in reports] == [COUNT] * 3
    assert np.array_equal(stored(), vectors)

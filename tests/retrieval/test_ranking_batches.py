"""How many rankings are asked for at once."""

from __future__ import annotations

import pytest
from django.core.management import call_command

from retrieval.embedding.models import EmbeddingModel
from retrieval.ranking import current
from retrieval.ranking.batches import in_batches, vectors_at_once
from retrieval.ranking.selectors import QUERIES_AT_ONCE
from tests.retrieval.making import embed_rows, image_row


def test_batches_keep_the_order_and_lose_nothing() -> None:
    assert list(in_batches([1, 2, 3, 4, 5], 2)) == [[1, 2], [3, 4], [5]]
    assert list(in_batches([], 2)) == []
    with pytest.raises(ValueError, match="at least one"):
        in_batches([1], 0)


def test_many_at_once_only_where_one_pass_serves_them(toy_model: EmbeddingModel) -> None:
    for number in (1, 2, 3):
        image_row(number)
    embed_rows(toy_model, {1: [1, 0, 0], 2: [0, 1, 0], 3: [0, 0, 1]})
    assert vectors_at_once(toy_model) == 1
    call_command("pack_embeddings", model=toy_model.name)
    assert vectors_at_once(toy_model) == QUERIES_AT_ONCE
    assert vectors_at_once(toy_model, most=7) == 7


def test_one_by_one_while_a_matrix_lacks_most(
    toy_model: EmbeddingModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after an import beside few embeddings."""
    monkeypatch.setattr(current, "TAIL_BYTES", 2 * 2 * 3)
    for number in range(1, 6):
        image_row(number)
    embed_rows(toy_model, {1: [1, 0, 0]})
    call_command("pack_embeddings", model=toy_model.name)
    embed_rows(toy_model, {2: [0, 1, 0], 3: [0, 0, 1]})
    assert vectors_at_once(toy_model) == QUERIES_AT_ONCE
    embed_rows(toy_model, {4: [0, 1, 0]})
    assert vectors_at_once(toy_model) == 1
    call_command("pack_embeddings", model=toy_model.name)
    assert vectors_at_once(toy_model) == QUERIES_AT_ONCE

"""Vectors are made ready to be stored, many at once, as one at a time."""

from __future__ import annotations

import numpy as np
import pytest

from retrieval.encoding.unit_rows import Fault, half_rounded, unit_rows

pytestmark = pytest.mark.pure

RANDOM = np.random.default_rng(5)


def near_unit(count: int, dimension: int) -> np.ndarray:
    """Rows (count, dimension) whose lengths are between 0.991 and 1.009."""
    rows = RANDOM.normal(size=(count, dimension))
    return (
        rows
        / np.linalg.norm(rows, axis=1, keepdims=True)
        * RANDOM.uniform(0.991, 1.009, (count, 1))
    )


@pytest.mark.parametrize("dimension", [2, 17, 512])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_scaled_as_single_vectors_are(dimension: int, dtype: type) -> None:
    rows = near_unit(700, dimension).astype(dtype)
    found = unit_rows(rows)
    assert not found.faults.any()
    assert found.vectors.dtype == np.float16
    assert np.array_equal(found.vectors, np.array([half_rounded(row) for row in rows]))


@pytest.mark.parametrize("dimension", [1, 3, 1024])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_rounded_unit_vectors_stay_as_they_are(dimension: int, dtype: type) -> None:
    rows = RANDOM.normal(size=(500, dimension)) * RANDOM.uniform(1e-3, 1e3, size=(500, 1))
    halves = np.array([half_rounded(row) for row in rows], dtype=np.float16)
    found = unit_rows(halves.astype(dtype))
    assert not found.faults.any()
    assert np.array_equal(found.vectors, halves)


def test_each_fault_is_told_apart() -> None:
    rows = np.array(
        [[1, 0], [0, 0], [np.nan, 1], [np.inf, 0], [3, 4], [1.02, 0], [0.9901, 0]], np.float32
    )
    found = unit_rows(rows)
    assert [Fault(fault) for fault in found.faults] == [
        *(Fault.NONE, Fault.ZERO, Fault.NOT_FINITE, Fault.NOT_FINITE),
        *(Fault.LENGTH, Fault.LENGTH, Fault.NONE),
    ]  # fmt: skip
    assert found.lengths[4] == 5
    assert found.vectors[6].tolist() == [1, 0]
    scaled = unit_rows(rows, scale=True)
    assert np.flatnonzero(scaled.faults).tolist() == [1, 2, 3]
    assert scaled.vectors[4].tolist() == np.float16([0.6, 0.8]).tolist()


@pytest.mark.parametrize("vector", [[0, 0, 0], [np.nan, 1, 0], [np.inf, 0, 0], [[1, 0]], []])
def test_a_vector_without_direction_is_refused(vector: list[float]) -> None:
    with pytest.raises(ValueError, match="length above zero"):
        half_rounded(vector)


def test_vectors_are_scaled_before_they_are_rounded() -> None:
    assert half_rounded([3e-6, 4e-6]) == [float(np.float16(0.6)), float(np.float16(0.8))]

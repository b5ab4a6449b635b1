"""Primary keys in addresses and forms."""

from __future__ import annotations

import pytest

from core.ids import id_of, ids_of

pytestmark = pytest.mark.pure


def test_a_key_is_plain_digits_of_a_length_that_fits() -> None:
    none = ["", "x", "-1", "²", "٣", str(2**63), "9" * 5000]
    assert [id_of(text) for text in none] == [None] * len(none)
    assert ids_of(["7", *none, str(2**63 - 1)]) == [7, 2**63 - 1]

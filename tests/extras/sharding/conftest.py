"""The species of the tests of rankings."""

from tests.retrieval.conftest import animals

__all__ = ["animals"]

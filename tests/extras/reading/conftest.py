"""Queries of the toy corpus, for tests of readers."""

from tests.labeling.conftest import new_query, open_query, toy_model

__all__ = ["new_query", "open_query", "toy_model"]

"""The small corpus of retrieval's tests."""

from tests.retrieval.conftest import store, toy_model

__all__ = ["store", "toy_model"]

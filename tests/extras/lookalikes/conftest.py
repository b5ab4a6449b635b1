"""The small corpus of retrieval's tests."""

from tests.retrieval.conftest import animals, store, toy_model

__all__ = ["animals", "store", "toy_model"]

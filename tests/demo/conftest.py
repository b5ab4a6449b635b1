"""The toy corpus and the small models of the apps' tests."""

from tests.labeling.conftest import new_query, toy_model
from tests.releases.conftest import tiny_model

__all__ = ["new_query", "tiny_model", "toy_model"]

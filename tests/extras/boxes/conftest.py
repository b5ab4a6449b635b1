"""Queries of the toy corpus, and a served site with a browser, for tests of boxes."""

from tests.e2e.conftest import browser, idle_contexts, lasting_site, log_in, site
from tests.labeling.conftest import new_query, open_query, toy_model

__all__ = [
    "browser",
    "idle_contexts",
    "lasting_site",
    "log_in",
    "new_query",
    "open_query",
    "site",
    "toy_model",
]

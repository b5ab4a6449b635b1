"""The worlds of releases and the toy corpus, for tests of extras."""

from django.conf import settings

from extras import NAMES
from tests.labeling.conftest import new_query, toy_model
from tests.releases.conftest import corpus, images, judge, query, tiny_model, toy, var_dir, world

__all__ = [
    "corpus",
    "images",
    "judge",
    "new_query",
    "query",
    "tiny_model",
    "toy",
    "toy_model",
    "var_dir",
    "world",
]

collect_ignore = [name for name in NAMES if name not in settings.EXTRAS]

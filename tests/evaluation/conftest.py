"""The worlds of releases, for tests of runs on them."""

from tests.releases.conftest import corpus, images, judge, query, tiny_model, toy, var_dir, world

__all__ = ["corpus", "images", "judge", "query", "tiny_model", "toy", "var_dir", "world"]

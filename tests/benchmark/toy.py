"""Rows for tests of this app."""

from typing import Any

from labeling.models import Query

# Of the tiny model's vectors.
WIDTH = 16
TINY_MODEL = {
    "embed_dim": WIDTH,
    "vision_cfg": {
        "image_size": 32,
        "layers": 1,
        "width": WIDTH,
        "head_width": 8,
        "patch_size": 16,
    },
    "text_cfg": {"context_length": 16, "width": WIDTH, "heads": 2, "layers": 1},
}


def make_query(query_id: int, text: str, **values: Any) -> Query:
    """A completed query."""
    defaults = {
        "category": "Mating, Courtship, Reproduction",
        "iconic_group": "Birds",
        "split": "test",
        "state": Query.State.COMPLETE,
    }
    return Query.objects.create(query_id=query_id, text=text, **{**defaults, **values})

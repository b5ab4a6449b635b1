"""What the removal of a data set would take, and what stands against it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Model

from core.errors import Missing
from core.registries import IMAGE_USES
from core.sql import fetch_all
from retrieval.corpus.models import Image
from retrieval.embedding.models import Embedding

#: Images that a preview looks at: its cost is bounded, and the job looks at all.
MOST_PREVIEWED: Final = 5000


@dataclass(frozen=True, slots=True)
class RemovalPreview:
    """What goes with a data set, counted over its first MOST_PREVIEWED images."""

    dataset: str
    images: int
    more: bool
    """Whether there are more images than were counted."""
    files: int
    """Copied files that no other data set has."""
    embeddings: int
    problem: str
    """Why it can't be removed; empty where nothing is known."""


_IMAGE = Image._meta.db_table
# Counts by subqueries for each image: PostgreSQL may join or hash whole tables otherwise.
_PREVIEW = f"""
WITH first AS MATERIALIZED (
    SELECT id, sha256, root_id FROM {_IMAGE} WHERE dataset = %(dataset)s
     ORDER BY dataset, source_id LIMIT %(most)s
)
SELECT coalesce(array_agg(id), '{{}}'),
       count(DISTINCT sha256) FILTER (WHERE root_id IS NULL AND (
           SELECT count(*) FROM (
               SELECT FROM {_IMAGE} o WHERE o.sha256 = first.sha256 AND o.sha256 <> ''
                  AND o.dataset <> %(dataset)s LIMIT 1
           ) other
       ) = 0),
       coalesce(sum((SELECT count(*) FROM {Embedding._meta.db_table} e
                      WHERE e.image_id = first.id)), 0)
  FROM first
"""


def removal_preview(dataset: str) -> RemovalPreview:
    """Return what goes with a data set. Raises Missing if the corpus has none of that name."""
    values = {"dataset": dataset, "most": MOST_PREVIEWED + 1}
    [(ids, files, embeddings)] = fetch_all(_PREVIEW, values)
    if not ids:
        raise Missing(f"The corpus has no data set {dataset!r}.")
    return RemovalPreview(
        dataset=dataset,
        images=min(len(ids), MOST_PREVIEWED),
        more=len(ids) > MOST_PREVIEWED,
        files=files,
        embeddings=int(embeddings),
        problem=removal_problem(dataset, ids),
    )


def removal_problem(dataset: str, image_ids: Sequence[int]) -> str:
    """Why these images of a data set can't be removed; empty if nothing names them."""
    words = [use.words for use in IMAGE_USES if use.names_any(image_ids)]
    if not words:
        return ""
    listed = " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
    return f"The data set {dataset} stays: its images are named by {listed}."


def rows_name(model: type[Model]) -> Callable[[Sequence[int]], bool]:
    """Return a function that says whether rows of a model name any of these images, by its index
    on `image_id`.
    """
    statement = f"""
SELECT EXISTS (SELECT FROM unnest(%s::bigint[]) i (id)
                CROSS JOIN LATERAL (SELECT FROM {model._meta.db_table}
                                     WHERE image_id = i.id LIMIT 1) named)
"""

    def names_any(image_ids: Sequence[int]) -> bool:
        values: list[Any] = [list(image_ids)]
        [(there,)] = fetch_all(statement, values)
        return bool(there)

    return names_any

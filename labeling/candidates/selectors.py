"""The status of a query's candidate list, and its verification."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np

from core.errors import Conflict
from core.jobs.models import Job
from labeling.candidates.models import Candidate, CandidateList
from labeling.candidates.pools import pool_order
from labeling.queries.models import Benchmark, Query
from retrieval.corpus.models import ImageTakedown
from retrieval.embedding.in_use import model_in_use
from retrieval.embedding.models import EmbeddingModel
from retrieval.ranking.selectors import rank_images

ROWS_AT_A_TIME = 5000
#: A row of a ranking: image id and score.
RANKING: Final = np.dtype([("image_id", "<i8"), ("score", "<f8")])


@dataclass(frozen=True, slots=True)
class ListStatus:
    """A query's candidate list as pages and the API show it."""

    state: str
    """"none" (never opened), "building", "ready" or "failed"."""
    detail: str
    """Why it is empty, incomplete or failed, for people; else empty."""
    id: int | None = None
    job: int | None = None
    size: int = 0
    total: int = 0
    """Embedded images within the filter when it was frozen."""
    unembedded: int = 0
    complete: bool = False
    """It holds every image of its filter."""
    model: str = ""
    """The name of its model; of a pooled list, of its first one."""
    models: Sequence[str] = ()
    frozen_at: datetime | None = None
    checksum: str = ""


class FilterEmpty(Conflict):
    """A query's species filter and its benchmark's have no species in common."""


def filter_species_ids(query: Query) -> list[int]:
    """The ids of the query's species filter, sorted: its own within its benchmark's; empty for the
    whole corpus. Raises FilterEmpty.
    """
    own = set(query.species.values_list("pk", flat=True))
    common = set(
        Benchmark.species.through.objects.filter(benchmark=query.benchmark_id).values_list(
            "species", flat=True
        )
    )
    if own and common and own.isdisjoint(common):
        raise FilterEmpty(
            f"No species of the filter of query {query.query_id} is in that of its benchmark "
            f"{query.benchmark.name!r}, so there would be nothing to label."
        )
    return sorted(own & common if own and common else own | common)


def has_own_filter(candidate_list: CandidateList, query: Query) -> bool:
    """Whether a list has the query's own species filter, which is small enough to be labeled whole,
    rather than the filter of its whole benchmark.
    """
    return len(candidate_list.species_ids) not in (0, query.benchmark.species_count)


def models_in_use(query: Query) -> list[str]:
    """The names of the models that order the query's new lists: POOL_MODELS, or the one in use."""
    return list(dict.fromkeys(query.benchmark.setting("POOL_MODELS"))) or [model_in_use()]


def list_fits(query: Query, candidate_list: CandidateList | None = None) -> bool:
    """Whether a list (default: the current one) was made for the query's text and filter by the
    models in use.
    """
    candidate_list = candidate_list or query.current_list
    return (
        candidate_list is not None
        and candidate_list.model_names == models_in_use(query)
        and is_about(candidate_list, query)
    )


def is_about(candidate_list: CandidateList, query: Query) -> bool:
    """Whether a list was made for the query's text and filter."""
    return candidate_list.text == query.text and candidate_list.species_ids == filter_species_ids(
        query
    )


def list_status(query: Query) -> ListStatus:
    """The state of the query's current list. No SQL query where the list, its model and job were
    selected with the query.
    """
    current = query.current_list
    if current is None:
        return ListStatus(state="none", detail="The list is made when the query is opened.")
    if not current.ready:
        job = current.job
        if job is not None and job.state in Job.UNFINISHED:
            return ListStatus(
                state="building",
                detail="The candidates are being ranked.",
                id=current.pk,
                job=job.pk,
                model=current.model_name,
            )
        number = f" (job {job.pk})" if job else ""
        return ListStatus(
            state="failed",
            detail=f"The candidates could not be ranked{number}. An admin sees why and can retry.",
            id=current.pk,
            job=job.pk if job else None,
            model=current.model_name,
        )
    return ListStatus(
        state="ready",
        detail=_ready_detail(current),
        id=current.pk,
        job=current.job_id,
        size=current.size,
        total=current.total,
        unembedded=current.unembedded,
        complete=current.complete,
        model=current.model_name,
        models=current.model_names,
        frozen_at=current.frozen_at,
        checksum=current.checksum,
    )


def _ready_detail(current: CandidateList) -> str:
    where = "within the species filter" if current.species_ids else "in the corpus"
    if not current.total and not current.unembedded:
        return f"There was no image {where} when the list was made."
    if not current.total:
        return (
            f"None of the {current.unembedded} images {where} was embedded under "
            f"{' or '.join(current.model_names)} when the list was made. Embed them, then make a "
            "new list."
        )
    if current.unembedded:
        return (
            f"{current.unembedded} images {where} had no embedding when the list was made, "
            "so it can't be exhausted. Embed them, then make a new list."
        )
    return ""


def list_checksum(rows: Iterable[tuple[int, float]]) -> str:
    """SHA-256 (hexadecimal) over a ranking of (image id, score), best first.

    Each row is hashed as a little-endian 64-bit id and a little-endian float64 score, so two
    rankings have the same checksum exactly when they agree bit for bit.
    """
    return ranking_checksum(np.fromiter(rows, RANKING))


def ranking_checksum(ranking: np.ndarray[Any, Any]) -> str:
    """`list_checksum` of a ranking (n,) of the type RANKING."""
    return hashlib.sha256(ranking.tobytes()).hexdigest()


def candidate_ranks(query: Query, image_ids: Iterable[int]) -> dict[int, int]:
    """The ranks of images in the query's current list, by image id; images outside it are left out.
    One SQL query.
    """
    candidates = Candidate.objects.filter(list=query.current_list_id, image__in=list(image_ids))
    return dict(candidates.values_list("image", "rank"))


def list_verify(candidate_list: CandidateList) -> bool:
    """Whether a ready list, ranked again from its stored text vector, is the same bit for bit.

    Ranks by the database's own scan, whatever ranked the list before, and compares this ranking
    with the stored rows, and the stored rows with the checksum. They differ if an embedding of the
    list was removed since (an image's file was replaced or the image deleted), except for images
    that were taken down: only the checksum covers these. A list shorter than requested must hold
    every image of its filter. For a pooled list, compares each model's ranking in this way, and the
    order with the rankings' fusion. Raises ValueError for a list that isn't ready.
    """
    model, vector = candidate_list.embedding_model, candidate_list.text_vector
    if model is None or vector is None:
        raise ValueError("The list isn't ready yet.")
    stored = list(
        candidate_list.candidates.order_by("rank").values_list("image_id", "score", "rank")
    )
    if [rank for _, _, rank in stored] != list(range(1, candidate_list.size + 1)):
        return False
    order = [(image_id, score) for image_id, score, _ in stored]
    rankings = list(candidate_list.rankings.select_related("embedding_model"))
    if not candidate_list.pool_models:
        return not rankings and _ranking_verify(
            candidate_list, model, vector, order, candidate_list.checksum,
            whole=candidate_list.size < candidate_list.depth,
        )  # fmt: skip
    return (
        [ranking.embedding_model.name for ranking in rankings] == candidate_list.pool_models
        and list_checksum(order) == candidate_list.checksum
        and order == pool_order(candidate_list)[: candidate_list.size]
        and all(
            _ranking_verify(
                candidate_list,
                ranking.embedding_model,
                ranking.text_vector,
                ranking.rows,
                ranking.checksum,
            )
            for ranking in rankings
        )
    )


def _ranking_verify(
    candidate_list: CandidateList,
    model: EmbeddingModel,
    vector: Sequence[float],
    order: Sequence[tuple[int, float]],
    checksum: str,
    whole: bool = False,
) -> bool:
    """Whether a stored ranking (image id, score), best first, is what the model gives for the
    list's text; with `whole`, no image may follow it."""
    again = rank_images(
        model=model,
        text_vector=vector,
        species_ids=candidate_list.species_ids,
        limit=len(order) + whole,
        created_before=candidate_list.frozen_at,
        scan=True,
    )
    ids = [image_id for image_id, _ in order]
    removed = set(ImageTakedown.objects.filter(image_id__in=ids).values_list("image_id", flat=True))
    remaining = [row for row in order if row[0] not in removed]
    return list_checksum(order) == checksum and list_checksum(remaining) == list_checksum(
        again if whole else again[: len(remaining)]
    )

"""What the models of a run compute, for each query."""

from __future__ import annotations

from evaluation.runs.models import Run
from evaluation.runs.selectors import ReleaseData, release_data
from releases.models import Release
from retrieval.embedding.models import EmbeddingModel


def gflops_per_query(run: Run, release: Release) -> float | None:
    """Billions of floating-point operations for each query of the release that the run was made
    for; None where a part isn't known.

    As in INQUIRE's figure A4, the total of encoding all images that a model ranks is divided by the
    number of queries; the text of a query is added. A second stage by an embedding model adds the
    `rerank_depth` images of a query and its text to its first stage's; a release's fixed lists
    cost nothing. Comparing the vectors isn't counted. Source: Vendrow et al. 2024, appendix F.

    NoSnapshot: see `release_data`.
    """
    data, model, first = release_data(release), run.embedding_model, run.first_stage
    if model is None or run.kind not in (Run.Kind.MODEL, Run.Kind.RERANK_EMBEDDING):
        return None
    own = _gflops(model, _images_per_query(run, data))
    before = 0.0 if first is None else gflops_per_query(first, release)
    return None if own is None or before is None else before + own


def _images_per_query(run: Run, data: ReleaseData) -> float:
    """How many images the run's own model encodes, divided by the number of queries; 0 where the
    corpus isn't here."""
    if run.task == Run.Task.RERANK:
        depth = run.rerank_depth
        lengths = [len(ids[:depth]) for ids in data.fixed.values()]
        return sum(lengths) / max(1, len(lengths))
    if run.first_stage is not None:
        return min(run.rerank_depth or 0, run.first_stage.depth)
    return data.header.corpus_images / max(1, len(data.queries))


def _gflops(model: EmbeddingModel, images: float) -> float | None:
    if model.image_gflops is None or model.text_gflops is None or not images:
        return None
    return images * model.image_gflops + model.text_gflops

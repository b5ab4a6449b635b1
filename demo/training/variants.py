"""Damages copies of the demo's model and measures a pool of them.

Run `python -m demo.training.variants` beside a running demo, with its VAR_DIR. It writes copies
with noise in their weights to `VAR_DIR/demo_models/` and has the demo's worker embed the images by
each. Then it prints what share of the relevant images their orders bring up early, and how far
labels of a pool mis-score each model.

The copies stand for other models. Their mistakes are those of the demo's model and of independent
noise; real models share more of their mistakes, so that a pool of them gains less.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

import numpy as np
from django.conf import settings
from safetensors.numpy import load_file, save

from annotator.models import User
from core.commands.progress import Progress
from core.errors import Refused
from core.files import whole_file
from demo.queries import JUDGED, QUERIES
from demo.release import relevant_images
from demo.steps import demo_embed
from evaluation.scoring.correlation import tau_b
from evaluation.scoring.evaluation import score_runs
from evaluation.scoring.measures import parse_measures
from evaluation.scoring.metrics import recall_at_k
from evaluation.scoring.run_files import Ranking
from labeling.candidates.fusion import fused
from releases.snapshot.qrels import Qrels
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.text_vectors import text_vector
from retrieval.encoding.model_specs import DEMO_MODEL_DIR, WEIGHTS_NAME
from retrieval.ranking.selectors import rank_images

COUNT: Final = 5
#: Standard deviation of the noise, as a share of that of each matrix of weights.
NOISE: Final = 0.2
#: Labels after which is asked what was found.
LABELS: Final = (50, 100, 300)
#: How many of a pool's first images are judged, where its labels score the models.
POOLED: Final = 100
MEASURE: Final = "AP@50"


def main() -> None:
    """Embed what isn't yet, then measure; SystemExit where the worker can't embed."""
    names = [str(one) for one in write_variants(Path(settings.VAR_DIR) / "demo_models")]
    admin = User.objects.get(username="admin")
    for name in names:
        try:
            with Progress("images", title=f"Embedding by {name}") as show:
                demo_embed(by=admin, progress=show, model_name=name)
        except Refused as error:
            raise SystemExit(str(error)) from error
    models = [embedding_model_get_or_create(name=name) for name in names]
    rankings, truth = [], []
    for query in (*QUERIES, *JUDGED):
        if relevant := relevant_images(query):
            vectors = [text_vector(model, query.query_text) for model in models]
            ranked = [
                rank_images(model=model, text_vector=vector, limit=None)
                for model, vector in zip(models, vectors, strict=True)
            ]
            rankings.append([[image_id for image_id, _ in ranking] for ranking in ranked])
            truth.append(relevant)
    print(
        f"{len(truth)} queries over the whole corpus: relevant images among the first "
        f"{', '.join(map(str, LABELS))} labels"
    )
    found = [shares_found(*query) for query in zip(rankings, truth, strict=True)]
    for order in found[0]:
        shares = np.mean([one[order] for one in found], axis=0)
        print(f"  {order:<24}" + "".join(f"{share:>8.3f}" for share in shares))
    print(
        f"\n{MEASURE} by labels of a pool's first {POOLED} images, in points more than by the "
        "complete truth: pool's models, other models; τ-b with the true ranking"
    )
    for pool, figures in pool_errors(rankings, truth).items():
        shown = zip(figures, ("+.1f", "+.1f", ".2f"), strict=True)
        texts = ("–" if np.isnan(one) else format(one, form) for one, form in shown)
        print(f"  {pool:<24}" + "".join(f"{text:>8}" for text in texts))
    print(
        "\nTo label by them, start the demo with this, and have open queries renewed by "
        f"refresh_lists:\nPOOL_MODELS={','.join(names)}"
    )


def write_variants(folder: Path) -> list[Path]:
    """The folders of the copies below `folder`; what isn't there is written, each copy whole."""
    found = []
    for seed in range(1, COUNT + 1):
        copy = folder / str(seed)
        if not (copy / WEIGHTS_NAME).is_file():
            shutil.copytree(
                DEMO_MODEL_DIR,
                copy,
                dirs_exist_ok=True,
                ignore=shutil.ignore_patterns(WEIGHTS_NAME, "*.md"),
            )
            with whole_file(copy / WEIGHTS_NAME) as file:
                file.write(_damaged(seed))
        found.append(copy)
    return found


def _damaged(seed: int) -> bytes:
    """The weights with noise, as safetensors."""
    rng = np.random.default_rng(seed)
    weights = load_file(DEMO_MODEL_DIR / WEIGHTS_NAME)
    for name, values in sorted(weights.items()):
        if values.ndim > 1 and values.dtype == np.float16:
            exact = values.astype(np.float32)
            noise = rng.normal(0, NOISE * exact.std(), exact.shape)
            weights[name] = (exact + noise).astype(np.float16)
    return save(weights)


def round_robin(rankings: Sequence[Sequence[int]]) -> list[int]:
    """All images by the best rank that any of equally long rankings (ids, best first) gives them,
    then by its number: one of each in turn.
    """
    return list(dict.fromkeys(chain.from_iterable(zip(*rankings, strict=True))))


def shares_found(
    rankings: Sequence[Sequence[int]], relevant: Collection[int]
) -> Mapping[str, list[float]]:
    """The share of the relevant images within the first LABELS of an order, by its name: of each
    ranking (ids, best first) by itself, their mean; of all in turn; and of their fusion.
    """

    def found(order: Sequence[int]) -> list[float]:
        hits = np.isin(order, list(relevant))
        return list(map(float, recall_at_k(hits, len(relevant), LABELS)))

    return {
        "one model (mean)": np.mean([found(one) for one in rankings], axis=0).tolist(),
        "round robin": found(round_robin(rankings)),
        "reciprocal rank fusion": found([image_id for image_id, _ in fused(rankings)]),
    }


def pool_errors(
    rankings: Sequence[Sequence[Sequence[int]]], relevant: Sequence[Collection[int]]
) -> Mapping[str, list[float]]:
    """What labels of a pool's first POOLED images make of each model's mean MEASURE, in points more
    than all labels: the mean of the pool's models, of the other models (NaN without any), and tau-b
    of the two orders of the models (NaN where it isn't defined). By pool: of one model, the mean of
    all; and the fusion of all.

    `rankings` are, for each query, those of the models (ids, best first); `relevant` all relevant
    images of each query, of which there is one at least. Queries of which a pool finds none are
    left out, as in a release.
    """
    queries = range(len(rankings))
    models = range(len(rankings[0]))
    runs = [
        {
            query: Ranking(np.array(one[model]), -np.arange(len(one[model]), dtype=np.float64))
            for query, one in enumerate(rankings)
        }
        for model in models
    ]
    truth = Qrels.from_pairs(
        queries, ((query, image, True) for query in queries for image in relevant[query])
    )

    def errors(orders: Sequence[Sequence[int]], members: Collection[int]) -> list[float]:
        pairs = [
            (query, image, True)
            for query in queries
            for image in orders[query][:POOLED]
            if image in relevant[query]
        ]
        found = sorted({query for query, _, _ in pairs})
        scores = [
            100 * score_runs(runs, labels, parse_measures([MEASURE]))[MEASURE].mean(axis=1)
            for labels in (Qrels.from_pairs(found, pairs), truth.only(found))
        ]
        error = scores[0] - scores[1]
        others = [model for model in models if model not in members]
        tau = tau_b(scores[0].tolist(), scores[1].tolist())
        return [
            float(error[list(members)].mean()),
            float(error[others].mean()) if others else np.nan,
            np.nan if tau is None else tau,
        ]

    alone = [errors([one[model] for one in rankings], [model]) for model in models]
    fusion = [[image for image, _ in fused(one)] for one in rankings]
    return {
        "one model (mean)": np.mean(alone, axis=0).tolist(),
        f"all {len(models)}, fused": errors(fusion, models),
    }


if __name__ == "__main__":
    main()

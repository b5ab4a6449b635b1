"""Damages copies of the demo's model and measures a pool of them.

Run `python -m demo.training.variants` beside a running demo, with its VAR_DIR. It writes copies
with noise in their weights to `VAR_DIR/demo_models/`, and the demo's worker embeds the images with
each. Then it prints the share of relevant images early in their orders, and the errors of each
model's score by the labels of a pool.

The copies stand for other models. They share the demo model's mistakes and add independent noise;
real models share more of their mistakes, so a pool of them gains less.
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
from evaluation.scoring.evaluation import score_runs
from evaluation.scoring.measures import parse_measures
from evaluation.scoring.metrics import recall_at_k
from evaluation.scoring.rounding import mean_margin, settled
from evaluation.scoring.run_files import Ranking
from evaluation.scoring.significance import tau_b
from labeling.candidates.fusion import fuse
from releases.snapshot.qrels import Qrels
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.text_vectors import text_vector
from retrieval.encoding.model_specs import DEMO_MODEL_DIR, WEIGHTS_NAME
from retrieval.ranking.selectors import rank_images

COUNT: Final = 5
#: Standard deviation of the noise, as a share of that of each matrix of weights.
NOISE: Final = 0.2
#: The numbers of labels after which the found images are counted.
LABELS: Final = (50, 100, 300)
#: How many of a pool's first images are judged where its labels score the models.
POOLED: Final = 100
MEASURE: Final = "AP@50"


def main() -> None:
    """Embed what isn't embedded yet, then measure; SystemExit if the worker can't embed."""
    names = variant_names()
    admin = User.objects.get(username="admin")
    for name in names:
        try:
            with Progress("images", title=f"Embedding by {name}") as show:
                demo_embed(by=admin, progress=show, model_name=name)
        except Refused as error:
            raise SystemExit(str(error)) from error
    rankings, truth = rankings_and_truth()
    print(
        f"{len(truth)} queries over the whole corpus: relevant images among the first "
        f"{', '.join(map(str, LABELS))} labels"
    )
    query_shares = [shares_found(*query) for query in zip(rankings, truth, strict=True)]
    for order in query_shares[0]:
        means = np.mean([shares[order] for shares in query_shares], axis=0)
        print(f"  {order:<24}" + "".join(f"{mean:>8.3f}" for mean in means))
    print(
        f"\n{MEASURE} by labels of a pool's first {POOLED} images, in points more than by the "
        "complete truth: pool's models, other models; τ-b with the true ranking"
    )
    for pool, figures in pool_errors(rankings, truth).items():
        shown = zip(figures, ("+.1f", "+.1f", ".2f"), strict=True)
        texts = ("–" if np.isnan(figure) else format(figure, form) for figure, form in shown)
        print(f"  {pool:<24}" + "".join(f"{text:>8}" for text in texts))
    print(
        "\nTo label by them, start the demo with this, and have open queries renewed by "
        f"refresh_lists:\nPOOL_MODELS={','.join(names)}"
    )


def variant_names() -> list[str]:
    """The names of the copies as models; missing copies are written."""
    return [str(path) for path in write_variants(Path(settings.VAR_DIR) / "demo_models")]


def rankings_and_truth() -> tuple[list[list[list[int]]], list[set[int]]]:
    """For each query with a relevant image, each copy's ranking of the whole corpus (ids, best
    first), and the ids of all relevant images."""
    models = [embedding_model_get_or_create(name=name) for name in variant_names()]
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
    return rankings, truth


def write_variants(folder: Path) -> list[Path]:
    """The folders of the copies below `folder`; writes missing copies, each whole."""
    folders = []
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
        folders.append(copy)
    return folders


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
    """All images of equally long rankings (ids, best first), one of each ranking in turn: by an
    image's best rank, then by the number of the ranking.
    """
    return list(dict.fromkeys(chain.from_iterable(zip(*rankings, strict=True))))


def shares_found(
    rankings: Sequence[Sequence[int]], relevant: Collection[int]
) -> Mapping[str, list[float]]:
    """The share of the relevant images within the first LABELS of an order, by the order's name:
    the mean of the rankings (ids, best first); all rankings in turn; and their fusion.
    """

    def recall(order: Sequence[int]) -> list[float]:
        hits = np.isin(order, list(relevant))
        return list(map(float, recall_at_k(hits, len(relevant), LABELS)))

    return {
        "one model (mean)": np.mean([recall(ranking) for ranking in rankings], axis=0).tolist(),
        "round robin": recall(round_robin(rankings)),
        "reciprocal rank fusion": recall([image_id for image_id, _ in fuse(rankings)]),
    }


def pool_errors(
    rankings: Sequence[Sequence[Sequence[int]]], relevant: Sequence[Collection[int]]
) -> Mapping[str, list[float]]:
    """The errors of the models' mean MEASURE by the labels of a pool's first POOLED images, in
    points above the value by all labels: the mean over the pool's models and over the other models
    (NaN without any), and tau-b of the two orders of the models (NaN where it isn't defined). By
    pool: of one model (mean over the models), and the fusion of all.

    `rankings` has for each query the models' rankings (ids, best first), `relevant` all relevant
    images of each query, at least one. Queries for which a pool finds none are left out, as in a
    release.
    """
    queries = range(len(rankings))
    models = range(len(rankings[0]))
    runs = [
        {
            query: Ranking(np.array(ranked[model]), -np.arange(len(ranked[model]), dtype=float))
            for query, ranked in enumerate(rankings)
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
        scored = sorted({query for query, _, _ in pairs})
        [measure] = parse_measures([MEASURE])
        margin = mean_margin(len(scored), measure)
        scores = [
            100 * settled(score_runs(runs, labels, [measure])[MEASURE].mean(axis=1), margin)
            for labels in (Qrels.from_pairs(scored, pairs), truth.only(scored))
        ]
        error = scores[0] - scores[1]
        others = [model for model in models if model not in members]
        tau = tau_b(scores[0].tolist(), scores[1].tolist())
        return [
            float(error[list(members)].mean()),
            float(error[others].mean()) if others else np.nan,
            np.nan if tau is None else tau,
        ]

    alone = [errors([ranked[model] for ranked in rankings], [model]) for model in models]
    fusion = [[image for image, _ in fuse(ranked)] for ranked in rankings]
    return {
        "one model (mean)": np.mean(alone, axis=0).tolist(),
        f"all {len(models)}, fused": errors(fusion, models),
    }


if __name__ == "__main__":
    main()

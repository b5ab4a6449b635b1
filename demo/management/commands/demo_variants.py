"""`manage.py demo_variants`: several models for the demo, and what a pool of them finds."""

from pathlib import Path
from typing import Any

import numpy as np
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from annotator.models import User
from core.commands.progress import Progress
from demo.queries import JUDGED, QUERIES
from demo.release import relevant_images
from demo.steps import DemoError, demo_embed
from demo.variants import (
    COUNT,
    LABELS,
    MEASURE,
    NOISE,
    POOLED,
    pool_errors,
    shares_found,
    write_variants,
)
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.text_vectors import text_vector
from retrieval.ranking.selectors import rank_images


class Command(BaseCommand):
    """demo_variants"""

    help = (
        f"Write {COUNT} copies of the demo's model with noise of {NOISE:g} standard deviations in "
        "their weights, embed the demo's images by each, and print what share of the relevant "
        "images their orders bring up early, and how far labels of a pool mis-score each model. "
        "Needs the demo and its worker."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Embed what isn't yet, then measure."""
        quiet = options["verbosity"] == 0
        names = [str(one) for one in write_variants(Path(settings.VAR_DIR) / "demo_models")]
        admin = User.objects.get(username="admin")
        for name in names:
            try:
                with Progress("images", title=f"Embedding by {name}", quiet=quiet) as show:
                    demo_embed(by=admin, progress=show, model_name=name)
            except DemoError as error:
                raise CommandError(str(error)) from error
        models = [embedding_model_get_or_create(name=name) for name in names]
        found = []
        orders: list[list[list[int]]] = []
        truth = []
        for query in (*QUERIES, *JUDGED):
            if not (relevant := relevant_images(query)):
                continue
            rankings = [
                rank_images(
                    model=model, text_vector=text_vector(model, query.query_text), limit=None
                )
                for model in models
            ]
            ids = [[image_id for image_id, _ in ranking] for ranking in rankings]
            found.append(shares_found(ids, relevant))
            orders.append(ids)
            truth.append(relevant)
        self.stdout.write(
            f"{len(found)} queries over the whole corpus: relevant images among the first "
            f"{', '.join(map(str, LABELS))} labels"
        )
        for order in found[0]:
            shares = np.mean([one[order] for one in found], axis=0)
            self.stdout.write(f"  {order:<24}" + "".join(f"{share:>8.3f}" for share in shares))
        self.stdout.write(
            f"\n{MEASURE} by labels of a pool's first {POOLED} images, in points more than by the "
            "complete truth: pool's models, other models; τ-b with the true ranking"
        )
        for pool, figures in pool_errors(orders, truth).items():
            shown = zip(figures, ("+.1f", "+.1f", ".2f"), strict=True)
            texts = ("–" if np.isnan(one) else format(one, form) for one, form in shown)
            self.stdout.write(f"  {pool:<24}" + "".join(f"{text:>8}" for text in texts))
        self.stdout.write(
            "\nTo label by them, start the demo with this, and have open queries renewed by "
            f"refresh_lists:\nPOOL_MODELS={','.join(names)}"
        )

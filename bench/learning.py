"""How fast the order that learns is: `python -m bench.learning`.

A new revision is a direction fitted to the judgments, the exact score of every image of the pool
and the order by it. Beside each the bare half-precision product, which sorts nothing, in the same
round; the pool's moments are computed once and known before.

Then the application's own function, with all of its SQL, over a list of all images of a database:
the revision and the queue after each tenth label, by the packed matrix and, up to SCANNED images,
by the database alone.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench import harness
from bench.ranking import pack
from bench.rows import MODEL, fill_clustered, query_vectors
from labeling.learning.ridge import direction, learned_order, pool_moments, pool_scores

JUDGED: Final = (20, 100, 500)
AIMS: Final = {5_000: 0.3, 200_000: 1.0}
#: The largest list that is ordered without a matrix.
SCANNED: Final = 20_000
#: Labels between two revisions.
LABELS: Final = 10
BLOCK: Final = 1 << 14
HEAD: Final = (
    *("Images", "Judged", "Fit", "Scores and order", "Revision", "× bare product", "Bare product"),
    *("Moments, once a pool", "Aim"),
)
WHOLE_HEAD: Final = (
    *("Images", "Vectors from", "Judged", "Revision and queue", "First", "Aim"),
    *("Own memory before", "After"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options = harness.parse(
        "learning", __doc__, arguments, sizes=tuple(AIMS), dimension=1024, rounds=7
    )
    rows: list[list[str]] = []
    whole: list[list[str]] = []
    for images in options.sizes:
        harness.log(f"{images:,} images …")
        with harness.temporary_folder("learning") as folder:
            vectors = _mapped(folder / "vectors", images, options.dimension)
            rows += _rows(vectors, options.rounds)
        for packed in (False, True):
            if packed or images <= SCANNED:
                harness.log(f"{images:,} images in a database{', packed' * packed} …")
                with (
                    harness.temporary_folder("learning") as folder,
                    harness.process(folder / "var", migrate=True) as call,
                ):
                    whole += call(_in_database, images, options.dimension, options.rounds, packed)
    print(
        harness.section(
            "The order that learns",
            options.command,
            ("numpy", "numkong", "torch"),
            f"{options.dimension:,} dimensions, half precision, mapped from a file; medians of "
            f"{options.rounds} rounds.",
            harness.table(HEAD, rows),
            "The application's function after each tenth label; the first also computes the "
            "moments.",
            harness.table(WHOLE_HEAD, whole),
        )
    )
    return 0


def _mapped(path: Path, images: int, dimension: int) -> NDArray[np.float16]:
    """Unit vectors (n, d) around a few centers, in a file."""
    random = np.random.default_rng(3)
    centers = random.normal(size=(50, dimension))
    vectors = np.memmap(path, np.float16, "w+", shape=(images, dimension))
    for start in range(0, images, BLOCK):
        count = min(BLOCK, images - start)
        block = centers[random.integers(50, size=count)] + random.normal(size=(count, dimension))
        vectors[start : start + count] = block / np.linalg.norm(block, axis=1, keepdims=True)
    return vectors


def _rows(vectors: NDArray[np.float16], rounds: int) -> list[list[str]]:
    import torch

    images = len(vectors)
    image_ids = np.arange(images)
    text = vectors[0].copy()
    moments = pool_moments([vectors], text)
    once = harness.seconds(pool_moments, [vectors], text)
    matrix, query = torch.from_numpy(vectors), torch.from_numpy(text)

    def fit(judged: int) -> None:
        direction(moments, text, vectors[1 : judged + 1], np.arange(judged) % 10 == 0)

    ways = {
        "product": lambda _: harness.seconds(torch.mv, matrix, query),
        "order": lambda _: harness.seconds(
            lambda: learned_order(pool_scores(vectors, text), image_ids)
        ),
    } | {f"fit {judged}": partial(_fit_seconds, fit, judged) for judged in JUDGED}
    usual = {
        name: median(spent) for name, spent in harness.in_turn(rounds, ways, warm_up=1).items()
    }
    rows = []
    for judged in JUDGED:
        whole = usual[f"fit {judged}"] + usual["order"]
        aim = AIMS.get(images)
        reached = "" if aim is None else "reached" if whole <= aim else "not reached"
        rows.append(
            [
                f"{images:,}",
                f"{judged}",
                harness.ms(usual[f"fit {judged}"]),
                harness.ms(usual["order"]),
                harness.ms(whole),
                f"{whole / usual['product']:.1f}",
                harness.ms(usual["product"]),
                harness.ms(once),
                f"{harness.ms(aim)}: {reached}" if aim else "",
            ]
        )
    return rows


def _in_database(images: int, dimension: int, rounds: int, packed: bool) -> list[list[str]]:
    """Rows of the application's function, in a process on an empty database."""
    from labeling.learning.revisions import revision_queue

    fill_clustered(images, dimension)
    if packed:
        pack()
    query, person = _open_query(images, dimension)
    memory = harness.anonymous_bytes()
    rows: list[list[str]] = []
    judged = 0
    for wanted in JUDGED:
        _label(query, person, judged, wanted)
        judged = wanted
        first = harness.seconds(lambda: revision_queue(query=query, user=person))
        spent = []
        for _ in range(rounds):
            _label(query, person, judged, judged + LABELS)
            judged += LABELS
            spent.append(harness.seconds(lambda: revision_queue(query=query, user=person)))
        usual, aim = median(spent), AIMS.get(images)
        reached = "" if aim is None else "reached" if usual <= aim else "not reached"
        rows.append(
            [
                f"{images:,}",
                "matrix" if packed else "database",
                f"{wanted}",
                harness.ms(usual),
                harness.ms(first) if not rows else "",
                f"{harness.ms(aim)}: {reached}" if aim else "",
                harness.megabytes(memory),
                harness.megabytes(harness.anonymous_bytes()),
            ]
        )
    return rows


def _open_query(images: int, dimension: int) -> tuple[Any, Any]:
    """An open query whose list holds all images, and who labels it."""
    from django.contrib.auth import get_user_model
    from django.utils import timezone

    from core.access import Role
    from labeling.candidates.models import CandidateList
    from labeling.candidates.services import candidates_store
    from labeling.queries.categories import CATEGORIES
    from labeling.queries.models import Query
    from retrieval.embedding.models import EmbeddingModel
    from retrieval.ranking.selectors import rank_images

    model = EmbeddingModel.objects.get(name=MODEL)
    [text] = query_vectors(1, dimension).astype(float).tolist()
    query = Query.objects.create(
        query_id=1,
        text="a bird",
        category=next(iter(CATEGORIES)),
        split="val",
        state=Query.State.OPEN,
    )
    query.current_list = CandidateList.objects.create(
        query=query,
        model_name=model.name,
        embedding_model=model,
        text=query.text,
        depth=images,
        size=images,
        total=images,
        text_vector=text,
        frozen_at=timezone.now(),
        checksum="0" * 64,
    )
    query.save()
    ranked = rank_images(model=model, text_vector=text, limit=None)
    candidates_store(query.current_list, ranked, first_rank=1)
    harness.sql("ANALYZE labeling_candidate")
    return query, get_user_model().objects.create(username="ann", role=Role.ANNOTATOR)


def _label(query: Any, person: Any, first: int, last: int) -> None:
    """Judge the ranks behind `first` up to `last`, one in ten as relevant."""
    from labeling.judging.services import JudgmentInput, judgments_record

    ranked = query.current_list.candidates.filter(rank__gt=first, rank__lte=last)
    items = [
        JudgmentInput(
            image_id=image_id,
            relevance="not_relevant" if rank % 10 else "relevant",
            client_id=uuid.uuid4(),
        )
        for rank, image_id in ranked.values_list("rank", "image_id")
    ]
    judgments_record(query=query, annotator=person, items=items)


def _fit_seconds(fit: Callable[[int], None], judged: int, _round: int) -> float:
    return harness.seconds(fit, judged)


if __name__ == "__main__":
    sys.exit(main())

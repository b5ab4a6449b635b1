"""How fast the order that learns is: `python -m bench.learning`.

It times the application's function, with all of its SQL, over a list of all images of a database:
the revision (a direction fitted to the judgments, the exact score of every image of the pool and
the order by it) and the queue after each tenth label, by the packed matrix and, up to SCANNED
images, by the database alone. With the matrix it is compared with a bare half-precision product in
the same round, which sorts nothing.
"""

from __future__ import annotations

import uuid
from statistics import median
from typing import Any, Final

from bench import harness
from bench.ranking import bare_product, pack
from bench.rows import MODEL, fill_clustered, make_list, query_vectors

JUDGED: Final = (20, 100, 500)
AIMS: Final = {5_000: 0.3, 200_000: 1.0}
#: The largest list that is ordered without a matrix.
SCANNED: Final = 20_000
#: Labels between two revisions.
LABELS: Final = 10
HEAD: Final = (
    "Images | Vectors from | Judged | Revision and queue | × bare product | First | Aim"
    " | Own memory before | After"
)


def main(options: Any) -> tuple[bool, list[str]]:
    """The times of revisions."""
    rows: list[list[Any]] = []
    for images in options.sizes:
        for packed in (False, True):
            if packed or images <= SCANNED:
                harness.log(f"{images:,} images in a database{', packed' * packed} …")
                with harness.database() as (_, call):
                    rows += call(_rows, images, options.dimension, options.rounds, packed)
    return True, [
        f"{options.dimension:,} dimensions, half precision; medians of {options.rounds} rounds. "
        "The application's function after each tenth label; the first also computes the pool's "
        "moments.",
        harness.table(HEAD, rows),
    ]


def _rows(images: int, dimension: int, rounds: int, packed: bool) -> list[list[Any]]:
    """The rows of one database, in a process on an empty one."""
    from labeling.learning.revisions import revision_queue

    fill_clustered(images, dimension)
    vector = query_vectors(1, dimension)[0]
    if packed:
        pack()
        # It loads torch, whose memory isn't that of revisions.
        bare_product(vector)
    query, person = _open_query(images, dimension)
    memory = harness.megabytes(harness.anonymous_bytes())
    rows: list[list[Any]] = []
    judged = 0

    def revise(last: int) -> float:
        nonlocal judged
        _label(query, person, judged, last)
        judged = last
        return harness.seconds(lambda: revision_queue(query=query, user=person))

    for judged_target in JUDGED:
        first = revise(judged_target)
        ways = {"own": lambda _: revise(judged + LABELS)}
        if packed:
            ways["bare"] = lambda _: bare_product(vector)[0]
        times = harness.in_turn(rounds, ways)
        usual, aim = median(times["own"]), AIMS.get(images)
        reached = "reached" if aim and usual <= aim else "not reached"
        rows.append(
            [
                *(images, "matrix" if packed else "database", judged_target, harness.ms(usual)),
                usual / median(times["bare"]) if packed else None,
                None if rows else harness.ms(first),
                f"{harness.ms(aim)}: {reached}" if aim else None,
                *(memory, harness.megabytes(harness.anonymous_bytes())),
            ]
        )
    return rows


def _open_query(images: int, dimension: int) -> tuple[Any, Any]:
    """An open query whose list holds all images, and the person who labels it."""
    from annotator.models import User
    from labeling.candidates.services import candidates_store
    from labeling.queries.categories import CATEGORIES
    from labeling.queries.models import Query
    from retrieval.embedding.models import EmbeddingModel
    from retrieval.ranking.selectors import rank_images

    model = EmbeddingModel.objects.get(name=MODEL)
    [vector] = query_vectors(1, dimension).astype(float).tolist()
    about: dict[str, Any] = {"category": next(iter(CATEGORIES)), "state": Query.State.OPEN}
    query = Query.objects.create(query_id=1, text="a bird", split="val", **about)
    query.current_list = make_list(query, model, vector, depth=images, total=images)
    query.save()
    ranked = rank_images(model=model, text_vector=vector, limit=None)
    candidates_store(query.current_list, ranked, first_rank=1)
    harness.sql("ANALYZE labeling_candidate")
    return query, User.objects.create(username="ann", role="annotator")


def _label(query: Any, person: Any, first: int, last: int) -> None:
    """Judge the ranks behind `first` up to `last`, one in ten as relevant."""
    from labeling.judging.services import judgments_record
    from labeling.judging.writer import JudgmentInput

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


if __name__ == "__main__":
    packages = ("numpy", "numkong", "torch")
    sizes = tuple(AIMS)
    harness.run(main, "The order that learns", packages, sizes=sizes, dimension=1024, rounds=7)

"""What people judge blindly because of what a reader said: images that it would call relevant after
the stop, labels that it doubts, and those of which it is least sure where somebody offers time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet

from core.errors import Conflict, Invalid, Refused
from extras.reading.calibrations import calibrate, latest, readings_of
from extras.reading.models import Calibration, ReaderPick, ReaderUse
from extras.reading.reading_job import reading_begin
from labeling.blind.items import RANDOM, blind_item
from labeling.blind.opinions import first_labels
from labeling.judging.blind import SECOND_OPINIONS, BlindKind
from labeling.judging.models import BlindItem, Relevance
from labeling.judging.sources import JudgmentSource
from labeling.queries.models import Benchmark, Query

#: Its name is in addresses that annotators see, so it says nothing of a reader.
MORE_IMAGES: Final = BlindKind(
    "more-images",
    JudgmentSource.READER,
    offered_in=(Query.State.SUBMITTED, Query.State.COMPLETE),
    visible_in=(Query.State.SUBMITTED, Query.State.COMPLETE),
    title="More images",
    tab="Images",
    about="Images that nobody has judged, in random order. Judge each by itself; if you can’t "
    "tell, mark it unsure.",
    end=("No more images left", "No more images of this query wait for you here."),
    waiting="more to judge",
)
#: The calibrated probability from which an image is called relevant, and those beyond which a label
#: is doubted.
RELEVANT: Final = 0.5
DOUBTED: Final = 0.1
#: Images that the queue after the stop takes of a query, and labels that are doubted at a time.
MOST_QUEUED: Final = 200
MOST_DOUBTED: Final = 50
#: Judgments that somebody can give at once.
MOST_GIVEN: Final = 10_000


def after_submission(*, query: Query, **_: Any) -> None:
    """What the query's reader does once it is submitted; a receiver of `query_submitted`."""
    use = ReaderUse.objects.filter(query=query).select_related("reader").first()
    if use and use.opinions:
        opinions_add(use)
    if use and use.queue:
        queue_fill(query=query)
        _read_on(use)


@transaction.atomic
def after_reading(*, queries: QuerySet[Query]) -> None:
    """Fill the queues of queries of which images were read."""
    for use in _uses().filter(query__in=queries).select_related("query"):
        queue_fill(query=use.query)


def _read_on(use: ReaderUse) -> None:
    """Begin to read the query's list, where that has no price; no hand-in fails for this."""
    pool, reader = use.query.current_list, use.reader
    if pool and reader.price_in is None and reader.price_out is None:
        with suppress(Refused, ValidationError), transaction.atomic():
            reading_begin(
                reader=reader,
                queries=[use.query],
                depth=pool.size,
                max_cost=None,
                by=use.changed_by,
            )


@transaction.atomic
def queue_fill(*, query: Query) -> int:
    """Have people judge what the reader would call relevant and nobody has judged, the likeliest
    first, up to MOST_QUEUED images of the query in all; returns how many are new. To be called when
    the query is submitted, and again when images of it were read. Conflict where it can't be.
    """
    use = _uses().filter(query=query).first()
    calibration = latest(use.reader) if use else None
    if use is None or calibration is None:
        raise Conflict("The query isn't submitted, or no reader's queue is switched on for it.")
    queued = ReaderPick.objects.filter(item__query=query, how=ReaderPick.How.QUEUE).count()
    chances = sorted(_chances(use, calibration), reverse=True)[: max(MOST_QUEUED - queued, 0)]
    likely = (image_id for chance, image_id in chances if chance >= RELEVANT)
    items = [(use, _item(use, image_id)) for image_id in likely]
    return _pick(ReaderPick.How.QUEUE, items)


@transaction.atomic
def spend(*, count: int, benchmark: Benchmark | None, by: Any) -> int:
    """Have people judge so many images of whose relevance the calibrated readers are least sure,
    ties at random, over the queries, all or a benchmark's, that are submitted or complete and whose
    queue is switched on; returns how many there were.

    Readers are calibrated again first, so what comes next follows from what was found: LARA (arXiv
    2411.06877). Raises Invalid, and Conflict where no query can take any or a reader has too few
    judged images (TooFew).
    """
    if not 1 <= count <= MOST_GIVEN:
        raise Invalid({"count": [f"Between 1 and {MOST_GIVEN:,} judgments can be given."]})
    uses = _uses() if benchmark is None else _uses().filter(query__benchmark=benchmark)
    if not uses:
        raise Conflict("No query that is submitted or complete has a reader's queue switched on.")
    readers = {use.reader for use in uses}
    calibrations = {reader: calibrate(reader=reader) for reader in readers}
    doubts = sorted(
        (abs(chance - 0.5), RANDOM.random(), image_id, use.pk)
        for use in uses
        for chance, image_id in _chances(use, calibrations[use.reader])
    )
    by_query = {use.pk: use for use in uses}
    chosen = ((by_query[query], image_id) for _, _, image_id, query in doubts[:count])
    items = [(use, _item(use, image_id, requested_by=by)) for use, image_id in chosen]
    return _pick(ReaderPick.How.SPENT, items)


def opinions_add(use: ReaderUse) -> int:
    """Have a second person judge what one person has labeled as the reader surely would not, the
    worst first; returns how many. The caller holds the query's lock and has drawn second opinions,
    so that none is taken from the draw; these have no probability, so no estimate counts them.
    """
    opinions = BlindItem.objects.filter(query=use.query, kind=SECOND_OPINIONS.name, only_for=None)
    known = set(opinions.values_list("image", flat=True))
    calibration = latest(use.reader)
    rows = readings_of(use.reader, [use.query_id])
    said = calibration.curve([probability for *_, probability in rows]) if calibration else ()
    chances = {image_id: chance for (_, image_id, _), chance in zip(rows, said, strict=False)}
    doubted = sorted(
        (chances[image_id] if relevant else 1 - chances[image_id], image_id, person, relevant)
        for image_id, person, relevant, *_ in first_labels(use.query)
        if image_id in chances and image_id not in known
    )[:MOST_DOUBTED]
    items = [
        blind_item(
            SECOND_OPINIONS,
            query=use.query,
            image_id=image_id,
            relevance=Relevance.RELEVANT if relevant else Relevance.NOT_RELEVANT,
            not_for_id=person,
        )
        for right, image_id, person, relevant in doubted
        if right <= DOUBTED + 1e-9
    ]
    return _pick(ReaderPick.How.OPINIONS, [(use, item) for item in items])


def _uses() -> QuerySet[ReaderUse]:
    """Those whose queue is judged now, locked, so that two don't pick the same images at once."""
    uses = ReaderUse.objects.select_for_update(of=("self",)).select_related("reader")
    return uses.filter(queue=True, query__state__in=MORE_IMAGES.offered_in).order_by("pk")


def _chances(use: ReaderUse, calibration: Calibration) -> Iterator[tuple[float, int]]:
    """The calibrated probability and the id of each image that can be queued."""
    rows = readings_of(use.reader, [use.query_id], unjudged_for=MORE_IMAGES.name)
    chances = calibration.curve([said for *_, said in rows]).tolist()
    return zip(chances, (image_id for _, image_id, _ in rows), strict=True)


def _item(use: ReaderUse, image_id: int, **fields: Any) -> BlindItem:
    return blind_item(MORE_IMAGES, query_id=use.query_id, image_id=image_id, **fields)


def _pick(how: ReaderPick.How, items: Iterable[tuple[ReaderUse, BlindItem]]) -> int:
    picks = [ReaderPick(item=item, reader_id=use.reader_id, how=how) for use, item in items]
    BlindItem.objects.bulk_create(pick.item for pick in picks)
    for pick in picks:
        pick.item_id = pick.item.pk
    return len(ReaderPick.objects.bulk_create(picks))

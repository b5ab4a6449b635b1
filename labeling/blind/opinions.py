"""Choosing what gets a second opinion, and what people are checked with among them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import QuerySet

from core.access import Role
from core.errors import Conflict
from core.sql import fetch_all
from labeling.audits.draws import KEY_BYTES, draw_number
from labeling.blind.items import blind_item, known_images_mix
from labeling.blind.models import MarkedCheck, OpinionKey
from labeling.blind.opinion_draws import FirstLabel, OpinionShares, choose_labels
from labeling.blind.selectors import blind_queue
from labeling.candidates.models import Candidate
from labeling.candidates.services import lock_query
from labeling.judging.blind import SECOND_OPINIONS, waiting_for
from labeling.judging.consensus import consensus
from labeling.judging.models import BlindItem, Judgment, JudgmentEvent, Relevance
from labeling.judging.progress import votes_of
from labeling.judging.sources import JudgmentSource
from labeling.queries.categories import supercategory_of
from labeling.queries.models import Query, QueryExample
from retrieval.corpus.models import Image, ImageWithdrawal, Species
from retrieval.flags.selectors import is_withdrawn

# What one annotator alone has judged and is sure of. A reviewer's judgment decides, so there is
# nothing that a second one could change; what somebody picked is no part of what is estimated.
_FIRST: Final = f"""
SELECT j.image_id, min(j.annotator_id), min(j.relevance) = 'relevant', min(c.score),
       bool_or(s.lookalike_group > '')
  FROM {Judgment._meta.db_table} j
  JOIN {Image._meta.db_table} i ON i.id = j.image_id
  LEFT JOIN {Species._meta.db_table} s ON s.id = i.species_id
  JOIN {get_user_model()._meta.db_table} person
       ON person.id = j.annotator_id
  LEFT JOIN {Candidate._meta.db_table} c
       ON c.list_id = %(list)s AND c.image_id = j.image_id
 WHERE j.query_id = %(query)s
   AND NOT EXISTS (SELECT FROM {ImageWithdrawal._meta.db_table} w
                    WHERE w.image_id = j.image_id AND w.restored_at IS NULL)
 GROUP BY j.image_id
HAVING count(*) = 1 AND min(person.role) = 'annotator' AND min(j.relevance) <> 'unsure'
       AND min(j.source) <> '{JudgmentSource.PICKED}'
 ORDER BY j.image_id
"""


def opinion_key_ensure(*, query: Query) -> bytes:
    """The query's key, made where it has none; the caller holds the query's lock."""
    made = {"key": secrets.token_bytes(KEY_BYTES)}
    return bytes(OpinionKey.objects.get_or_create(query=query, defaults=made)[0].key)


def first_labels(query: Query) -> list[tuple[int, int, bool, float | None, bool | None]]:
    """What one annotator alone has judged and is sure of: the image, who, whether it is relevant,
    its score in the list, and whether it is of a look-alike; by image.
    """
    return fetch_all(_FIRST, {"query": query.pk, "list": query.current_list_id})


def opinions_draw(*, query: Query) -> None:
    """Choose the labels of a query that get a second opinion, when it is submitted; the caller
    holds its lock.

    An image that several people judged has more than one opinion already, and a person who is
    unsure asks for a review. A choice is never undone. A query that is reopened, labeled on and
    submitted again gets more by the same hash, as far as the ceiling leaves room, but no second
    boundary.
    """
    setting = query.benchmark.setting
    about_species = supercategory_of(query.category) == "Species"
    shares = OpinionShares(
        positive=setting("SECOND_OPINION_POSITIVE"),
        negative=setting("SECOND_OPINION_NEGATIVE"),
        lookalike=setting("SECOND_OPINION_LOOKALIKE") if about_species else 0.0,
    )
    count = setting("SECOND_OPINION_BOUNDARY")
    if not (shares.positive or shares.negative or shares.lookalike or count):
        return
    before = query.blind_items.filter(kind=SECOND_OPINIONS.name, only_for=None)
    known = dict(before.values_list("image", "boundary"))
    # What an extra has added is no part of the draw; those labels were passed over by then.
    chosen = before.exclude(probability=None, boundary=False).count()
    rows = [row for row in first_labels(query) if row[0] not in known]
    least = setting("SECOND_OPINION_LEAST")
    most = max(least, int(setting("SECOND_OPINION_MOST") * (len(rows) + len(known))))
    people = {image_id: person for image_id, person, *_ in rows}
    relevant = {image_id: positive for image_id, _, positive, *_ in rows}
    choices = choose_labels(
        [
            FirstLabel(image_id, positive, score, bool(alike))
            for image_id, _, positive, score, alike in rows
        ],
        key=opinion_key_ensure(query=query),
        query_id=query.query_id,
        shares=shares,
        boundary=0 if any(known.values()) else count,
        least=0 if chosen else least,
        most=max(most - chosen, 0),
        threshold=_threshold(before, shares),
    )
    BlindItem.objects.bulk_create(
        blind_item(
            SECOND_OPINIONS,
            query=query,
            image_id=choice.image_id,
            relevance=_label(relevant[choice.image_id]),
            not_for_id=people[choice.image_id],
            probability=choice.probability,
            boundary=choice.boundary,
        )
        for choice in choices
    )


def _threshold(before: QuerySet[BlindItem], shares: OpinionShares) -> float:
    """The threshold of the earlier draws, 1 where there was none: a label that they passed over
    must not be drawn later, or it would count for more than one label.
    """
    ratios = [1.0]
    drawn = before.filter(probability__isnull=False)
    facts = drawn.values_list("probability", "relevance", "image__species__lookalike_group")
    for probability, relevance, group in facts:
        share = shares.of(relevant=relevance == Relevance.RELEVANT, lookalike=bool(group))
        # The label at the threshold itself is passed over, whatever a division rounds to.
        ratios.append((probability or 0.0) / share * (1 - 1e-12) if share else 0.0)
    return min(ratios)


@transaction.atomic
def check_mark(*, query: Query, image_id: int, marked: bool, by: Any) -> None:
    """Mark an image that a reviewer has decided as a check, or end that; checks that people were
    given already stay. Raises QueryGone, and Conflict for an image that no reviewer has decided.
    """
    query = lock_query(query)
    if not marked:
        MarkedCheck.objects.filter(query=query, image=image_id).delete()
        return
    if image_id not in {decided for decided, _, _ in decided_images(query)}:
        raise Conflict("Decide the image first: a check needs a reviewer's answer.")
    MarkedCheck.objects.get_or_create(query=query, image_id=image_id, defaults={"marked_by": by})


def checks_mix(query: Query, annotator: Any) -> None:
    """Make checks for the person, images that a reviewer has decided and the person has never
    judged: one in GOLD_EVERY of what they are offered with the checks, among what isn't shown. A
    fraction is rounded by a hash, the same however often they come.
    """
    every = query.benchmark.setting("GOLD_EVERY")
    if not every:
        return
    queue = blind_queue(SECOND_OPINIONS, query, annotator)
    opinions: dict[str, Any] = {"query": query, "kind": SECOND_OPINIONS.name}
    given = BlindItem.objects.filter(**opinions, only_for=annotator).count()
    offered = len(queue.judged) + queue.left - given
    key = opinion_key_ensure(query=query)
    chance = draw_number(key, query.query_id, annotator.pk) / 2.0**64
    due = int(offered / max(every - 1, 1) + chance) - given
    hidden = waiting_for(annotator).filter(**opinions, displayed_at=None, only_for=None)
    if due > 0 and hidden.exists():
        answers = _checks_unseen(query, annotator)
        known_images_mix(SECOND_OPINIONS, query, annotator, answers=answers, count=due)


def _checks_unseen(query: Query, annotator: Any) -> dict[int, str]:
    """The answers of the images that can be checks for the person: they never judged them, and
    neither the guidelines show them nor are they theirs to judge otherwise.
    """
    opinions = query.blind_items.filter(kind=SECOND_OPINIONS.name)
    seen = {
        image_id
        for rows in (
            JudgmentEvent.objects.filter(query=query, annotator=annotator),
            QueryExample.objects.filter(query=query),
            opinions.filter(only_for=annotator),
            opinions.filter(only_for=None, displayed_at=None),
        )
        for image_id in rows.values_list("image", flat=True)
    }
    return {
        image_id: _label(relevant)
        for image_id, relevant, check in decided_images(query)
        if check and image_id not in seen
    }


def decided_images(query: Query) -> Iterator[tuple[int, bool, bool]]:
    """Each image that a reviewer has decided, with whether it is relevant, and whether it can be a
    check: votes differed, or a reviewer has marked it. By image id; without withdrawn images.
    """
    reviewed = Judgment.objects.filter(
        query=query, annotator__role__in=(Role.REVIEWER, Role.ADMIN)
    ).values("image")
    marked = set(MarkedCheck.objects.filter(query=query).values_list("image", flat=True))
    judgments = Judgment.objects.filter(~is_withdrawn("image_id"), query=query, image__in=reviewed)
    for (_, image_id), group in groupby(votes_of(judgments), key=itemgetter(0)):
        votes = [vote for _, vote in group]
        agreed = consensus(votes)
        if not agreed.unsure:
            disputed = len({vote.relevance for vote in votes}) > 1
            yield image_id, agreed.relevant, disputed or image_id in marked


def _label(relevant: bool) -> str:
    return Relevance.RELEVANT if relevant else Relevance.NOT_RELEVANT

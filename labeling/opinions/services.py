"""Choosing what gets a second opinion, and showing it to people who judge it."""

from __future__ import annotations

import secrets
from random import SystemRandom
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import Max

from core.access import Role, role_of
from core.errors import Conflict, Forbidden
from core.sql import fetch_all
from labeling.audits.draws import KEY_BYTES, draw_number
from labeling.audits.release_selectors import BlindQueue
from labeling.audits.release_services import PLACES, display_first
from labeling.audits.services import check_count
from labeling.candidates.models import Candidate
from labeling.candidates.services import lock_query
from labeling.judging.models import Judgment, JudgmentEvent, Relevance
from labeling.opinions.draws import FirstLabel, chosen
from labeling.opinions.models import MarkedCheck, Opinion, OpinionKey
from labeling.opinions.selectors import (
    decided_images,
    opinion_problem,
    opinion_queue,
    waiting_for,
)
from labeling.queries.categories import supercategory_of
from labeling.queries.models import Query, QueryExample
from retrieval.corpus.models import Image, ImageWithdrawal, Species

_RANDOM: Final = SystemRandom()
# What one annotator alone has judged and is sure of. A reviewer's judgment decides, so there is
# nothing that a second one could change.
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
 ORDER BY j.image_id
"""


def opinion_key_ensure(*, query: Query) -> bytes:
    """The query's key, made where it has none; the caller holds the query's lock."""
    made = {"key": secrets.token_bytes(KEY_BYTES)}
    return bytes(OpinionKey.objects.get_or_create(query=query, defaults=made)[0].key)


def opinions_draw(*, query: Query) -> None:
    """Choose the labels of a query that get a second opinion, when it is submitted; the caller
    holds its lock.

    Of what several people have judged there is more than one opinion already, and who is unsure has
    asked for a review. What was chosen stays so. A query that is reopened, labeled on and submitted
    again gets more by the same hash, but is given no second boundary.
    """
    setting = query.benchmark.setting
    shares = (setting("SECOND_OPINION_POSITIVE"), setting("SECOND_OPINION_NEGATIVE"))
    about_species = supercategory_of(query.category) == "Species"
    lookalike = setting("SECOND_OPINION_LOOKALIKE") if about_species else 0.0
    count = setting("SECOND_OPINION_BOUNDARY")
    if not (any(shares) or lookalike or count):
        return
    rows = fetch_all(_FIRST, {"query": query.pk, "list": query.current_list_id})
    before = Opinion.objects.filter(query=query, check_for=None)
    known = dict(before.values_list("image", "boundary"))
    people = {image_id: person for image_id, person, *_ in rows}
    relevant = {image_id: positive for image_id, _, positive, *_ in rows}
    found = chosen(
        [
            FirstLabel(image_id, positive, score, bool(alike))
            for image_id, _, positive, score, alike in rows
        ],
        key=opinion_key_ensure(query=query),
        query_id=query.query_id,
        positive=shares[0],
        negative=shares[1],
        lookalike=lookalike,
        boundary=0 if any(known.values()) else count,
    )
    Opinion.objects.bulk_create(
        Opinion(
            query=query,
            image_id=one.image_id,
            relevance=_label(relevant[one.image_id]),
            first_by_id=people[one.image_id],
            probability=one.probability,
            boundary=one.boundary,
            place=_RANDOM.randrange(PLACES),
        )
        for one in found
        if one.image_id not in known
    )


@transaction.atomic
def opinions_show(*, query: Query, annotator: Any, count: int) -> BlindQueue:
    """Display images to a person to judge, until `count` wait for them.

    Checks are mixed in: images that a reviewer has decided and this person has never judged. No
    field tells them from second opinions, and a judgment of either is stored like any other:
    where it differs, the image is disputed and waits for review. Reviewers get no checks, as their
    judgment decides. Raises QueryGone, Forbidden where the person may not judge, ValueError as
    `check_count`.
    """
    check_count(count)
    query = lock_query(query)
    if problem := opinion_problem(annotator, query):
        raise Forbidden(problem)
    _checks_mix(query, annotator)
    display_first(waiting_for(annotator).filter(query=query), count)
    return opinion_queue(query, annotator)


@transaction.atomic
def check_mark(*, query: Query, image_id: int, marked: bool, by: Any) -> None:
    """Mark an image that a reviewer has decided as a check, or end that; checks that people were
    given already stay. Raises QueryGone, and Conflict for an image that no reviewer has decided.
    """
    query = lock_query(query)
    if not marked:
        MarkedCheck.objects.filter(query=query, image=image_id).delete()
        return
    if image_id not in {one for one, _, _ in decided_images(query)}:
        raise Conflict("Decide the image first: a check needs a reviewer's answer.")
    MarkedCheck.objects.get_or_create(query=query, image_id=image_id, defaults={"marked_by": by})


def _checks_mix(query: Query, annotator: Any) -> None:
    """Make checks for the person, one in GOLD_EVERY of what they are offered with the checks,
    among what isn't shown; a fraction is rounded by a hash, the same however often they come.
    """
    every = query.benchmark.setting("GOLD_EVERY")
    if role_of(annotator) != Role.ANNOTATOR or not every:
        return
    queue = opinion_queue(query, annotator)
    checks = query.opinions.filter(check_for=annotator)
    given = checks.count()
    hidden = waiting_for(annotator).filter(query=query, displayed_at=None, check_for=None)
    offered = len(queue.judged) + queue.left - given
    key = opinion_key_ensure(query=query)
    chance = draw_number(key, query.query_id, annotator.pk) / 2.0**64
    due = int(offered / max(every - 1, 1) + chance) - given
    if due <= 0 or not hidden.exists():
        return
    answers = _checks_unseen(query, annotator)
    shown = query.opinions.exclude(displayed_at=None).aggregate(last=Max("place"))["last"]
    first = 0 if shown is None else shown + 1
    Opinion.objects.bulk_create(
        Opinion(
            query=query,
            image_id=image_id,
            relevance=_label(answers[image_id]),
            check_for=annotator,
            boundary=False,
            place=_RANDOM.randrange(first, PLACES + 1),
        )
        for image_id in _RANDOM.sample(sorted(answers), min(due, len(answers)))
    )


def _checks_unseen(query: Query, annotator: Any) -> dict[int, bool]:
    """Whether it is relevant of each image that can be a check for the person: they never judged
    it, and neither the guidelines show it nor is it theirs to judge otherwise.
    """
    seen = {
        *JudgmentEvent.objects.filter(query=query, annotator=annotator).values_list(
            "image", flat=True
        ),
        *QueryExample.objects.filter(query=query).values_list("image", flat=True),
        *query.opinions.filter(check_for=annotator).values_list("image", flat=True),
        *query.opinions.filter(check_for=None, displayed_at=None).values_list("image", flat=True),
    }
    return {
        image_id: relevant
        for image_id, relevant, check in decided_images(query)
        if check and image_id not in seen
    }


def _label(relevant: bool) -> str:
    return Relevance.RELEVANT if relevant else Relevance.NOT_RELEVANT

"""What is remembered of queries is what computing it anew would give."""

from __future__ import annotations

import random
from typing import Any

import pytest
from django.db import connection

from core.access import Role
from labeling.candidates.models import Candidate
from labeling.candidates.services import list_extend
from labeling.judging.models import Judgment
from labeling.judging.progress import activity_of, progress_of
from labeling.queries.models import Query
from labeling.review.figures import figures_of, tallies
from retrieval.corpus.models import Image
from retrieval.flags.services import image_restore, image_withdraw
from tests.labeling.conftest import FIRST_ID, make_images
from tests.labeling.judging import item, judge, record

pytestmark = pytest.mark.django_db


def fresh() -> list[Query]:
    return list(Query.objects.select_related("current_list").order_by("pk"))


def check(people: list[Any]) -> None:
    """Compare what is remembered with what the database says, for everybody and each."""
    queries = fresh()
    for annotator in (None, *people):
        found = figures_of(queries, annotator=annotator)
        progress = progress_of(queries, annotator=annotator)
        activity = activity_of(queries, annotator=annotator)
        assert {pk: one.progress for pk, one in found.items()} == progress
        assert {pk: one.activity for pk, one in found.items()} == activity
    standing = {
        (pair.query, pair.annotator): tally.labeled
        for pair, tally in tallies().items()
        if tally.labeled
    }
    assert sum(standing.values()) == Judgment.objects.count()
    for (query, annotator), labeled in standing.items():
        assert Judgment.objects.filter(query=query, annotator=annotator).count() == labeled


def test_whatever_happens_the_figures_are_right(
    toy_model, open_query, annotator, other_annotator, reviewer, admin, settings
):
    settings.CANDIDATE_DEPTH = 15
    settings.STOP_STREAK = 3
    images = make_images(30)
    queries = [open_query("a red toad"), open_query("a newt"), open_query("a green toad")]
    people = [annotator, other_annotator, reviewer]
    drawn = random.Random(3)
    check(people)
    for _ in range(30):
        query = drawn.choice(queries)
        person = drawn.choice(people)
        number = drawn.randrange(15)
        match drawn.randrange(7):
            case 0 | 1 | 2:
                said = drawn.choice(["relevant", "not_relevant", "unsure"])
                record(query, person, item(number, said))
            case 3:
                record(query, person, item(number, None))
            case 4:
                image = Image.objects.get(pk=FIRST_ID + number)
                if not image_restore(image=image, by=admin):
                    image_withdraw(image=image, by=admin)
            case 5:
                other_annotator.role = drawn.choice([Role.ANNOTATOR, Role.REVIEWER])
                other_annotator.save()
            case 6:
                current = Query.objects.get(pk=query.pk).current_list
                if current is not None and current.size < len(images):
                    list_extend(candidate_list=current, by_count=1)
        check(people)
    settings.STOP_STREAK = 1
    check(people)


def test_only_what_somebody_acted_on_is_computed_again(
    toy_model, open_query, annotator, other_annotator
):
    make_images(4)
    first, second = open_query("a red toad"), open_query("a newt")
    judge(first, annotator, [0, 1], "relevant")
    judge(second, annotator, [0], "relevant")
    computed: list[int] = []

    def note(run: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "vote AS" in sql:
            computed.extend(params["queries"])
        return run(sql, params, many, context)

    with connection.execute_wrapper(note):
        assert figures_of(fresh())[first.pk].progress.stop.judged == 2
        assert figures_of(fresh(), annotator=annotator)[first.pk].progress.stop.judged == 2
        assert computed == [first.pk, second.pk] * 2
        computed.clear()
        assert figures_of(fresh())[first.pk].progress.stop.judged == 2
        judge(first, other_annotator, [2], "relevant")
        assert figures_of(fresh())[first.pk].progress.stop.judged == 3
        assert computed == [first.pk]
        assert figures_of(fresh(), annotator=annotator)[first.pk].progress.stop.judged == 2
        assert computed == [first.pk]


def test_what_a_withdrawal_meanwhile_changed_is_not_kept_for_the_time_before(
    toy_model, open_query, annotator, admin
):
    make_images(4)
    query = open_query("a red toad")
    judge(query, annotator, [0, 1], "relevant")
    [candidate] = Candidate.objects.filter(list__query=query, rank=1).select_related("image")
    withdrawn: list[bool] = []

    def meanwhile(run: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "vote AS" in sql and not withdrawn:
            withdrawn.append(True)
            image_withdraw(image=candidate.image, by=admin)
        return run(sql, params, many, context)

    with connection.execute_wrapper(meanwhile):
        assert figures_of(fresh())[query.pk].progress.stop.judged == 1
    image_restore(image=candidate.image, by=admin)
    assert figures_of(fresh())[query.pk].progress.stop.judged == 2

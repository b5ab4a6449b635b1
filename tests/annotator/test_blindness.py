"""What an annotator can find out about the labels of a colleague while both label: nothing."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client

from core.access import Role
from labeling.judging.models import Judgment, JudgmentEvent
from labeling.queries.models import Query
from tests.annotator.addresses import body_of
from tests.annotator.world import IMAGES, World
from tests.conftest import api_of, client_of, person
from tests.labeling.conftest import FIRST_ID
from tests.labeling.judging import judge

pytestmark = pytest.mark.django_db

#: In place of each other.
EXCHANGED = {"relevant": "not_relevant", "not_relevant": "unsure", "unsure": "relevant"}


def exchange(colleague: Any) -> None:
    """Give the colleague's judgments other labels, as if they had been made so."""
    cases = " ".join(f"WHEN '{one}' THEN '{other}'" for one, other in EXCHANGED.items())
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")  # events refuse changes
        for model in (Judgment, JudgmentEvent):
            cursor.execute(
                f"UPDATE {model._meta.db_table} SET relevance = CASE relevance {cases} END"
                " WHERE annotator_id = %s",
                [colleague.pk],
            )
        cursor.execute("SET LOCAL session_replication_role = origin")


def answers(
    world: World, browser: Client, program: Client, query: Query
) -> dict[str, tuple[int, bytes]]:
    """Status and body of all that a person is answered who labels an open query."""
    base = f"api/queries/{query.pk}/"
    found = {}
    for address in (
        *world.addresses,
        *(f"{base}candidates/?limit=500", f"{base}changes/?since=0"),
        *(f"{base}similar/?image={FIRST_ID + n}" for n in range(IMAGES - 2)),
        *(f"{base}history/?image={FIRST_ID + n}" for n in range(IMAGES - 2)),
        f"queries/{query.pk}/label/?order=learned",
    ):
        if address.startswith(("admin/", "healthz", "metrics", "api/schema")):
            continue
        client = program if address.startswith("api/") else browser
        answer = client.get(f"/{address}")
        found[address] = (answer.status_code, body_of(answer))
    for path, body in (
        ("audit/draws/", {"count": 3}),
        ("second-opinions/draws/", {"count": 3}),
        ("release-audit/draws/", {"count": 3}),
        ("requested/draws/", {"count": 3}),
        ("revisions/", {}),
    ):
        answer = program.post(f"/{base}{path}", body, format="json")
        found[f"POST {path}"] = (answer.status_code, body_of(answer))
    return found


@pytest.mark.parametrize("rule", ["certificate:0.9", "streak"])
def test_labels_of_a_colleague_are_read_from_no_answer(world: World, rule: str) -> None:
    """In two worlds a colleague has labeled the same images otherwise."""
    query = world.queries["open"]
    Query.objects.filter(pk=query.pk).update(hand_in_rule=rule)
    annotator, reviewer = world.people["annotator"], world.people["reviewer"]
    colleague = person("colleague", Role.ANNOTATOR)
    judge(query, colleague, [0, 3, 6], "relevant")
    judge(query, colleague, [1, 7], "not_relevant")
    judge(query, colleague, [2, 8], "unsure")
    [drawn] = query.draws.order_by("pk").values_list("image_id", flat=True)[:1]
    judge(query, colleague, [drawn - FIRST_ID], "not_relevant")
    audit = f"/api/queries/{query.pk}/audit/"
    clients, of_reviewer = (client_of(annotator), api_of(annotator)), api_of(reviewer)
    answers(world, *clients, query)  # what is drawn and fitted once
    before = answers(world, *clients, query), body_of(of_reviewer.get(audit))
    exchange(colleague)
    after = answers(world, *clients, query), body_of(of_reviewer.get(audit))
    assert [one for one in before[0] if before[0][one] != after[0][one]] == []
    assert before[1] != after[1]
    assert sum(status == 200 for status, _ in before[0].values()) > 60
    assert before[0][audit[1:]][0] == before[0]["POST audit/draws/"][0] == 200

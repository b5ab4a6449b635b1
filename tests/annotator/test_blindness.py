"""What an annotator can find out about the labels of a colleague while both label: nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from drf_spectacular.generators import SchemaGenerator

from core.access import Role
from labeling.blind.items import blind_item
from labeling.judging.blind import REQUESTED, SECOND_OPINIONS
from labeling.judging.models import BlindItem, Judgment, JudgmentEvent
from labeling.judging.writer import JudgmentInput
from labeling.queries.models import Query
from tests.annotator.addresses import body_of, lasting, whole_body_of
from tests.annotator.world import IMAGES, World
from tests.conftest import api_of, client_of, person
from tests.labeling.conftest import FIRST_ID
from tests.labeling.judging import item, judge, record

pytestmark = pytest.mark.django_db

#: In place of each other.
EXCHANGED = {"relevant": "not_relevant", "not_relevant": "unsure", "unsure": "relevant"}
#: Of an answer, what differs from one to the next by itself or follows from its body.
PASSING_HEADERS = {
    "content-length",
    "content-security-policy",
    "expires",
    "set-cookie",
    "x-request-id",
}
_MOMENT = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")
_LINK = re.compile(rb'href="/([^"#]+)')
_OTHERS = ("admin/", "healthz", "metrics", "api/schema", "static/", "logout")


class Answer(NamedTuple):
    """What a person is told."""

    status: int
    body: bytes
    headers: dict[str, str]
    moments: list[bytes]
    """Those of the body since the colleague acted."""


class Asking:
    """A person who asks for all that they can open while they label an open query."""

    def __init__(self, world: World, user: Any, query: Query) -> None:
        self._browser, self._program = client_of(user), api_of(user)
        self._base = f"api/queries/{query.pk}/"
        base = self._base
        found = [
            *world.addresses,
            *(f"{base}candidates/?limit=500", f"{base}changes/?since=0"),
            *(f"{base}similar/?image={FIRST_ID + n}" for n in range(IMAGES - 2)),
            *(f"{base}history/?image={FIRST_ID + n}" for n in range(IMAGES - 2)),
            f"queries/{query.pk}/label/?order=learned",
        ]
        found += chosen(found)
        self._addresses = dict.fromkeys(one for one in found if not one.startswith(_OTHERS))
        # What is drawn and fitted once; what stays closed; and what pages link to.
        first = self.answers()
        links = [link for answer in first.values() for link in linked(answer.body)]
        opened = [one for one in self._addresses if first[one].status < 400]
        self._addresses = dict.fromkeys([*opened, *links])

    def answers(self, since: datetime | None = None) -> dict[str, Answer]:
        """The answers by address."""
        found = {}
        for address in self._addresses:
            client: Client = self._program if address.startswith("api/") else self._browser
            found[address] = answer_of(client.get(f"/{address}"), since)
        for path, body in (
            ("audit/draws/", {"count": 3}),
            ("second-opinions/draws/", {"count": 3}),
            ("release-audit/draws/", {"count": 3}),
            ("requested/draws/", {"count": 3}),
            ("revisions/", {}),
        ):
            answer = self._program.post(f"/{self._base}{path}", body, format="json")
            found[f"POST {path}"] = answer_of(answer, since)
        return found


def answer_of(answer: Any, since: datetime | None) -> Answer:
    body = whole_body_of(answer)
    moments = [] if since is None else [
        one for one in _MOMENT.findall(body) if datetime.fromisoformat(one.decode()) >= since
    ]  # fmt: skip
    headers = {name: value for name, value in answer.items() if name.lower() not in PASSING_HEADERS}
    return Answer(answer.status_code, lasting(body), headers, moments)


def chosen(addresses: list[str]) -> Iterator[str]:
    """Each address of the API with each value of each parameter that has a few."""
    paths = SchemaGenerator().get_schema(request=None, public=True)["paths"]
    for path, operations in paths.items():
        pattern = re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path.lstrip("/"))))
        given = operations.get("get", {}).get("parameters", [])
        for address in filter(pattern.fullmatch, addresses):
            for parameter in given:
                schema = parameter["schema"]
                values = schema.get("enum") or schema.get("items", {}).get("enum") or ()
                if parameter["in"] == "query":
                    yield from (f"{address}?{parameter['name']}={value}" for value in values)


def linked(body: bytes) -> Iterator[str]:
    """The addresses that a page links to."""
    for link in _LINK.findall(body):
        address = link.decode().replace("&amp;", "&")
        if not address.startswith((*_OTHERS, "images/")):
            yield address


def drawn_ones(query: Query) -> set[int]:
    """The toy images that audits drew."""
    return {image_id - FIRST_ID for image_id in query.draws.values_list("image_id", flat=True)}


def stored(query: Query, colleague: Any, *items: JudgmentInput) -> None:
    """Have the colleague judge; each must be stored."""
    outcomes = record(query, colleague, *items)
    assert {outcome.status for outcome in outcomes} == {"stored"}


def other_labels(query: Query, colleague: Any) -> None:
    """The same images labeled otherwise, as if that had been said at once."""
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


def more_labels(query: Query, colleague: Any) -> None:
    """Labels in the list and out of it, one of them changed and one taken back, and an opinion on a
    label of the annotator's own.
    """
    undrawn = set(range(5, 10)) - drawn_ones(query)
    assert undrawn
    stored(query, colleague, *(item(number, "relevant") for number in undrawn))
    stored(
        query,
        colleague,
        item(0, "unsure"),
        item(1, None),
        item(12, "relevant", source="search"),
        item(13, "unsure", source="similar"),
        item(4, "relevant", source="second"),
    )


def request_answered(query: Query, colleague: Any) -> None:
    """A label of an image that waits for anybody."""
    stored(query, colleague, item(14, "not_relevant", source="run"))


def draw_judged(query: Query, colleague: Any) -> None:
    """A label of an image that an audit drew."""
    judged = Judgment.objects.filter(query=query, image__gte=FIRST_ID)
    seen = {image_id - FIRST_ID for image_id in judged.values_list("image_id", flat=True)}
    waits = min(drawn_ones(query) - seen)
    stored(query, colleague, item(waits, "not_relevant", source="audit"))


def part_begun(query: Query, colleague: Any) -> None:
    """The first label of somebody else."""
    stored(query, person("newcomer", Role.ANNOTATOR), item(0, "relevant"))


Act = Callable[[Query, Any], None]
BLIND: dict[Act, dict[str, str]] = {other_labels: {}, more_labels: {}}
"""What a colleague does, and which addresses tell of it, with the reason."""
_QUEUE = "what waits for anybody waits until somebody has judged it"
_DRAWS = "what an audit drew waits until somebody has judged it"
_PART = "a query is submitted with the last part, so people know who has one"
SHARED: dict[Act, dict[str, str]] = {
    request_answered: {
        "": _QUEUE,
        "api/queries/2/requested/": _QUEUE,
        "POST requested/draws/": _QUEUE,
    },
    draw_judged: {"api/queries/2/audit/": _DRAWS, "POST audit/draws/": _DRAWS},
    part_begun: {"api/queries/2/": _PART, "queries/2/": _PART},
}


@pytest.mark.parametrize(
    ("rule", "acts"), [("certificate:0.9", BLIND), ("streak", BLIND | SHARED)], ids=["", "shared"]
)
def test_labels_of_a_colleague_are_read_from_no_answer(
    world: World, rule: str, acts: dict[Act, dict[str, str]]
) -> None:
    """Neither what a colleague says nor what, how much or when they judge, but for what is shared:
    a blind queue, an audit's draws, who takes part.
    """
    query = world.queries["open"]
    Query.objects.filter(pk=query.pk).update(hand_in_rule=rule)
    annotator, reviewer = world.people["annotator"], world.people["reviewer"]
    colleague = person("colleague", Role.ANNOTATOR)
    judge(query, colleague, [0, 3], "relevant")
    judge(query, colleague, [1], "not_relevant")
    judge(query, colleague, [2], "unsure")
    [drawn] = query.draws.order_by("pk").values_list("image_id", flat=True)[:1]
    judge(query, colleague, [drawn - FIRST_ID], "not_relevant")
    now = timezone.now()
    BlindItem.objects.bulk_create(
        [
            blind_item(kind, query=query, image_id=FIRST_ID + number, not_for=who, displayed_at=now)
            for kind, number, who in (
                (SECOND_OPINIONS, 4, annotator),
                (REQUESTED, 14, None),
                (REQUESTED, 15, None),
            )
        ]
    )
    audit = f"/api/queries/{query.pk}/audit/"
    asking, of_reviewer = Asking(world, annotator, query), api_of(reviewer)
    before, told_reviewer = asking.answers(), body_of(of_reviewer.get(audit))
    assert sum(answer.status == 200 for answer in before.values()) > 60
    assert before[audit[1:]].status == before["POST audit/draws/"].status == 200
    for act, known in acts.items():
        began = timezone.now()
        act(query, colleague)
        after = asking.answers(since=began)
        different = {one for one in before if before[one] != after[one]}
        assert (act.__name__, different) == (act.__name__, set(known))
        before = {one: answer._replace(moments=[]) for one, answer in after.items()}
    assert body_of(of_reviewer.get(audit)) != told_reviewer

"""Whatever people or their files have written, every page and API answer shows it, as text."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.db import connection, models
from django.db.models import F, Value
from django.db.models.functions import Cast, Concat

import extras
from labeling.guidance.models import HowToLabel
from labeling.lifecycle.services import query_update
from labeling.queries.models import Query
from retrieval.corpus.models import Species
from tests.annotator.addresses import body_of
from tests.annotator.world import World
from tests.conftest import api_of, client_of
from tests.labeling.conftest import FIRST_ID

pytestmark = pytest.mark.django_db

#: The most that there is room for in a column comes of the beginning.
HOSTILE = (
    "<b hostile>\"' hostile='</td></script><!--\u202e\x01\x1b\r=1+1{{x}}%s "
    "javascript:hostile() [a](http://[a:b]) ![b](http://[a:b]) <http://[::1> [c](javascript:x) "
    "http://[::1 [d]\n\n[d]: http://[a:b]\n\n# <b hostile>\n\n| a |\n|:-:|\n| `<b hostile>` |\n\n"
)
LONG = HOSTILE + "- " * 3000 + "\n\n" + ">" * 3000 + "\n\n" + "W" * 3000 + "\n\n" + "[" * 200
#: What only complete queries have.
IN_ONE_STATE = {"left_open": LONG, "completion_reason": LONG}
#: What programs write for programs. All other text is somebody's.
PROGRAMS = re.compile(
    r"annotator\.(User\.(password|time_zone|subject)|ApiToken\.digest|PasswordLink|WorkerHeartbeat|Backup\.file)"
    r"|core\.Job\.kind|retrieval\.(ImageRoot|EmbeddingModel|TextVector|WorkerMachine)"
    r"|retrieval\.Image\.(file_name|sha256|format)|retrieval\.ImageTakedown\.sha256"
    r"|labeling\.\w+\.(checksum|model_name|hand_in_rule)|evaluation\.ModelAnswer"
    r"|evaluation\.Run\.(sha256|link|code)|releases\.Release\.halves_secret|species_task\.SpeciesRun\.language"
    r"|reading\.(Reader\.(base_url|entry_point)|Reading|ReaderPick)"
)
APPS = ("annotator", "core", "retrieval", "labeling", "releases", "evaluation", *extras.NAMES)


class Unescaped(HTMLParser):
    """Finds the elements and attributes that a text, unescaped, makes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if "hostile" in name or (value or "").strip().startswith("javascript:"):
                self.found.append(f"<{tag} {name}={value!r}>")


def hostile_texts(model: type[models.Model]) -> dict[str, Any]:
    """What to write into the columns of a model that hold a text of somebody's own: with the row's
    id before it where no two may be the same.
    """
    together = {name for one in model._meta.constraints for name in getattr(one, "fields", ())}
    found: dict[str, Any] = {}
    for field in model._meta.concrete_fields:
        own = isinstance(field, models.CharField | models.TextField) and not field.choices
        if (
            not own
            or field.name in IN_ONE_STATE
            or PROGRAMS.match(f"{model._meta.label}.{field.name}")
        ):
            continue
        if field.unique or field.name in together:
            room = (field.max_length or 100) - 12
            found[field.name] = Concat(Cast(F("pk"), models.TextField()), Value(HOSTILE[:room]))
        else:
            found[field.name] = LONG[: field.max_length]
    return found


@pytest.fixture
def hostile(world: World) -> World:
    """One of everything, whose texts are hostile."""
    admin = world.people["admin"]
    query_update(query=world.queries["open"], by=admin, guidelines=LONG)
    HowToLabel.objects.create(text="", changed_by=admin)
    if "lookalikes" in settings.EXTRAS:
        from extras.lookalikes.models import DifferenceNote

        first, second = Species.objects.order_by("pk")[:2]
        DifferenceNote.objects.create(first=first, second=second, text="", written_by=admin)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")  # events refuse changes
        for model in apps.get_models():
            if model._meta.app_label in APPS and (written := hostile_texts(model)):
                model._base_manager.update(**written)
        Query.objects.filter(state="complete").update(**IN_ONE_STATE)
        cursor.execute("SET LOCAL session_replication_role = origin")
    return world


def test_every_answer_shows_hostile_texts_as_texts(hostile: World) -> None:
    query = hostile.queries["open"].pk
    more = [
        f"api/queries/{query}/candidates/?limit=20",
        f"api/queries/{query}/history/?image={FIRST_ID}",
    ]
    wrong, shown = [], set()
    for role in ("admin", "annotator"):  # who reads most, and who labels
        browser, program = client_of(hostile.people[role]), api_of(hostile.people[role])
        browser.raise_request_exception = program.raise_request_exception = False
        for address in (*hostile.addresses, *more):
            answer = (program if address.startswith("api/") else browser).get(f"/{address}")
            body = body_of(answer)
            if answer.status_code >= 500 and answer.status_code != 503:
                wrong.append(f"{role}: {address}: {answer.status_code}")
            kind = answer.headers.get("Content-Type", "")
            if kind.startswith(("text/html", "image/svg")):
                page = Unescaped()
                page.feed(body.decode())
                wrong += [f"{role}: {address}: {one}" for one in page.found]
            if b"&lt;b hostile&gt;" in body or b"<b hostile>" in body:
                shown.add(address)
    assert wrong == []
    assert len(shown) > 50

"""One of everything that addresses name, in the states that matter, with people of each role."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.apps import apps
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Group
from django.utils import timezone

from annotator.models import ApiToken, WorkerHeartbeat
from annotator.people.tokens import token_create
from core import storage
from core.access import Role
from core.jobs.models import Job, JobItemError
from core.jobs.services import job_create
from evaluation.runs.models import Run
from evaluation.runs.services import run_publish
from labeling.audits.services import audit_draw
from labeling.comments.services import comment_add
from labeling.lifecycle.examples import example_pin
from labeling.lifecycle.services import query_create, query_transition, query_update
from labeling.queries.models import Assignment, Query
from releases.making.services import release_claim, release_make
from releases.models import Release
from retrieval.browsing.models import SavedFilter
from retrieval.corpus.models import CustomField, Image, ImageRoot, Species
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.flags.models import ImageFlag
from retrieval.flags.services import image_flag_raise, image_withdraw
from retrieval.importing.services import import_images
from retrieval.takedown.services import image_take_down
from retrieval.uploads.services import upload_begin, upload_folder
from tests.annotator.addresses import filled, routes
from tests.conftest import person
from tests.evaluation.runs import scored_run, stored_run
from tests.labeling.conftest import FIRST_ID, embed, make_images, make_species, run_jobs
from tests.labeling.judging import judge
from tests.retrieval.making import coco, jpeg
from tests.toy_model import toy_model

#: Images of the toy corpus; those of the import come beside.
IMAGES = 20


@dataclass(frozen=True, slots=True)
class World:
    """People by role, and what there is."""

    people: dict[str, Any]
    image: Image
    """With a file."""
    flag: ImageFlag
    species: Species
    queries: dict[str, Query]
    """By state."""
    release: Release
    run: Run
    """Of the researcher, published and scored."""
    private_run: Run
    """Of the admin, stored and not scored."""
    job: Job
    simulation: Job | None
    """None without that extra."""
    species_run: int
    """0 without that extra."""
    reader: int
    """0 without that extra."""
    upload: str
    token: ApiToken
    """Of the admin."""
    model: str

    @property
    def parameters(self) -> dict[str, dict[str, object]]:
        """What stands for the parameters of addresses, by the part before them."""
        return {
            "images": {
                "pk": self.image.pk,
                "flag": self.flag.pk,
                "version": self.image.url.rpartition("/")[2].partition(".jpg")[0],
            },
            "species": {"pk": self.species.pk},
            "look-alikes": {
                "pk": self.species.pk,
                "other": Species.objects.exclude(pk=self.species.pk).earliest("pk").pk,
            },
            "import": {"upload": UUID(self.upload), "number": 0},
            "take-down": {"pk": self.image.pk},
            "custom-fields": {"pk": CustomField.objects.earliest("pk").pk},
            "queries": {"pk": self.queries["open"].pk, "image": FIRST_ID},
            "benchmarks": {"pk": self.queries["open"].benchmark_id},
            "releases": {
                "pk": self.release.pk,
                "name": "inquire_queries_val.csv",
                "extension": "csv",
                "run_id": 1,
            },
            "runs": {"pk": self.run.pk, "query_id": 3},
            "jobs": {"pk": self.job.pk},
            "simulations": {"pk": self.simulation.pk if self.simulation else 0},
            "leaderboard": {"pk": self.species_run},
            "readers": {"pk": self.reader},
            "account": {"pk": self.token.pk},
            "people": {"pk": self.people["annotator"].pk},
            "filters": {"pk": SavedFilter.objects.get().pk},
            "first-admin": {"token": "abcdef12"},
            "password": {"uidb64": "MQ", "token": "abcdef12"},
        }

    @property
    def addresses(self) -> list[str]:
        """The address of each route, of something that is there, and of a thumbnail."""
        found = [self.image.thumbnail_url[1:].partition("?")[0]]
        for route in routes():
            # Whatever else is asked of the admin site, and pages that no model of ours has.
            if route in {"admin/{url}", "admin/r/{content_type_id}/{object_id}/"}:
                continue
            part, *rest = route.removeprefix("api/").split("/")
            if part == "admin":
                found.append(filled(route, partial(_of_admin, rest)))
            else:
                values = self.parameters.get(part, {})
                for page, state in (
                    ("second-opinions", "submitted"),
                    ("more-images", "submitted"),
                    ("boxes", "complete"),
                ):
                    if page in rest:
                        values["pk"] = self.queries[state].pk
                found.append(filled(route, values.__getitem__))
        return found


def _of_admin(route: list[str], name: str) -> object:
    """What stands for a parameter of an address of Django's admin site."""
    if name == "app_label":
        return "retrieval"
    model = apps.get_model(*route[:2])
    return quote(model._default_manager.order_by("pk").values_list("pk", flat=True)[0])


def make_world(settings: Any, folder: Path) -> World:
    """Fill an empty database; files lie below `folder`."""
    settings.VAR_DIR = folder / "var"
    settings.EMBEDDING_MODEL = toy_model()
    settings.RELEASE_AUDIT_SHARE = 0.5
    embedding_model_get_or_create(name=settings.EMBEDDING_MODEL)
    people = {role.value: person(f"the-{role.value}", role) for role in Role}
    admin, annotator = people[Role.ADMIN], people[Role.ANNOTATOR]
    (folder / "data").mkdir()
    SavedFilter.objects.create(owner=admin, name="none", address="species=none")
    import_images(path=coco(folder / "data"))
    real = list(Image.objects.order_by("pk"))
    embed(real, scores=[0.1] * len(real))
    species = make_species("Bufo bufo")
    make_images(IMAGES, species=species)
    CustomField.objects.create(name="habitat", kind="text", shown_to_annotators=True)
    CustomField.objects.create(name="released", kind="text", in_releases=True)
    CustomField.objects.create(name="hidden", kind="text")
    Image.objects.filter(pk__in=[real[0].pk, FIRST_ID]).update(
        custom_fields={
            "habitat": "biotope-shown",
            "released": "biotope-released",
            "hidden": "biotope-hidden",
        }
    )

    def query(number: int, text: str, split: str, *path: str) -> Query:
        made = query_create(
            text=text, category="Species ID", split=split, query_id=number, created_by=admin
        )
        for state in ("open", *path) if path != ("draft",) else ():
            made = query_transition(query=made, to_state=state, by=admin, note="for the test")
            run_jobs()
            if state == "open":
                judge(made, annotator, range(5), "relevant" if number % 2 else "unsure")
        made.refresh_from_db()
        return made

    queries = {
        "draft": query(1, "a draft", "val", "draft"),
        "open": query(2, "an open query", "test"),
        "complete": query(3, "a toad at night", "test", "complete"),
        "submitted": query(5, "a toad that leaps", "val", "submitted"),
    }
    query_update(query=queries["complete"], by=admin, guidelines="One that sits still.")
    if "boxes" in settings.EXTRAS:
        from extras.boxes.services import boxes_ask

        boxes_ask(query=queries["complete"], images="all", by=admin)
    query(7, "a toad by day", "val", "complete")
    audit_draw(query=queries["open"], annotator=annotator, count=2)
    example_pin(query=queries["open"], image_id=FIRST_ID, relevant=True, by=admin)
    comment_add(
        query=queries["open"], image_id=None, author=annotator, text="odd", client_id=uuid4()
    )
    if "duplicates" in settings.EXTRAS:
        from extras.duplicates.models import DuplicateGroup
        from extras.duplicates.services import group_decide

        alike = DuplicateGroup.objects.create(kind="copy")
        alike.images.set(real[:2])
        group_decide(group=alike, decision="kept", by=people[Role.REVIEWER])
    flag, _new = image_flag_raise(image=real[0], kind="duplicate", note="odd", by=annotator)
    image_withdraw(image=Image(pk=FIRST_ID + IMAGES - 1), by=admin, note="a person")
    image_take_down(image=Image(pk=FIRST_ID + IMAGES - 2), by=admin, reason="a person")
    release = release_make(
        release=release_claim(name="Toads", created_by=admin, options={"rerank_model": ""})
    )
    order = {number: [FIRST_ID + n for n in range(10)] for number in (3, 7)}
    run = scored_run(release, order, owner=people[Role.RESEARCHER], name="ours")
    run_publish(run=run)
    private = stored_run(release, order, owner=admin, name="not yet")
    simulation = None
    if "simulation" in settings.EXTRAS:
        from extras.simulation.report import Plan
        from extras.simulation.services import simulation_begin

        plan = Plan(orders=("frozen",), stops=("exhausted",), seeds=1)
        simulation = simulation_begin(query=queries["complete"], plan=plan, created_by=admin)
    species_run = 0
    if "species_task" in settings.EXTRAS:
        from extras.species_task.services import species_run_begin

        model = embedding_model_get_or_create(name=settings.EMBEDDING_MODEL)
        species_run = species_run_begin(
            model=model, scope="all", naming="sci", training_images={"Bufo bufo": 20}
        ).pk
    reader = 0
    if "reading" in settings.EXTRAS:
        from extras.reading.models import Reader

        reader = Reader.objects.create(
            name="a reader", base_url="http://127.0.0.1:9/v1", model="a/model",
            prompt="{query}?", max_side=64,
        ).pk  # fmt: skip
    run_jobs()
    job = job_create(kind="embed", params={"model": settings.EMBEDDING_MODEL}, created_by=admin)
    Assignment.objects.create(
        query=queries["complete"], annotator=annotator, handed_in_at=timezone.now()
    )
    JobItemError.objects.create(job=job, item="a", message="odd")
    ImageRoot.objects.create(location="/images")
    Group.objects.create(name="a class")
    WorkerHeartbeat.objects.create(worker="worker:1")
    AccessAttempt.objects.create(username="nobody", failures_since_start=1)
    AccessLog.objects.create(username="nobody")
    AccessFailureLog.objects.create(username="nobody")
    upload = upload_begin(by=admin)
    with storage.writing(upload_folder(upload, admin) / "thumbnails" / "0.jpg") as file:
        file.write(jpeg("red", (60, 40)))
    token, _text = token_create(user=admin, name="script", days=30)
    return World(
        people,
        real[0],
        flag,
        species,
        queries,
        release,
        run,
        private,
        job,
        simulation,
        species_run,
        reader,
        upload,
        token,
        settings.EMBEDDING_MODEL,
    )

"""The photographs as a Darwin Core archive: curated, fetched, imported, screened, compared with
look-alikes, boxed, and released.
"""

from __future__ import annotations

import csv
import json
import threading
import uuid
from collections.abc import Collection, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from pycocotools.coco import COCO

from benchmark.nature.figures import nature_of
from benchmark.releases.services import release_export
from labeling.boxes.services import boxes_save
from labeling.judging.services import JudgmentInput, judgments_record
from labeling.lifecycle.screening import finds, finds_withdraw, verification_create
from labeling.lifecycle.services import query_create, query_transition
from labeling.queries.models import Query
from retrieval.corpus.models import Image, Species
from retrieval.embedding.services import embedding_job_create
from retrieval.lookalikes.selectors import group_pairs
from retrieval.lookalikes.services import confusions_import
from tests.conftest import client_of
from tests.curation.archives import of_photographs
from tests.labeling.conftest import run_jobs

pytestmark = pytest.mark.django_db


@pytest.fixture
def address(shared_dir: Path) -> Iterator[str]:
    """Where a web server has the photographs."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(shared_dir / "photos"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture
def corpus(shared_dir: Path, tmp_path: Path, address: str, settings: Any) -> dict[str, Any]:
    """The content of `train.json` after the import of what was curated."""
    settings.VAR_DIR = tmp_path / "var"
    photos = shared_dir / "photos" / "train.json"
    of_photographs(photos, tmp_path / "archive", address, observed=True)
    path = tmp_path / "corpus.toml"
    path.write_text(
        '[[sources]]\nkind = "gbif-archive"\npath = "archive"\n'
        "[filters]\nplace = true\nyears = [2022, 2022]\nleast = { observations = 2 }\n"
    )
    folder = tmp_path / "corpus"
    call_command("curate", "run", path, folder)
    call_command("curate", "fetch", folder, per_second=500, verbosity=0)
    call_command("import_images", folder / "train.json", verbosity=0)
    content: dict[str, Any] = json.loads((folder / "train.json").read_text())
    return content


def complete(query: Query, answers: dict[int, tuple[str, int | None]], people: Any) -> Query:
    """Open a query, judge all of its candidates, and complete it."""
    annotator, admin = people
    query_transition(query=query, to_state="open", by=admin)
    run_jobs()
    items = [
        JudgmentInput(image_id=pk, relevance=relevance, grade=grade, client_id=uuid.uuid4())
        for pk, (relevance, grade) in answers.items()
    ]
    recorded = judgments_record(query=query, annotator=annotator, items=items)
    assert [one.status for one in recorded.outcomes] == ["stored"] * len(items)
    query_transition(query=query, to_state="submitted", by=annotator)
    return query_transition(query=query, to_state="complete", by=admin, note="seen")


def ids_of(species: Collection[Species]) -> list[int]:
    images = Image.objects.filter(species__in=species, withdrawals=None).order_by("pk")
    return list(images.values_list("pk", flat=True))


def test_photographs_go_from_an_archive_into_a_release(
    corpus: dict[str, Any], demo_encoder: str, annotator: Any, admin: Any, tmp_path: Path
) -> None:
    assert Species.objects.count() == len(corpus["categories"]) == 17
    assert Image.objects.count() == len(corpus["images"]) == 42
    image, given = Image.objects.order_by("id")[0], corpus["images"][0]
    assert (image.latitude, image.longitude) == (given["latitude"], given["longitude"])
    assert (image.observer, image.elevation) == (given["observer"], 12.0)
    assert given["observer"].startswith("name-")
    assert not image.coordinates_obscured
    assert max(image.width, image.height) <= 500
    assert image.species is not None
    assert image.species.kingdom == "Animalia"
    embedding_job_create(created_by=admin)
    run_jobs()

    # Two species are taken for each other, by a table.
    one, other = Species.objects.order_by("scientific_name")[:2]
    table = f"species,taken_for,count\n{one},{other},3\n{other},{one},1\n"
    report = confusions_import(lines=table.encode().splitlines(keepends=True), name="table.csv")
    assert (report.pairs, report.grouped, report.unknown) == (2, 2, [])
    pair = list(Species.objects.filter(lookalike_group=str(one)).order_by("pk"))
    [between] = group_pairs(pair)
    assert {between.taken, between.back} == {3, 1}
    page = client_of(annotator).get(f"/look-alikes/{one.pk}/{other.pk}/").content.decode()
    assert 'class="world-map"' in page
    assert 'class="month-bars"' in page

    # One image of the first turns out to show a trace alone, and leaves.
    trace, *rest = ids_of([one])
    screening = verification_create(species=[one], by=admin).queries.get()
    answers = {trace: ("relevant", 2), **dict.fromkeys(rest, ("not_relevant", 0))}
    query = complete(screening, answers, (annotator, admin))
    assert finds(query) == {2: [trace]}
    assert finds_withdraw(query=query, grades=[2], reason="a trace", by=admin) == 1

    # What is left of both is labeled, boxed and released.
    left = ids_of(pair)
    assert len(left) == len(rest) + len(ids_of([other]))
    relevant = left[: len(left) // 2 + 1]
    query = query_create(
        text="an animal seen from the side", category="Species ID", split="val", boxes="animals",
        species=pair, created_by=admin,
    )  # fmt: skip
    answers = {pk: ("relevant" if pk in relevant else "not_relevant", None) for pk in left}
    query = complete(query, answers, (annotator, admin))
    found = nature_of(query)
    assert (found.relevant, found.images) == (len(relevant), len(left))
    assert sum(cell[2] for cell in found.cells) == len(relevant)
    for pk in relevant:
        box = {"bbox": [1.0, 2.0, 30.0, 40.0], "group": False}
        boxes_save(
            query=query, image_id=pk, boxes=[box], annotator=annotator, client_id=uuid.uuid4()
        )
    release_export(name="v1", directory=tmp_path / "out", new=True)
    truth = COCO(str(next((tmp_path / "out").rglob("boxes.json"))))
    assert sorted(truth.getImgIds()) == relevant
    assert [one["name"] for one in truth.dataset["categories"]] == [query.text]
    with next((tmp_path / "out").rglob("nature.csv")).open(newline="") as file:
        nature = [row for row in csv.DictReader(file) if row["what"] == "species"]
    assert {row["value"]: int(row["judged"]) for row in nature} == {
        str(species): len(ids_of([species])) for species in pair
    }
    annotations = next((tmp_path / "out").rglob("inquire_annotations.csv")).read_text()
    assert str(trace) not in {line.split(",")[1] for line in annotations.splitlines()}

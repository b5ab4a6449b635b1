"""The photographs as a Darwin Core archive: curated, fetched, imported, labeled and released."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from pycocotools.coco import COCO

from releases.making.services import release_export
from retrieval.corpus.models import Image, Species
from tests.curation.archives import of_photographs
from tests.releases.conftest import judge_maker
from tests.releases.toy import make_query

pytestmark = pytest.mark.django_db


@pytest.fixture
def address(shared_dir: Path) -> Iterator[str]:
    """Where a web server has the photographs."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(shared_dir / "photos"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_photographs_go_from_an_archive_into_a_release(
    shared_dir: Path, tmp_path: Path, address: str, var_dir: Path, annotator: Any
) -> None:
    photos = shared_dir / "photos" / "train.json"
    of_photographs(photos, tmp_path / "archive", address, observed=True)
    path, folder = tmp_path / "corpus.toml", tmp_path / "corpus"
    path.write_text(
        '[[sources]]\nkind = "gbif-archive"\npath = "archive"\n'
        "[filters]\nplace = true\nyears = [2022, 2022]\nleast = { observations = 2 }\n"
    )
    call_command("curate", "run", path, folder)
    call_command("curate", "fetch", folder, per_second=500, verbosity=0)
    call_command("import_images", folder / "train.json", verbosity=0)
    corpus: dict[str, Any] = json.loads((folder / "train.json").read_text())
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

    judge = judge_maker()
    query = make_query(30, "an animal seen from the side", split="val")
    for pk in Image.objects.values_list("pk", flat=True):
        judge(query, pk, annotator, "relevant" if pk % 2 else "not_relevant")
    release = release_export(
        name="v1", directory=tmp_path / "out", new=True, options={"include_images": True}
    )
    assert release.positives == sum(pk % 2 for pk in Image.objects.values_list("pk", flat=True))
    truth = COCO(str(tmp_path / "out/coco/images.json"))
    species = {one["name"] for one in truth.loadCats(truth.getCatIds())}
    assert species == {one["name"] for one in corpus["categories"]}
    [shown] = truth.loadImgs([image.pk])
    assert (shown["latitude"], shown["longitude"]) == (image.latitude, image.longitude)

"""Imports that are killed, and imports beside each other."""

import os
import subprocess
import sys
import threading

import pytest
from django.conf import settings
from django.db import connection

from bench.loading_file import category_of, write_coco
from retrieval.corpus.models import CorpusCount, Image, ImageRoot, SpeciesCount
from retrieval.importing import services as importing
from retrieval.importing.services import import_images
from tests.processes import ROOT, database_url, killed, wait_for
from tests.retrieval.making import coco, coco_image, jpeg

pytestmark = pytest.mark.django_db(transaction=True)

SPECIES = 40
_IN_SMALL_BATCHES = """
import sys, django
django.setup()
from retrieval.corpus.models import ImageRoot
from retrieval.importing import services as importing
importing.BATCH_IN_PLACE = 1000
root = ImageRoot.objects.get()
importing.import_images(path=sys.argv[1], dataset="many", root=root)
"""


def start(*command):
    return subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "annotator.settings",
            "VAR_DIR": str(settings.VAR_DIR),
            "DATABASE_URL": database_url(connection.settings_dict),
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def kill_when_begun(process, at_least=1):
    """SIGKILL once images are there; returns how many are, and that it wasn't done."""
    wait_for(lambda: Image.objects.count() >= at_least, seconds=120, what="images", pause=0.002)
    killed(process)
    return Image.objects.count()


def check_all(total):
    """Every image is there once, under its id and with its species, and is counted."""
    rows = Image.objects.order_by("pk").values_list("pk", "source_id", "species__specific_epithet")
    assert list(rows) == [(n, str(n), f"species{category_of(n, SPECIES)}") for n in range(total)]
    assert CorpusCount.objects.get().images == total
    assert sum(SpeciesCount.objects.values_list("images", flat=True)) == total


def test_killed_in_place_and_run_again(tmp_path):
    total = 15_000
    path = tmp_path / "train.json"
    write_coco(path, images=total, species=SPECIES)
    root = ImageRoot.objects.create(location="s3://bucket/made-up")
    begun = kill_when_begun(start("-c", _IN_SMALL_BATCHES, str(path)))
    assert 0 < begun < total
    assert begun % 1000 == 0
    moments = dict(Image.objects.values_list("pk", "created_at"))
    # Killed once more on its way, in the part that is new then.
    again = kill_when_begun(start("-c", _IN_SMALL_BATCHES, str(path)), at_least=begun + 1)
    assert begun < again < total
    report = import_images(path=path, dataset="many", root=root)
    assert (report.added, report.updated, report.skipped, report.refused_count) == (
        total - again,
        0,
        again,
        0,
    )
    check_all(total)
    assert moments.items() <= dict(Image.objects.values_list("pk", "created_at")).items()


def test_killed_while_files_are_copied_and_run_again(tmp_path, settings):
    settings.VAR_DIR = tmp_path / "var"
    total = 3000
    (tmp_path / "data").mkdir()
    images = [coco_image(n, file_name=f"train/{1 + n % 3}.jpg") for n in range(total)]
    path = coco(tmp_path / "data", images=images)
    begun = kill_when_begun(start("manage.py", "import_images", str(path)))
    assert 0 < begun < total
    assert begun % 200 == 0
    report = import_images(path=path)
    assert (report.added, report.updated, report.skipped) == (total - begun, 0, begun)
    ids = Image.objects.order_by("pk").values_list("pk", "source_id")
    assert list(ids) == [(n, str(n)) for n in range(total)]
    assert len(set(Image.objects.values_list("sha256", flat=True))) == 3


def test_imports_in_place_beside_each_other_add_each_image_once(tmp_path, monkeypatch):
    monkeypatch.setattr(importing, "BATCH_IN_PLACE", 1000)
    total = 6000
    path = tmp_path / "train.json"
    write_coco(path, images=total, species=SPECIES)
    root = ImageRoot.objects.create(location="s3://bucket/made-up")
    reports = []

    def bring():
        reports.append(import_images(path=path, dataset="many", root=root))
        connection.close()

    threads = [threading.Thread(target=bring) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(report.added for report in reports) == total
    assert sum(report.skipped for report in reports) == 2 * total
    check_all(total)


def test_a_changed_file_is_noticed_while_the_next_ones_are_read(tmp_path, settings):
    """Files are read ahead of the database: each image gets the content of its own file."""
    settings.VAR_DIR = tmp_path / "var"
    data = tmp_path / "data"
    (data / "train").mkdir(parents=True)
    sides = [(10 + n % 50, 10 + n // 50) for n in range(450)]
    for number, size in enumerate(sides):
        (data / f"train/{number}.jpg").write_bytes(jpeg("red", size=size))
    images = [coco_image(n, file_name=f"train/{n}.jpg") for n in range(450)]
    path = coco(data, images=images, annotations=[])
    assert import_images(path=path).added == 450
    rows = Image.objects.order_by("pk").values_list("pk", "width", "height")
    assert list(rows) == [(n, *size) for n, size in enumerate(sides)]
    (data / "train/222.jpg").write_bytes(jpeg("blue", size=(99, 98)))
    report = import_images(path=path)
    assert (report.added, report.updated, report.skipped) == (0, 1, 449)
    assert Image.objects.get(pk=222).width == 99

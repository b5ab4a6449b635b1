"""Imports beside each other, and files that are read ahead of the database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.rows import category_of, write_coco
from retrieval.corpus.models import CorpusCount, Image, ImageRoot, SpeciesCount
from retrieval.importing import services as importing
from retrieval.importing.services import import_images
from tests.retrieval.making import coco, coco_image, jpeg
from tests.threads import at_once


@pytest.mark.django_db(transaction=True)
def test_imports_in_place_beside_each_other_add_each_image_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "BATCH_IN_PLACE", 100)
    total, species = 800, 10
    path = tmp_path / "train.json"
    write_coco(path, images=total, species=species)
    root = ImageRoot.objects.create(location="s3://bucket/made-up")
    reports = at_once(*[lambda: import_images(path=path, dataset="many", root=root)] * 3)
    assert sum(report.added for report in reports) == total
    assert sum(report.skipped for report in reports) == 2 * total
    rows = Image.objects.order_by("pk").values_list("pk", "source_id", "species__specific_epithet")
    assert list(rows) == [(n, str(n), f"species{category_of(n, species)}") for n in range(total)]
    assert CorpusCount.objects.get().images == total
    assert sum(SpeciesCount.objects.values_list("images", flat=True)) == total


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("store")
def test_imports_of_files_beside_each_other_add_each_image_once(tmp_path: Path) -> None:
    images = [coco_image(n, file_name=f"train/{1 + n % 3}.jpg") for n in range(1, 31)]
    path = coco(tmp_path, images=images, annotations=[])
    reports = at_once(*[lambda: import_images(path=path)] * 3)
    assert sum(report.added for report in reports) == Image.objects.count() == 30
    assert sum(report.skipped for report in reports) == 60


@pytest.mark.django_db
@pytest.mark.usefixtures("store")
def test_each_image_gets_the_content_of_its_own_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retrieval.importing.files.BATCH", 10)
    (tmp_path / "train").mkdir()
    sides = [(10 + n % 50, 10 + n // 50) for n in range(90)]
    for number, size in enumerate(sides):
        (tmp_path / f"train/{number}.jpg").write_bytes(jpeg("red", size=size))
    images: list[Any] = [coco_image(n, file_name=f"train/{n}.jpg") for n in range(90)]
    path = coco(tmp_path, images=images, annotations=[])
    assert import_images(path=path).added == 90
    rows = Image.objects.order_by("pk").values_list("pk", "width", "height")
    assert list(rows) == [(n, *size) for n, size in enumerate(sides)]
    (tmp_path / "train/44.jpg").write_bytes(jpeg("blue", size=(99, 98)))
    report = import_images(path=path)
    assert (report.added, report.updated, report.skipped) == (0, 1, 89)
    assert Image.objects.get(pk=44).width == 99

"""A release of ours comes back whole: each file is the same, or the docs say why it can't be."""

from __future__ import annotations

import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from labeling.queries.models import Query
from releases.importing.services import benchmark_import
from releases.making import fixed_lists, take_snapshot
from releases.making.services import release_export, release_verify
from releases.models import Release
from releases.snapshot.snapshot import Snapshot
from retrieval.corpus.models import Image
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.models import Embedding
from retrieval.takedown.services import image_take_down
from tests.labeling.conftest import make_species
from tests.labeling.judging import item, judge, record
from tests.releases.conftest import World
from tests.releases.test_certificates import FIRST_ID, IMAGES, audited, completed, drawn
from tests.releases.test_model_ranks import pool
from tests.releases.test_verify_release import run
from tests.releases.toy import WIDTH
from tests.retrieval.making import new_image

pytestmark = pytest.mark.django_db

NO = "not_relevant"
DOCS = Path(settings.BASE_DIR) / "docs/releases.md"


@pytest.fixture
def files(
    world: World, other_annotator: Any, tiny_model: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:  # fmt: skip
    """The files of a release with hidden test labels: audited queries of both splits, one with a
    species filter and one with a list of two models, votes that differ and unsure ones."""
    monkeypatch.setattr(fixed_lists, "FIXED_DEPTH", 6)
    # Another moment than that of any import.
    monkeypatch.setattr(take_snapshot, "_now", lambda: datetime(2026, 5, 1, tzinfo=UTC))
    annotator, reviewer = world.person("annotator"), world.person("reviewer")
    stork = make_species("Ciconia ciconia", family="Ciconiidae")
    Image.objects.bulk_create(
        new_image(
            n, id=FIRST_ID + n, file_name=f"toy/{n}.jpg", species=stork, license="CC BY 4.0",
            rights_holder=f"Person {n}", latitude=n / 7, longitude=1.5,
        )
        for n in range(IMAGES)
    )  # fmt: skip
    model = embedding_model_get_or_create(name=tiny_model)
    vectors = np.random.default_rng(5).normal(size=(IMAGES, WIDTH))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    Embedding.objects.bulk_create(
        Embedding(model=model, image_id=FIRST_ID + n, vector=vector.tolist(),
                  created_at=timezone.now())
        for n, vector in enumerate(vectors)
    )  # fmt: skip
    val, test, unfit = (
        audited(7, annotator, split="val", guidelines="Two legs."),
        audited(9, annotator),
        audited(11, annotator),
    )
    drawn(val, annotator, NO, "relevant", "unsure")
    drawn(test, annotator, NO, NO)
    for query in (val, test):
        [listed] = fixed_lists.fixed_lists(model, [(query.query_id, query.text)])
        judge(query, annotator, [listed[0].image_id - FIRST_ID], "relevant")
    # Its fixed list has nothing relevant, so that the snapshot alone tells of it.
    judge(unfit, annotator, range(2), NO)
    unfit.species.add(stork)
    judge(val, other_annotator, [1, 3], NO)
    record(test, reviewer, item(3, "unsure", seconds=1.23456), item(4, "unsure"))
    images = [FIRST_ID + n for n in range(IMAGES)]
    pool(test, {"toy": images, "tiny": images[::-1]})
    for query in (val, test, unfit):
        completed(query, annotator)
    Query.objects.filter(pk=val.pk).update(
        grades="partly", left_open="1 image is unsure.", completion_reason="Late."
    )
    options = {"rerank_model": tiny_model}
    release_export(name="Birds", directory=tmp_path / "out", new=True, options=options)
    return tmp_path / "out"


def forget(folder: Path) -> None:
    """Empty the database, and the folder of the releases."""
    tables = [one._meta.db_table for one in (Release, Query, Image)]
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(f"TRUNCATE {', '.join(tables)} CASCADE")
    shutil.rmtree(folder / "var/releases")


def different_files() -> set[str]:
    """Those that the docs tell of."""
    section = DOCS.read_text(encoding="utf-8").partition("## Import a benchmark")[2]
    rows = re.findall(r"^\| (`.+`) \| .+ \|$", section, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def test_every_file_is_the_same_but_those_of_which_the_docs_say_why(
    files: Path, world: World, tmp_path: Path
) -> None:
    csv_lists = [*(files / "inquire_rerank").glob("*.csv")]
    named = {one.image_id for one in Snapshot(files / "snapshot").pairs()}
    listed = "".join(path.read_text() for path in csv_lists)
    others = {one.image_id for one in Snapshot(files / "snapshot").images()} - named
    assert any(str(one) not in listed for one in others)
    forget(world.folder)
    release = benchmark_import(directory=files, name="Birds").release
    again = tmp_path / "again"
    release_export(name="Birds", directory=again)
    assert release_verify(release=release) == []
    there, here = (
        {path.relative_to(one).as_posix(): path.read_bytes()
         for path in one.rglob("*") if path.is_file()}
        for one in (files, again)
    )  # fmt: skip
    differing = {name for name in there.keys() | here.keys() if there.get(name) != here.get(name)}
    assert differing == different_files()
    assert run("verify_certificates", str(again))[0] == 0


def test_changed_files_are_read_themselves_and_what_was_taken_down_stays_away(
    files: Path, world: World
) -> None:
    gone = Image.objects.get(pk=FIRST_ID)
    image_take_down(image=gone, reason="A face", by=world.person("admin"))
    release = benchmark_import(directory=files, name="Birds again").release
    snapshot = Snapshot(release.snapshot_directory)
    first, second, *_ = snapshot.images()
    assert (first.image_id, first.rights_holder, first.latitude) == (FIRST_ID, "", None)
    assert second.rights_holder == "Person 1"
    assert any(snapshot.model_ranks())
    path = files / "judgments.csv"
    path.write_text(path.read_text().replace(",1.235,", ",2.000,"))
    release = benchmark_import(directory=files, name="Changed").release
    snapshot = Snapshot(release.snapshot_directory)
    assert 2 in {one.seconds for one in snapshot.judgments()}
    assert not any(snapshot.model_ranks())

"""A matrix is packed, brought up to date, and packed anew when it must be."""

from collections import namedtuple
from io import StringIO

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.models import Embedding
from retrieval.ranking import building
from retrieval.ranking.building import MatrixRefused, pack
from retrieval.ranking.files import (
    LOCK,
    MANIFEST,
    Manifest,
    folder_of,
    open_matrix,
    sole_writer,
)
from retrieval.ranking.selectors import half_rounded, ranking_method
from tests.retrieval.making import random_vectors
from tests.retrieval.matrices import embed, images, same_as_scan

pytestmark = pytest.mark.django_db

VECTORS = random_vectors(1000, 20)
QUERY = half_rounded(random_vectors(1, 20, seed=5)[0])


@pytest.fixture
def model(db, settings, tmp_path):
    """A model without embeddings, a thousand images, and an empty state folder."""
    settings.VAR_DIR = tmp_path
    images(range(1000))
    return embedding_model_get_or_create(name="m", dimension=20)


@pytest.fixture
def small_chunks(monkeypatch):
    """256 rows are read at once."""
    monkeypatch.setattr(building, "CHUNK_BYTES", 1)


def files(model):
    return sorted(path.name for path in folder_of(model).iterdir())


def test_the_files_hold_what_the_database_holds(model, small_chunks):
    chosen = np.random.default_rng(2).permutation(1000)[:700]
    embed(model, chosen, VECTORS[chosen])
    seen = []
    assert pack(model, go_on=lambda *reading: not seen.append(reading)) == 700
    assert seen == [(256, 700), (512, 700), (700, 700)]
    manifest = Manifest.load(folder_of(model))
    assert (manifest.rows, manifest.live, len(manifest.runs)) == (700, 700, 1)
    part = open_matrix(model).parts[0]
    assert np.array_equal(part.image_ids, np.sort(chosen))
    wanted = np.array([half_rounded(row) for row in VECTORS[part.image_ids]], np.float16)
    assert np.array_equal(part.vectors, wanted)
    assert files(model) == [
        "000001.ids", "000001.moments", "000001.vectors", LOCK, MANIFEST
    ]  # fmt: skip
    assert folder_of(model).stat().st_mode & 0o077 == 0
    # Packing again reads nothing.
    before = (folder_of(model) / MANIFEST).stat().st_mtime_ns
    assert pack(model) == 0
    assert (folder_of(model) / MANIFEST).stat().st_mtime_ns == before
    # A matrix may also be of nothing.
    Embedding.objects.all().delete()
    assert same_as_scan(model, QUERY) == []


def test_what_came_since_makes_a_run_of_its_own(model, small_chunks):
    embed(model, range(500), VECTORS[:500])
    pack(model)
    embed(model, range(500, 1000), VECTORS[500:])
    assert pack(model) == 500
    manifest = Manifest.load(folder_of(model))
    assert [run.rows for run in manifest.runs] == [500, 500]
    assert len(same_as_scan(model, QUERY)) == 1000


def test_many_runs_become_one(model, monkeypatch):
    monkeypatch.setattr(building, "MOST_RUNS", 3)
    lengths = []
    for start in range(0, 500, 100):
        embed(model, range(start, start + 100), VECTORS[start : start + 100])
        pack(model)
        lengths.append(len(Manifest.load(folder_of(model)).runs))
        same_as_scan(model, QUERY, limit=20)
    assert lengths == [1, 2, 3, 1, 2]
    assert len(files(model)) == 2 * 3 + 2


def test_removed_rows_are_noted_beside_the_runs(model):
    embed(model, range(100), VECTORS[:100])
    pack(model)
    embed(model, range(100, 200), VECTORS[100:200])
    pack(model)
    Embedding.objects.filter(image_id__in=[3, 150, 151]).delete()
    assert ranking_method(model) == "matrix"
    assert pack(model) == 0
    manifest = Manifest.load(folder_of(model))
    assert (manifest.rows, manifest.live) == (200, 197)
    assert manifest.removed.size // 8 == 3
    assert len(same_as_scan(model, QUERY)) == 197
    Embedding.objects.filter(image_id=4).delete()
    embed(model, [3], VECTORS[:1])
    pack(model)
    manifest = Manifest.load(folder_of(model))
    assert (manifest.removed.size // 8, len(manifest.runs)) == (4, 3)
    assert len(same_as_scan(model, QUERY)) == 197


def test_many_removed_rows_are_left_out_for_good(model):
    embed(model, range(100), VECTORS[:100])
    pack(model)
    Embedding.objects.filter(image_id__lt=11).delete()
    assert pack(model) == 89
    manifest = Manifest.load(folder_of(model))
    assert (manifest.rows, manifest.live, manifest.removed) == (89, 89, None)


def test_the_old_matrix_answers_while_the_next_is_packed(model, small_chunks):
    embed(model, range(100), VECTORS[:100])
    pack(model)
    embed(model, range(100, 1000), VECTORS[100:])
    seen = []

    def go_on(rows, total):
        seen.append((rows, total))
        assert Manifest.load(folder_of(model)).rows == 100
        assert len(same_as_scan(model, QUERY)) == (1000 if len(seen) < 3 else 997)
        if len(seen) == 2:
            # What comes and goes meanwhile isn't mixed up.
            Embedding.objects.filter(image_id__in=[5, 200, 999]).delete()
        return True

    assert pack(model, go_on=go_on) == 899
    assert seen == [(256, 900), (512, 900), (768, 900), (899, 900)]
    assert len(same_as_scan(model, QUERY)) == 997
    pack(model)
    assert len(same_as_scan(model, QUERY)) == 997


def test_a_packing_that_is_ended_changes_nothing(model, small_chunks):
    embed(model, range(100), VECTORS[:100])
    pack(model)
    before = files(model)
    embed(model, range(100, 600), VECTORS[100:600])
    assert pack(model, go_on=lambda rows, total: False) is None
    assert files(model) == before
    # What a killed process leaves is deleted.
    (folder_of(model) / "000002.ids").write_bytes(bytes(80))
    (folder_of(model) / ".000002.vectors.abc").write_bytes(bytes(80))
    assert pack(model) == 500
    assert len(files(model)) == len(before) + 3
    assert len(same_as_scan(model, QUERY)) == 600


def test_one_process_packs_at_a_time(model):
    embed(model, range(10), VECTORS[:10])
    with sole_writer(folder_of(model)) as held:
        assert held
        assert pack(model) is None
        with pytest.raises(CommandError, match="Another process"):
            call_command("pack_embeddings", stderr=StringIO())
    assert pack(model) == 10


def test_too_little_room_is_told(model, monkeypatch):
    usage = namedtuple("usage", "total used free")
    embed(model, range(1000), VECTORS)
    monkeypatch.setattr(building.shutil, "disk_usage", lambda path: usage(1, 1, 1000))
    with pytest.raises(MatrixRefused, match=r"needs 0\.1 GB more .* 0\.0 GB are free"):
        pack(model)


def command(*arguments, **options):
    output = StringIO()
    call_command("pack_embeddings", *arguments, stdout=output, stderr=StringIO(), **options)
    return output.getvalue()


def test_the_command_packs_every_model_and_checks(model):
    assert "no model has embeddings" in command()
    embed(model, range(50), VECTORS[:50])
    other = embedding_model_get_or_create(name="other", dimension=20)
    embed(other, range(9), VECTORS[:9])
    assert "m: 50 embeddings read" in command()
    assert ranking_method(other) == "matrix"
    assert command("--model", "m").startswith("m: up to date")
    assert command("--model", "m", "--rebuild").startswith("m: 50 embeddings read")
    assert command("--check").splitlines() == [
        "m: as the database has it", "other: as the database has it"
    ]  # fmt: skip
    assert command("--check", verbosity=0) == ""
    with pytest.raises(CommandError, match="There is no model nonsense"):
        command("--model", "nonsense")


def test_the_check_finds_every_kind_of_difference(model):
    with pytest.raises(CommandError, match="Wrong: m"):
        command("--check", model="m")
    embed(model, range(300), VECTORS[:300])
    pack(model)
    Embedding.objects.filter(image_id=9).delete()
    embed(model, [9, 301], VECTORS[:2])
    assert "as the database has it" in command("--check")
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("DELETE FROM retrieval_embedding WHERE image_id = 17")
        cursor.execute(
            "UPDATE retrieval_embedding e SET vector = o.vector "
            "FROM retrieval_embedding o WHERE e.image_id = 18 AND o.image_id = 19"
        )
        cursor.execute("SET session_replication_role = DEFAULT")
    output = StringIO()
    with pytest.raises(CommandError):
        call_command("pack_embeddings", check=True, stdout=output, stderr=StringIO())
    assert "2 embeddings differ, such as those of the images 17, 18" in output.getvalue()
    path = folder_of(model) / Manifest.load(folder_of(model)).runs[0].vectors.name
    with path.open("r+b") as file:
        file.write(b"\x01")
    output = StringIO()
    with pytest.raises(CommandError):
        call_command("pack_embeddings", check=True, stdout=output, stderr=StringIO())
    assert f"Changed since it was written: {path.name}" in output.getvalue()

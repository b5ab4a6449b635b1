"""A matrix that isn't what the database holds is noticed, isn't used, and is packed anew."""

import json
import os
import shutil

import pytest
from django.db import connection

from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.models import EmbeddingModel
from retrieval.ranking.building import pack
from retrieval.ranking.current import lag_of
from retrieval.ranking.files import (
    MANIFEST,
    Manifest,
    MatrixUnusable,
    folder_of,
)
from retrieval.ranking.selectors import (
    half_rounded,
    ranking_method,
)
from tests.retrieval.making import random_vectors
from tests.retrieval.matrices import (
    embed,
    images,
    same_as_scan,
    without_triggers,
)

pytestmark = pytest.mark.django_db

VECTORS = random_vectors(90, 16)
QUERY = half_rounded(random_vectors(1, 16, seed=5)[0])


@pytest.fixture
def model(db, settings, tmp_path) -> EmbeddingModel:
    """A model with a packed matrix of sixty rows."""
    settings.VAR_DIR = tmp_path
    made = embedding_model_get_or_create(name="m", dimension=16)
    images(range(90))
    embed(made, range(60), VECTORS[:60])
    pack(made)
    assert ranking_method(made) == "matrix"
    return made


def noticed(model, reason):
    """The database answers, and says why."""
    with pytest.raises(MatrixUnusable, match=reason):
        lag_of(model)
    same_as_scan(model, QUERY, limit=7)
    assert ranking_method(model) == "scan"


def packed_again(model):
    """The matrix is packed, and what was read."""
    rows = pack(model)
    assert ranking_method(model) == "matrix"
    same_as_scan(model, QUERY, limit=7)
    return rows


def vectors_file(model):
    return folder_of(model) / Manifest.load(folder_of(model)).runs[0].vectors.name


def recounted(model):
    """What the triggers' numbers would be for the rows that there are."""
    return (
        "UPDATE retrieval_embeddingcount c SET (embedded, fingerprint) = ("
        " SELECT count(*), coalesce(sum(retrieval_embedding_mark(image_id, created_at)), 0)"
        f" FROM retrieval_embedding WHERE model_id = c.model_id) WHERE model_id = {model.pk}"
    )


def test_a_database_that_was_restored_from_before_is_noticed(model):
    without_triggers(
        "DELETE FROM retrieval_embedding WHERE image_id >= 50",
        recounted(model),
    )
    noticed(model, "holds 60 embeddings where the database has 50")
    assert packed_again(model) == 50


def test_another_history_of_as_many_rows_is_noticed(model):
    without_triggers(
        "UPDATE retrieval_embedding SET created_at = created_at - interval '1 hour' "
        "WHERE image_id = 7",
        recounted(model),
    )
    noticed(model, "other embeddings than the database")
    assert packed_again(model) == 60


def test_an_emptied_table_is_noticed(model):
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("TRUNCATE retrieval_embedding")
    noticed(model, "holds 60 embeddings where the database has 0")
    embed(model, range(30), VECTORS[30:60])
    noticed(model, "holds 60 embeddings where the database has 0")
    assert packed_again(model) == 30


@pytest.mark.parametrize("disguised", [False, True])
def test_a_damaged_file_is_noticed_also_when_its_times_were_put_back(model, disguised):
    path = vectors_file(model)
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(500)
        file.write(b"\x00\x11")
    if disguised:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    noticed(model, "Changed since it was written")
    assert packed_again(model) == 60


@pytest.mark.parametrize("kind", ["vectors", "moments"])
def test_a_truncated_or_missing_file_is_noticed(model, kind):
    path = vectors_file(model).with_suffix(f".{kind}")
    os.truncate(path, path.stat().st_size - 16)
    noticed(model, "Changed since it was written")
    assert packed_again(model) == 60
    vectors_file(model).with_suffix(f".{kind}").unlink()
    noticed(model, "Changed since it was written")
    assert packed_again(model) == 60


def test_a_file_that_was_copied_is_not_used(model):
    path = vectors_file(model)
    shutil.copy(path, path.with_suffix(".copy"))
    os.replace(path.with_suffix(".copy"), path)
    noticed(model, "Changed since it was written")
    assert packed_again(model) == 60


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 99}', '{"format": 2}'])
def test_a_manifest_that_says_nothing_is_packed_over(model, text):
    (folder_of(model) / MANIFEST).write_text(text)
    noticed(model, "manifest")
    assert packed_again(model) == 60


def test_files_of_another_model_are_noticed(model):
    other = embedding_model_get_or_create(name="other", dimension=16)
    embed(other, range(60), VECTORS[30:90])
    shutil.copytree(folder_of(model), folder_of(other))
    noticed(other, "manifest is of another model")
    fields = json.loads((folder_of(other) / MANIFEST).read_text())
    fields["identity"] = str(other.identity)
    (folder_of(other) / MANIFEST).write_text(json.dumps(fields))
    noticed(other, "Changed since it was written")
    assert packed_again(other) == 60
    same_as_scan(model, QUERY)


def test_matrices_can_be_switched_off(model, settings):
    settings.MATRIX = False
    noticed(model, "switched off")
    settings.MATRIX = True
    assert ranking_method(model) == "matrix"

"""The command that builds an approximate index."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.models import EmbeddingModel
from retrieval.search.indexing import IndexRefused, index_build
from retrieval.search.vector_indexes import partition_name, vector_index
from tests import ROOT
from tests.processes import database_url, wait_for
from tests.retrieval.indexes import writing
from tests.retrieval.making import embed_rows, random_vectors

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def model(settings: Any) -> EmbeddingModel:
    """A model of 16 dimensions with 200 embeddings."""
    settings.EMBEDDING_MODEL = "toy-16"
    model = embedding_model_get_or_create(name="toy-16", dimension=16)
    embed_rows(model, dict(enumerate(random_vectors(200, 16))))
    return model


def invalid_index(model: EmbeddingModel) -> None:
    """What a crash leaves: an index that the database doesn't use."""
    with connection.cursor() as cursor:
        name, table = f"{partition_name(model)}_hnsw", partition_name(model)
        cursor.execute(
            f"CREATE INDEX {name} ON {table} USING hnsw ((vector::halfvec(16)) halfvec_ip_ops)"
        )
        cursor.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = to_regclass(%s)", [name]
        )


def kind_of(model: EmbeddingModel) -> tuple[str, int, int, bool] | None:
    found = vector_index(model)
    return found and (found.kind, found.m, found.ef_construction, found.ready)


def test_the_command_builds_it_and_drops_it(model: EmbeddingModel) -> None:
    with pytest.raises(CommandError, match="have no index"):
        call_command("index_embeddings", "--drop", stdout=io.StringIO())
    output = io.StringIO()
    call_command("index_embeddings", "--kind", "binary", "--m", "8", stdout=output)
    assert kind_of(model) == ("binary", 8, 64, True)
    assert output.getvalue().startswith("Indexed (binary), ")
    call_command("index_embeddings", "--drop", stdout=output)
    assert "The index was dropped." in output.getvalue()
    assert vector_index(model) is None


def test_doing_it_again_changes_nothing_and_other_parameters_replace_it(
    model: EmbeddingModel,
) -> None:
    # What a crash left is made anew.
    invalid_index(model)
    assert kind_of(model) == ("halfvec", 16, 64, False)
    index_build()
    assert kind_of(model) == ("halfvec", 16, 64, True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s)::oid", [f"{partition_name(model)}_hnsw"])
        before = cursor.fetchone()
        index_build()
        cursor.execute("SELECT to_regclass(%s)::oid", [f"{partition_name(model)}_hnsw"])
        assert cursor.fetchone() == before
    index_build(kind="binary", m=4)
    assert kind_of(model) == ("binary", 4, 64, True)


def test_ctrl_c_ends_the_build(model: EmbeddingModel, tmp_path: Path) -> None:
    command = [sys.executable, "manage.py", "index_embeddings", "--model", model.name]
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "annotator.settings",
        "VAR_DIR": str(tmp_path),
        "DATABASE_URL": database_url(connection.settings_dict),
    }
    with writing(model):
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
            # A shell has what runs in the background ignore the signal.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        wait_for(lambda: kind_of(model) == ("halfvec", 16, 64, False), what="the build")
        process.send_signal(signal.SIGINT)
        wait_for(lambda: running("DROP INDEX CONCURRENTLY"), what="the rest to be dropped")
    assert "canceling statement due to user request" in process.communicate()[1]
    assert process.returncode == 1
    assert vector_index(model) is None


def running(statement: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE %s",
            [f"{statement}%"],
        )
        return cursor.fetchone()[0] > 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"m": 1}, "an m from 2 to 100"),
        ({"ef_construction": 31}, "at least twice m"),
        ({"memory": 0}, "give at least 1"),
        ({"model_name": "none"}, "none has no embeddings yet"),
        ({"memory": 2**40}, "maintenance_work_mem"),
    ],
)
def test_what_cannot_be_made_is_refused(
    model: EmbeddingModel, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(IndexRefused, match=says):
        index_build(**options)
    assert vector_index(model) is None

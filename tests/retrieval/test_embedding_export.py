"""Embeddings go out in clip-retrieval's layout, and come in again bit for bit."""

from __future__ import annotations

import io
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from django.core.management import CommandError, call_command

from core.files import TargetRefused
from retrieval.corpus.models import Image, Species
from retrieval.embedding import exporting as embedding_export
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.exporting import export_embeddings
from retrieval.embedding.models import Embedding, EmbeddingModel
from retrieval.embedding.selectors import embeddings_after, embeddings_of
from retrieval.flags.services import image_withdraw
from tests.retrieval.making import embed_rows, image_row, random_vectors

pytestmark = pytest.mark.django_db
IDS = [2, 3, 5, 8, 13, 21, 34]


@pytest.fixture
def corpus(animals: dict[str, Species], toy_model: EmbeddingModel) -> EmbeddingModel:
    """Seven embedded images, whose files came in another order than their ids."""
    bear = animals["Ursus arctos"]
    for number in reversed(IDS):
        image_row(number, bear if number % 2 else None, file_name=f"train/x.y/{number}.jpg")
    image_row(100)
    embed_rows(toy_model, dict(zip(reversed(IDS), random_vectors(7, 3), strict=True)))
    return toy_model


def frame(folder: Path) -> pd.DataFrame:
    """The metadata as clip-retrieval's and INQUIRE's code read it."""
    return pd.concat(pd.read_parquet(path) for path in sorted((folder / "metadata").iterdir()))


def arrays(folder: Path) -> np.ndarray:
    """The vectors (n, d), read in the same way."""
    return np.concatenate([np.load(path) for path in sorted((folder / "img_emb").iterdir())])


def test_files_hold_the_embeddings_by_image_id(
    corpus: EmbeddingModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_export, "chunk_rows", lambda dimension: 2)
    told: list[tuple[int, int]] = []
    report = export_embeddings(
        model=corpus, directory=tmp_path / "out", per_file=3, progress=lambda *p: told.append(p)
    )
    assert (report.rows, report.files, report.dimension) == (7, 3, 3)
    assert told == [(2, 7), (4, 7), (6, 7), (7, 7)]
    written = frame(tmp_path / "out")
    assert written["image_id"].tolist() == IDS
    assert written["source_id"].tolist() == [str(number) for number in IDS]
    assert written["dataset"].unique().tolist() == ["toy"]
    assert written["image_path"].tolist() == [f"train/x.y/{number}.jpg" for number in IDS]
    assert written["species"].tolist() == ["Ursus arctos" if n % 2 else "" for n in IDS]
    assert arrays(tmp_path / "out").dtype == np.float16
    assert np.array_equal(arrays(tmp_path / "out"), embeddings_of(corpus, IDS)[1])


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("options", [[], ["--without-suffix"]])
def test_a_round_trip_into_an_empty_database_is_equal_bit_for_bit(
    corpus: EmbeddingModel, tmp_path: Path, dtype: str, options: list[str]
) -> None:
    out = str(tmp_path / "out")
    call_command("export_embeddings", out, "--model=toy", "--dtype", dtype, *options)
    _ids, before = embeddings_after(corpus, -1, limit=100)
    Embedding.objects.all().delete()
    corpus.delete()
    # The same images, in a database that gave them other ids.
    Image.objects.all().delete()
    for number in IDS:
        image_row(
            200 - number, source_id=str(number), file_name=f"train/x.y/{number}.jpg", sha256="x"
        )
    call_command("import_embeddings", out, "--model=toy again", stdout=io.StringIO())
    model = EmbeddingModel.objects.get()
    ids, after = embeddings_after(model, -1, limit=100)
    assert ids.tolist() == sorted(200 - number for number in IDS)
    assert np.array_equal(after[::-1].view(np.uint16), before.view(np.uint16))


def test_withdrawn_images_are_left_out_unless_asked_for(
    corpus: EmbeddingModel, reviewer: Any, tmp_path: Path
) -> None:
    for number in (3, 34):
        image_withdraw(image=Image.objects.get(pk=number), by=reviewer)
    export_embeddings(model=corpus, directory=tmp_path / "out")
    assert frame(tmp_path / "out")["image_id"].tolist() == [2, 5, 8, 13, 21]
    export_embeddings(model=corpus, directory=tmp_path / "all", withdrawn=True)
    assert frame(tmp_path / "all")["image_id"].tolist() == IDS
    assert len(arrays(tmp_path / "all")) == 7


def test_an_earlier_export_gives_way_and_nothing_else_does(
    corpus: EmbeddingModel, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    export_embeddings(model=corpus, directory=out, per_file=2)
    with pytest.raises(CommandError, match="exists and is not empty"):
        call_command("export_embeddings", str(out), "--model=toy")
    call_command("export_embeddings", str(out), "--model=toy", "--force", stdout=io.StringIO())
    assert [path.name for path in (out / "img_emb").iterdir()] == ["img_emb_0.npy"]
    (out / "img_emb" / "notes.txt").write_text("mine")
    with pytest.raises(CommandError, match=r"holds 'img_emb/notes\.txt', which is not replaced"):
        call_command("export_embeddings", str(out), "--model=toy", "--force")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_nothing_to_write_and_no_room_are_said_before_anything_appears(
    corpus: EmbeddingModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = embedding_model_get_or_create(name="empty", dimension=3)
    with pytest.raises(TargetRefused, match="No image of the corpus is embedded with empty"):
        export_embeddings(model=empty, directory=tmp_path / "out")
    with pytest.raises(CommandError, match=r"with 'other'. Models with embeddings: toy"):
        call_command("export_embeddings", str(tmp_path / "out"), "--model=other")
    usage = namedtuple("usage", "total used free")(100, 60, 40)
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    with pytest.raises(TargetRefused, match=r"the disk has 0\.0 GB left"):
        export_embeddings(model=corpus, directory=tmp_path / "out")
    assert list(tmp_path.iterdir()) == []

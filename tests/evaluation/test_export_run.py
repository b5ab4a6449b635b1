"""The embedding model's own run, exact and over the whole corpus."""

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.db.models.functions import Now

from evaluation.scoring.run_files import read_run
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.models import Embedding
from retrieval.encoding.text import load_text_encoder
from tests.releases.toy import WIDTH


@pytest.fixture
def vectors(images, tiny_model) -> np.ndarray:
    """Vectors (6, 16) of the six images, stored under the model; images 3 and 5 have the same."""
    model = embedding_model_get_or_create(name=tiny_model, dimension=WIDTH)
    rows = np.random.default_rng(5).normal(size=(6, WIDTH))
    rows[4] = rows[2]
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)
    for image, row in zip(images, rows, strict=True):
        Embedding.objects.create(
            model=model, image=image, vector=row.astype(float).tolist(), created_at=Now()
        )
    return rows.astype(np.float64)


@pytest.fixture
def release(tmp_path: Path) -> Path:
    folder = tmp_path / "release"
    folder.mkdir()
    header = ",query_id,query_text,supercategory,category,iconic_group\n"
    (folder / "inquire_queries_val.csv").write_text(header + "1,31,a fox,Species,Species ID,\n")
    (folder / "inquire_queries_test.csv").write_text(
        header + "0,30,two storks,Species,Species ID,Birds\n"
    )
    (folder / "inquire_annotations.csv").write_text("query_id,image_id,image_path\n30,3,a/3.jpg\n")
    return folder


@pytest.fixture
def export_run(release: Path, tiny_model: str) -> Callable[..., str]:
    def command(out: Path, *options: str, model: str = tiny_model) -> str:
        output = io.StringIO()
        arguments = ["export_run", str(out), "--release", str(release), "--model", model, *options]
        call_command(*arguments, stdout=output, stderr=output)
        return output.getvalue()

    return command


def test_the_run_is_the_exact_order_of_the_whole_corpus(vectors, tiny_model, export_run, tmp_path):
    out = tmp_path / "run.txt"
    assert "12 rows in" in export_run(out)
    with out.open("rb") as file:
        run, errors = read_run(file, name="run.txt")
    assert errors == []
    for query_id, text in ((30, "two storks"), (31, "a fox")):
        encoded = load_text_encoder(tiny_model).encode(text).astype(np.float16)
        scores = vectors @ encoded.astype(np.float64)
        expected = sorted(range(1, 7), key=lambda image: (-round(scores[image - 1], 5), image))
        assert run[query_id].image_ids.tolist() == expected
        assert run[query_id].scores.tolist() == pytest.approx(
            [scores[image - 1] for image in expected], abs=1e-5
        )
        # Equal vectors, so equal scores: the smaller id first.
        assert expected.index(5) == expected.index(3) + 1
    ranks = [line.split()[3] for line in out.read_text().splitlines()]
    assert ranks == list("123456") * 2


def test_through_the_matrix_the_run_is_the_same(vectors, tiny_model, export_run, tmp_path):
    by_scan, by_matrix = tmp_path / "scan.txt", tmp_path / "matrix.txt"
    export_run(by_scan)
    call_command("pack_embeddings", model=tiny_model, verbosity=0)
    assert "12 rows in" in export_run(by_matrix)
    assert by_matrix.read_bytes() == by_scan.read_bytes()


def test_depth_and_split_cut_the_run(vectors, export_run, tmp_path):
    export_run(tmp_path / "run.txt", "--depth", "2", "--split", "val")
    lines = (tmp_path / "run.txt").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["31", "31"]
    Embedding.objects.filter(image_id__in=[1, 2]).delete()
    output = export_run(tmp_path / "fewer.txt")
    assert "2 images have no embedding" in output
    assert "8 rows in" in output


def test_an_existing_file_is_replaced_only_by_force(vectors, export_run, tmp_path):
    out = tmp_path / "run.txt"
    out.write_text("mine")
    with pytest.raises(CommandError, match="exists; --force replaces it"):
        export_run(out)
    assert out.read_text() == "mine"
    export_run(out, "--force")
    assert out.read_text().startswith("30 Q0 ")
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []


def test_a_model_without_embeddings_is_refused(db, export_run, tmp_path):
    with pytest.raises(CommandError, match="No image is embedded with 'nothing/here' yet"):
        export_run(tmp_path / "run.txt", model="nothing/here")
    assert not (tmp_path / "run.txt").exists()

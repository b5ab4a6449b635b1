"""Embeddings that others made come in, matched with images however the files name them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from retrieval.embedding import importing as embedding_import
from retrieval.embedding.files import LayoutRefused
from retrieval.embedding.importing import EmbeddingImportReport, import_embeddings
from retrieval.embedding.models import Embedding, EmbeddingModel, EmbeddingRemoval
from retrieval.embedding.selectors import embeddings_of
from retrieval.encoding.unit_rows import half_rounded
from tests.retrieval.layouts import write_part
from tests.retrieval.making import embed_rows, image_row

pytestmark = pytest.mark.django_db


def units(count: int, dimension: int = 4, seed: int = 3) -> np.ndarray:
    """Random vectors (count, dimension) of unit length, as halves."""
    rows = np.random.default_rng(seed).normal(size=(count, dimension))
    return np.array([half_rounded(row) for row in rows], dtype=np.float16)


def images(count: int, first: int = 1) -> list[int]:
    """Images of iNat's kind of paths; their ids."""
    for number in range(first, first + count):
        image_row(
            number, source_id=f"s{number}", file_name=f"train/0{number % 3}_Rana/{number}.jpg"
        )
    return list(range(first, first + count))


def bring(folder: Path, **options: Any) -> EmbeddingImportReport:
    return import_embeddings(
        model_name=options.pop("model_name", "theirs"), directory=folder, **options
    )


def stored(image_ids: list[int], name: str = "theirs") -> np.ndarray:
    """The stored vectors (n, d) of these images, all of which have one."""
    ids, vectors = embeddings_of(EmbeddingModel.objects.get(name=name), image_ids)
    assert ids.tolist() == sorted(image_ids)
    return vectors


@pytest.mark.parametrize(
    ("column", "names"),
    [
        ("image_id", [1, 2, 3, 4, 5]),
        ("id", ["1", "2", "3", "4", "5"]),
        ("source_id", [f"s{n}" for n in range(1, 6)]),
        ("photo_id", [f"s{n}" for n in range(1, 6)]),
        ("image_path", [f"train/0{n % 3}_Rana/{n}.jpg" for n in range(1, 6)]),
        # As webdataset's keys are, and INQUIRE's files: without a suffix.
        ("image_path", [f"train/0{n % 3}_Rana/{n}" for n in range(1, 6)]),
        ("image_path", [f"/data/inat24/train/0{n % 3}_Rana/{n}.jpg" for n in range(1, 6)]),
        ("image_path", [f"D:\\inat24\\train\\0{n % 3}_Rana\\{n}.jpg" for n in range(1, 6)]),
        ("image_path", [f"./0{n % 3}_Rana/{n}.jpg" for n in range(1, 6)]),
        ("image_path", [f"{n}.jpg" for n in range(1, 6)]),
        ("key", [f"{n}" for n in range(1, 6)]),
    ],
)
def test_rows_name_images_in_many_ways(tmp_path: Path, column: str, names: list[Any]) -> None:
    ids, vectors = images(5), units(5)
    write_part(tmp_path, 0, vectors, {"caption": list("abcde"), column: names})
    report = bring(tmp_path)
    assert (report.stored, report.faults) == (5, 0)
    assert report.key.startswith(f"{column}, taken as the ")
    assert np.array_equal(stored(ids), vectors)


def test_columns_that_disagree_are_left_to_people(tmp_path: Path) -> None:
    ids, vectors = images(3), units(3)
    names = {"image_id": [2, 3, 1], "image_path": [f"train/0{n % 3}_Rana/{n}" for n in ids]}
    write_part(tmp_path, 0, vectors, names)
    with pytest.raises(LayoutRefused, match=r"row 0 is image 1 by the column image_path.*image 2"):
        bring(tmp_path)
    assert not EmbeddingModel.objects.exists()
    bring(tmp_path, key="image_id")
    assert np.array_equal(stored(ids), vectors[[2, 0, 1]])


@pytest.mark.parametrize("key", [None, "image_id"])
def test_ids_of_several_data_sets_are_not_taken_for_image_ids(
    tmp_path: Path, key: str | None
) -> None:
    """As iNaturalist's data sets count their images, each from 0: the first one's ids are free."""
    for number in range(6):
        dataset = "first" if number < 3 else "second"
        image_row(number, dataset=dataset, source_id=str(number % 3), file_name=f"p{number}.jpg")
    vectors = units(3)
    write_part(tmp_path, 0, vectors, {"image_id": [0, 1, 2]})
    with pytest.raises(LayoutRefused, match=r"row 0 is image 0 .*--dataset whose images these are"):
        bring(tmp_path, key=key)
    assert not EmbeddingModel.objects.exists()
    bring(tmp_path, key=key, dataset="second")
    assert np.array_equal(stored([3, 4, 5]), vectors)


def test_vectors_too_long_to_be_stored_are_refused_whole(tmp_path: Path) -> None:
    images(1)
    write_part(tmp_path, 0, units(1, dimension=4001), {"image_id": [1]})
    with pytest.raises(LayoutRefused, match="of 4001 numbers; at most 4000 are kept"):
        bring(tmp_path)
    assert not EmbeddingModel.objects.exists()


def test_a_data_set_tells_images_of_one_name_apart(tmp_path: Path) -> None:
    for number, dataset in enumerate(("one", "two", "one"), start=1):
        image_row(
            number, dataset=dataset, source_id=str(number // 3), file_name=f"{number % 3}.jpg"
        )
    image_row(4, dataset="two", source_id="1", file_name="0.jpg")
    vectors = units(2)
    write_part(tmp_path / "names", 0, vectors, {"file_name": ["1.jpg", "0.jpg"]})
    report = bring(tmp_path / "names")
    assert (report.stored, report.ambiguous, report.faults) == (1, 1, 1)
    assert report.named["ambiguous"] == ["img_emb_0.npy row 1: '0.jpg' fits several images"]
    report = bring(tmp_path / "names", dataset="one", model_name="of one")
    assert report.faults == 0
    assert np.array_equal(stored([1, 3], "of one"), vectors)
    # An export's own column of data sets does the same.
    columns = {"image_id": [1, 1], "source_id": ["1", "1"], "dataset": ["one", "two"]}
    write_part(tmp_path / "own", 0, vectors, columns)
    assert "within the column dataset" in bring(tmp_path / "own", model_name="own").key
    assert np.array_equal(stored([3, 4], "own"), vectors)


def test_the_longest_path_in_common_is_meant(tmp_path: Path) -> None:
    names = ["a/1.jpg", "b/a/1.jpg", "c/1.jpg", "2.jpg", "d/2.png", "d/2.jpg", "e/3.x.jpg"]
    for number, name in enumerate(names, start=1):
        image_row(number, file_name=name)
    paths = ["/x/b/a/1.jpg", "a/1.jpg", "1.jpg", "d/2", "d/2.png", "2.jpg", "a1.jpg", "e/3", None]
    vectors = units(len(paths))
    write_part(tmp_path, 0, vectors, {"image_path": paths})
    report = bring(tmp_path)
    assert (report.stored, report.unmatched, report.ambiguous) == (5, 2, 2)
    assert np.array_equal(stored([1, 2, 4, 5, 7]), vectors[[1, 0, 5, 4, 7]])
    assert report.named["unmatched"] == [
        "img_emb_0.npy row 6: 'a1.jpg' names no image of the corpus",
        "img_emb_0.npy row 8: None names no image of the corpus",
    ]
    assert len(report.named["ambiguous"]) == 2


def test_files_of_more_images_than_the_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The few known ones are found, also where no row of the sample is of any."""
    monkeypatch.setattr("retrieval.embedding.matching.SAMPLE", 10)
    ids, vectors = images(3, first=60), units(120)
    paths = [f"train/0{n % 3}_Rana/{n}.jpg" for n in range(120)]
    for number in range(3):
        part = slice(40 * number, 40 * number + 40)
        write_part(tmp_path, number, vectors[part], {"image_path": paths[part]})
    report = bring(tmp_path)
    assert (report.stored, report.unmatched, report.faults) == (3, 117, 117)
    assert len(report.named["unmatched"]) == 20
    assert report.named["unmatched"][0].startswith("img_emb_0.npy row 0: 'train/00_Rana/0.jpg'")
    assert np.array_equal(stored(ids), vectors[60:63])
    assert bring(tmp_path, limit_to_known=True).faults == 0


def test_the_first_row_of_an_image_counts(tmp_path: Path) -> None:
    images(2)
    vectors = units(5)
    write_part(tmp_path, 0, vectors[:2], {"image_id": [2, 2]})
    write_part(tmp_path, 1, vectors[2:], {"image_id": [1, 2, 1]})
    report = bring(tmp_path)
    assert (report.stored, report.repeated, report.faults) == (2, 3, 0)
    assert report.named["repeated"][0].startswith("img_emb_0.npy row 1: '2' names an image that")
    assert np.array_equal(stored([1, 2]), vectors[[2, 0]])


def test_vectors_that_are_no_unit_vectors_are_refused_row_by_row(tmp_path: Path) -> None:
    ids = images(6)
    vectors = np.zeros((6, 4), np.float32)
    vectors[:, 0] = [1, 1.005, 2, 0, np.nan, np.inf]
    write_part(tmp_path, 0, vectors, {"image_id": ids})
    report = bring(tmp_path)
    assert (report.stored, report.refused, report.faults) == (2, 4, 4)
    assert report.named["refused"] == [
        "img_emb_0.npy row 2: is 2 long, not 1",
        "img_emb_0.npy row 3: is all zeros",
        "img_emb_0.npy row 4: holds a number that is not finite",
        "img_emb_0.npy row 5: holds a number that is not finite",
    ]
    assert stored([1, 2])[:, 0].tolist() == [1, 1]
    report = bring(tmp_path, normalize=True)
    assert (report.stored, report.present, report.refused) == (1, 2, 3)
    assert stored([1, 2, 3])[:, 0].tolist() == [1, 1, 1]


def test_what_is_there_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_import, "chunk_rows", lambda dimension: 4)
    ids, vectors = images(10), units(10)
    write_part(tmp_path, 0, vectors, {"image_id": ids})
    bring(tmp_path)
    before = list(Embedding.objects.order_by("image_id").values_list("created_at", flat=True))
    Embedding.objects.filter(image_id__in=[2, 9]).delete()
    EmbeddingRemoval.objects.all().delete()
    embed_rows(EmbeddingModel.objects.get(), {9: [1, 0, 0, 0]})
    report = bring(tmp_path)
    assert (report.stored, report.present, report.differing, report.faults) == (1, 8, 1, 1)
    assert report.named["differing"] == ["img_emb_0.npy row 8: image 9 has another vector"]
    assert stored([9]).tolist() == [[1, 0, 0, 0]]
    report = bring(tmp_path, replace=True)
    assert (report.stored, report.replaced, report.present, report.faults) == (1, 1, 9, 0)
    assert np.array_equal(stored(ids), vectors)
    after = list(Embedding.objects.order_by("image_id").values_list("created_at", flat=True))
    assert [a == b for a, b in zip(after, before, strict=True)] == [
        number not in (2, 9) for number in ids
    ]
    assert EmbeddingRemoval.objects.count() == 1


@pytest.mark.parametrize(
    ("model", "options", "text"),
    [
        ("theirs", {"dimension": 5}, r"of 4 numbers, and --dimension says 5"),
        ("demo", {}, r"of 4 numbers, and the model 'demo' gives"),
        ("toy", {}, r"of 4 numbers, and the model 'toy' has here 3"),
    ],
)
def test_vectors_of_another_dimension_are_refused_whole(
    tmp_path: Path, toy_model: EmbeddingModel, model: str, options: dict[str, int], text: str
) -> None:
    write_part(tmp_path, 0, units(2), {"image_id": images(2)})
    with pytest.raises(LayoutRefused, match=text):
        bring(tmp_path, model_name=model, **options)
    assert not Embedding.objects.exists()


def test_the_command_reports_and_ends_with_1_if_anything_was_not_taken(tmp_path: Path) -> None:
    write_part(tmp_path, 0, units(30), {"image_id": [*images(4), *range(100, 126)]})
    out = io.StringIO()
    with pytest.raises(CommandError, match=r"26 of 30 rows were not taken"):
        call_command("import_embeddings", str(tmp_path), "--model", "theirs", stdout=out)
    said = out.getvalue()
    assert "theirs: 30 vectors of 4 numbers in 1 files, matched by image_id" in said
    assert "This model can't be loaded here" in said
    assert "4 stored, 0 were there" in said
    assert "26 of no image of the corpus" in said
    assert "  img_emb_0.npy row 23: '119' names no image" in said
    assert "row 24" not in said
    assert "  … and 6 more" in said
    out = io.StringIO()
    call_command(
        "import_embeddings", str(tmp_path), "--model=theirs", "--limit-to-known", stdout=out
    )
    assert "0 stored, 4 were there" in out.getvalue()

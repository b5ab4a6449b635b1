"""Columns of a table beside place and month: how rows are found, what a model learns of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from core.errors import Conflict, FileRefused
from extras.context.environment import environment_read
from retrieval.corpus.models import Image, Species
from retrieval.embedding.models import EmbeddingModel
from retrieval.embedding.selectors import embeddings_of
from tests.extras.context.test_context import corpus, described
from tests.retrieval.making import image_row

__all__ = ["corpus"]
pytestmark = pytest.mark.django_db


def table(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_model_learns_heights_where_place_and_month_tell_nothing(
    corpus: list[Species],
    toy_model: EmbeddingModel,
    tmp_path: Path,
    capsys: Any,
    monkeypatch: Any,
) -> None:
    for module in ("retrieval.encoding.model_specs", "extras.context.encoders"):
        monkeypatch.setattr(f"{module}.describe", described)
    rng = np.random.default_rng(3)
    for image in Image.objects.order_by("pk"):  # both toads live in the same places
        image.latitude = float(rng.uniform(-50, 60))
        image.save()
    heights = {pk: 300.0 * (pk % 2) + float(rng.uniform(0, 200)) for pk in range(1, 400)}
    given = table(
        tmp_path / "land.csv", "image_id,name,elevation",
        *(f"{pk},a place,{height}" for pk, height in heights.items()),
    )  # fmt: skip
    folder, without = tmp_path / "context", tmp_path / "without"
    call_command("train_context", without, base="toy", verbosity=0)
    call_command(
        "train_context", folder, base="toy", verbosity=0, environment=given, columns=["elevation"]
    )
    assert "99.8% of the images have a row of elevation." in capsys.readouterr().out
    config, plain = (json.loads((one / "context.json").read_text()) for one in (folder, without))
    for (images, _, both, _), (_, _, place, _) in zip(
        config["measured"].values(), plain["measured"].values(), strict=True
    ):
        assert both > 0.95 * images > 0.8 * images > place
    assert plain.keys() == {"base", "weight", "encoder", "measured"}
    about = config["environment"]
    np.testing.assert_allclose(about["means"], np.mean(list(heights.values())))
    np.testing.assert_allclose(about["deviations"], np.std(list(heights.values())))

    with pytest.raises(CommandError, match="needs a table of elevation"):
        call_command("add_context", folder, verbosity=0)
    with pytest.raises(CommandError, match="elevation: the header must name this column"):
        call_command("add_context", folder, verbosity=0,
                     environment=table(tmp_path / "rain.csv", "image_id,rain", "1,3"))  # fmt: skip
    call_command("add_context", folder, verbosity=0, environment=given)
    model = EmbeddingModel.objects.get(name=str(folder))
    _, vectors = embeddings_of(model, range(1, 400))
    high = np.array([pk % 2 == 1 for pk in range(1, 400)])
    # The texts are the first two axes.
    assert (vectors[high, 0] < vectors[high, 1]).mean() < 0.05
    assert (vectors[~high, 0] > vectors[~high, 1]).mean() < 0.05


def test_rows_are_found_by_image_or_by_the_nearest_place(store: Path, tmp_path: Path) -> None:
    image_row(1, latitude=10.0, longitude=179.99, file_name="a.jpg")
    image_row(2, latitude=10.5, longitude=20.0, file_name="b.jpg")
    image_row(3, file_name="c.jpg")
    ids = np.array([1, 2, 3])
    places = np.array([[10, 179.99], [10.5, 20], [np.nan, np.nan]])
    about = {"columns": [], "farthest_km": 10.0}
    # By place: across the date line; 11 km are too far, and so is what has no place.
    grid = table(tmp_path / "grid.csv", "latitude,longitude,rain,forest",
                 "10,-179.99,1,0", "10.6,20,3,1", "-60,0,NA,", ",,900,900")  # fmt: skip
    found = environment_read(grid, about)
    assert (found.about["columns"], found.about["means"]) == (["rain", "forest"], [2, 0.5])
    beside = found.beside(ids, places)
    np.testing.assert_array_equal(beside[:, :2], places)
    assert beside[:, 2:].tolist() == [[-1, -1], [0, 0], [0, 0]]
    assert (found.images, found.found) == (3, 1)
    wider = environment_read(grid, about | {"farthest_km": 12.0})
    assert wider.beside(ids, places)[:, 2:].tolist() == [[-1, -1], [1, 1], [0, 0]]
    # By image, by the scale of the first table; what isn't known is 0, the mean.
    named = table(tmp_path / "named.csv", "forest,file_name,rain", "1,c.jpg,", "0,b.jpg,5")
    beside = environment_read(named, found.about).beside(ids, places)
    assert beside[:, 2:].tolist() == [[0, 0], [3, -1], [0, 1]]

    for refused, match in (
        (("image_id,rain", "1,2", "1,3"), "line 3, image_id: an earlier row"),
        (("image_id,rain", "1,2", "2,-inf"), "line 3, rain: a number"),
        (("latitude,rain", "1,2"), "latitude and longitude is needed"),
        (("image_id,rain", "1,2", "2,2"), "rain has no two values"),
        (("image_id,rain", "8,2", "9,3"), "No image of the corpus has a row"),
    ):
        with pytest.raises((FileRefused, Conflict)) as refusal:
            environment_read(table(tmp_path / "wrong.csv", *refused), about)
        assert match in str(getattr(refusal.value, "errors", [refusal.value])[0])
    with pytest.raises(Conflict, match="No such file"):
        environment_read(tmp_path / "none.csv", about)

"""Place and season as part of a model: what the encoder learns, and what is stored of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from extras.context.encoders import load_context
from extras.context.services import context_add, context_train
from retrieval.corpus.models import Image, Species
from retrieval.embedding.models import EmbeddingModel, TextVector
from retrieval.embedding.selectors import embeddings_of
from retrieval.encoding.model_specs import ModelSpecError, base_of, describe
from tests.labeling.conftest import make_species, run_jobs
from tests.retrieval.making import embed_rows, image_row

pytestmark = pytest.mark.django_db

NORTH, SOUTH = "Bufo borealis", "Bufo australis"


@pytest.fixture
def corpus(store: Path, toy_model: EmbeddingModel) -> list[Species]:
    """A toad of the north and one of the south whose pictures are the same, by 40 observers."""
    species = [make_species(NORTH, lookalike_group="t"), make_species(SOUTH, lookalike_group="t")]
    rng = np.random.default_rng(2)
    for number in range(400):
        one = species[number % 2]
        image_row(
            number + 1, one, observer=f"o{number % 40}",
            observed_at=datetime(2020, 5, 1, tzinfo=UTC),
            latitude=float(rng.normal((50, -30)[number % 2], 4)),
            longitude=float(rng.uniform(-100, 100)),
        )  # fmt: skip
    embed_rows(toy_model, {pk: [0.6, 0.6, 0.5] for pk in range(1, 401)})
    vectors = {
        f"a photo of {NORTH}.": [1.0, 0, 0], f"a photo of {SOUTH}.": [0, 1.0, 0]
    }  # fmt: skip
    for text, vector in vectors.items():
        TextVector.objects.create(
            model=toy_model, text=text, digest=sha256(text.encode()).digest(), vector=vector,
            asked_at=timezone.now(),
        )  # fmt: skip
    return species


def test_an_image_with_its_context_is_a_model_like_others(
    corpus: list[Species],
    toy_model: EmbeddingModel,
    tmp_path: Path,
    settings: Any,
    monkeypatch: Any,
) -> None:
    folder = tmp_path / "context"
    report = context_train(base=toy_model, directory=folder)
    assert (report.species, 0 < report.weight < 1) == (2, True)
    for images, alone, both, _ in report.measured.values():
        assert both > 0.95 * images > 0.7 * images > alone > 0
    assert sum(one[0] for one in report.measured.values()) + report.images == 400

    monkeypatch.setattr("retrieval.encoding.model_specs.describe", described)
    monkeypatch.setattr("extras.context.encoders.describe", described)
    Image.objects.filter(pk=5).update(latitude=None)
    call_command("add_context", folder, verbosity=0)
    model = EmbeddingModel.objects.get(name=str(folder))
    ids, vectors = embeddings_of(model, range(1, 401))
    assert len(ids) == 400
    np.testing.assert_allclose(np.linalg.norm(vectors.astype(float), axis=1), 1, atol=0.002)
    # Without a place it is the image alone.
    [own], [base] = (embeddings_of(one, [5])[1] for one in (model, toy_model))
    np.testing.assert_array_equal(own, base)
    assert context_add(spec=str(folder)) == 0

    if "species_task" in settings.EXTRAS:
        # It takes it as any model, its texts being the base's.
        from extras.species_task.services import answers, species_run_begin

        for text in TextVector.objects.filter(model=toy_model):
            text.pk, text.model = None, model
            text.save()
        run = species_run_begin(model=model, scope="group", naming="sci")
        run_jobs()
        assert answers(run)[1].mean() > 0.95


def described(spec: str) -> Any:
    """As `describe`, of the toy model, which no file describes."""
    return type("Toy", (), {"dimension": 3})()


def test_what_can_not_be_trained(
    store: Path, toy_model: EmbeddingModel, tmp_path: Path, settings: Any
) -> None:
    def refused(match: str, **options: Any) -> None:
        with pytest.raises(CommandError, match=match):
            call_command("train_context", tmp_path / "new", verbosity=0, **options)

    settings.EMBEDDING_MODEL = "toy"
    refused("at least two species")
    for number, name in enumerate((NORTH, SOUTH), start=1):
        image_row(number, make_species(name), latitude=1.0, longitude=2.0)
        text = f"a photo of {name}."
        TextVector.objects.create(
            model=toy_model, text=text, digest=sha256(text.encode()).digest(), vector=[1, 0, 0],
            asked_at=timezone.now(),
        )  # fmt: skip
    refused("nothing would be held out")
    refused("has embedded no image", base="none")
    refused("between 0 and 1", held_out=1.0)
    (tmp_path / "new").mkdir()
    (tmp_path / "new/a.txt").touch()
    refused("There is something")


def entry(places: np.ndarray, months: np.ndarray) -> np.ndarray:
    """What a module may give: latitude, longitude and month as they are."""
    return np.stack([*places.T, months], axis=1)


def test_encoders_of_torch_and_of_modules(tmp_path: Path, monkeypatch: Any) -> None:
    import torch

    class Places(torch.nn.Module):
        def forward(self, places: torch.Tensor) -> torch.Tensor:
            return torch.cat([places, places[:, :1]], dim=1)

    def folder(name: str, **config: Any) -> str:
        made = tmp_path / name
        made.mkdir()
        made.joinpath("context.json").write_text(
            json.dumps({"base": "toy", "weight": 0.5, **config})
        )
        return str(made)

    monkeypatch.setattr("extras.context.encoders.describe", described)
    places, months = np.array([[50.0, 8], [np.nan, 1]]), np.array([7, 7])
    script = folder("script", encoder="geo.pt")
    torch.jit.script(Places()).save(f"{script}/geo.pt")
    assert load_context(script)(places, months).tolist() == [[50, 8, 50], [0, 0, 0]]
    named = "tests.extras.context.test_context:entry"
    module = folder("module", encoder=named, signature="places and months")
    assert load_context(module)(places, months).tolist() == [[50, 8, 7], [0, 0, 0]]
    assert base_of(module) == "toy"
    assert base_of("demo") == "demo"
    for number, config in enumerate(
        ({"encoder": "none.pt"}, {"encoder": "none.npz"}, {"encoder": "os:no"}, {"encoder": "os"},
         {"signature": "months"}, {"weight": 1}, {"weight": "much"})
    ):  # fmt: skip
        with pytest.raises(ModelSpecError):
            load_context(folder(f"wrong-{number}", **{"encoder": named, **config}))
    with pytest.raises(ModelSpecError, match="finite"):
        load_context(folder("flat", encoder="numpy:ravel"))(places, months)
    with pytest.raises(ModelSpecError, match=r"no context\.json"):
        load_context(str(tmp_path))


def test_a_context_model_has_the_texts_of_its_base(tmp_path: Path) -> None:
    from retrieval.encoding.encoders import load_encoder
    from retrieval.encoding.text import load_text_encoder

    (tmp_path / "context.json").write_text('{"base": "demo", "weight": 0.2}')
    spec = str(tmp_path)
    assert describe(spec).dimension == describe("demo").dimension
    assert load_text_encoder(spec) is load_text_encoder("demo")
    with pytest.raises(ModelSpecError, match="those of its base"):
        load_encoder(spec)

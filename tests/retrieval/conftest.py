"""What the tests of retrieval share: a store of their own, two species, a model small enough to
train on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from celery import Celery

from core.jobs.kinds import HANDLERS
from retrieval.corpus.models import Species
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.models import EmbeddingModel
from retrieval.importing.records import SpeciesRecord
from retrieval.importing.species import species_upsert

TINY = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 32, "patch_size": 16, "layers": 1, "width": 64, "head_width": 32},
    "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 32, "heads": 1, "layers": 1},
}


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The messages to workers that would have been sent, as (job id, turn)."""
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(Celery, "send_task", lambda app, task, args: sent.append(tuple(args)))
    return sent


@pytest.fixture
def handlers() -> Iterator[None]:
    """Job handlers that a test registers are removed after it."""
    with patch.dict(HANDLERS):
        yield


@pytest.fixture
def store(settings: Any, tmp_path: Path) -> Path:
    """An empty image store; the folder of its files."""
    settings.VAR_DIR = tmp_path / "var"
    return tmp_path / "var" / "images"


@pytest.fixture
def toy_model(db: None) -> EmbeddingModel:
    """A model of three dimensions whose vectors the test gives itself."""
    return embedding_model_get_or_create(name="toy", dimension=3)


# Scientific name, family, look-alike group, names by language.
ANIMALS: list[tuple[str, str, str, dict[str, str]]] = [
    ("Cardinalis cardinalis", "Cardinalidae", "", {"en": "Northern Cardinal", "de": "Rotkardinal"}),
    ("Ursus arctos", "Ursidae", "", {"en": "Brown Bear", "de": "Braunbär", "fr": "Ours brun"}),
    ("Ursus maritimus", "Ursidae", "", {"en": "Polar Bear", "de": "Eisbär"}),
    ("Limenitis archippus", "Nymphalidae", "orange and black butterflies", {"en": "Viceroy"}),
    ("Danaus plexippus", "Nymphalidae", "orange and black butterflies", {"en": "Monarch"}),
]


@pytest.fixture
def animals(db: None) -> dict[str, Species]:
    """A few species by scientific name, with names in several languages."""
    return species_upsert(
        records=[
            SpeciesRecord(
                scientific_name=name,
                genus=name.split()[0],
                family=family,
                lookalike_group=group,
                names=tuple(names.items()),
            )
            for name, family, group, names in ANIMALS
        ]
    )


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of a real CLIP of 16 dimensions with random weights, loaded from a folder."""
    from retrieval.encoding.open_clip_import import open_clip_module

    open_clip = open_clip_module()
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(1)
    model = open_clip.CLIP(**{**TINY, "quick_gelu": False})
    folder = tmp_path_factory.mktemp("tiny-model")
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": TINY}))
    save_file(model.state_dict(), folder / "open_clip_model.safetensors")
    return str(folder)

"""A tiny corpus, completed queries and judgments of them."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from labeling.judging.models import Judgment
from labeling.queries.models import Query
from retrieval.corpus.models import Image
from retrieval.encoding.model_specs import CONFIG_NAME, WEIGHTS_NAME
from retrieval.encoding.open_clip_import import open_clip_module
from tests.benchmark.toy import TINY_MODEL, make_query
from tests.retrieval.making import new_image

Judge = Callable[..., Judgment]


@pytest.fixture
def var_dir(settings: Any, tmp_path: Path) -> Path:
    """A state folder of the test's own."""
    settings.VAR_DIR = tmp_path / "var"
    return settings.VAR_DIR


@pytest.fixture
def images(db: None) -> list[Image]:
    """Six images with the ids 1 to 6."""
    return Image.objects.bulk_create(
        new_image(number, file_name=f"train/a, b/{number}.jpg", width=10, height=10)
        for number in range(1, 7)
    )


@pytest.fixture
def query(db: None) -> Query:
    """A completed query of the test split."""
    return make_query(30, "two storks on a nest ")


@pytest.fixture
def judge(images: list[Image]) -> Judge:
    """`judge(query, 3, user, "relevant", …)` stores a judgment of the image with the id 3."""
    moment = datetime(2026, 5, 1, tzinfo=UTC)

    def store(query: Query, image: int, user: Any, relevance: str, **values: Any) -> Judgment:
        nonlocal moment
        judgment = Judgment.objects.create(
            query=query, image_id=image, annotator=user, relevance=relevance, **values
        )
        moment += timedelta(seconds=1)
        Judgment.objects.filter(pk=judgment.pk).update(updated_at=moment)
        return judgment

    return store


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A very small CLIP model with random weights, as a directory."""
    open_clip = open_clip_module()
    import torch
    from safetensors.torch import save_file

    folder = tmp_path_factory.mktemp("tiny-model")
    (folder / CONFIG_NAME).write_text(json.dumps({"model_cfg": TINY_MODEL}))
    torch.manual_seed(3)
    save_file(open_clip.CLIP(**TINY_MODEL).state_dict(), folder / WEIGHTS_NAME)
    return str(folder)

"""A tiny corpus, completed queries and judgments of them, and worlds that a whole file reads.

A release costs about half a second to make. Where the tests of a file only look at it, it is made
once, in a transaction around them all (`world`); each test still undoes what it writes itself:

    pytestmark = pytest.mark.django_db

    @pytest.fixture(scope="module")
    def made(world: World) -> Release:
        return services.release_export(name="v1", directory=world.folder / "v1", new=True)

Such a file has none of the function's fixtures that set VAR_DIR (`var_dir`) or make a person of the
same name again (`annotator` beside `world.person("annotator")`), and no test with
`transactional_db`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import transaction
from django.test import Client, override_settings
from rest_framework.test import APIClient

from labeling.judging.models import Judgment
from labeling.queries.models import Query
from releases.models import Release
from retrieval.corpus.models import Image
from retrieval.encoding.model_specs import CONFIG_NAME, WEIGHTS_NAME
from retrieval.encoding.open_clip_import import open_clip_module
from tests.conftest import api_of, client_of, person
from tests.releases.complete_queries import make_corpus
from tests.releases.toy import TINY_MODEL, make_query
from tests.releases.toy_release import toy_release
from tests.retrieval.making import new_image

Judge = Callable[..., Judgment]


@dataclass(frozen=True)
class World:
    """What the tests of a file read together; see the top of this file."""

    #: Of the files; VAR_DIR is `var` in it.
    folder: Path
    people: dict[str, Any]

    def person(self, role: str) -> Any:
        """The one of the role, who is made when first asked for."""
        if role not in self.people:
            self.people[role] = person(f"the-{role}", role)  # type: ignore[arg-type]
        return self.people[role]

    def client(self, role: str) -> Client:
        """A browser's client in which the one of the role is logged in."""
        return client_of(self.person(role))

    def api(self, role: str) -> APIClient:
        """The API client of the one of the role."""
        return api_of(self.person(role))


@pytest.fixture(scope="module")
def world(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """Holds rows and files until the last test of the file has ended, then undoes the rows."""
    made = World(tmp_path_factory.mktemp("world"), {})
    with (
        django_db_blocker.unblock(),
        override_settings(VAR_DIR=made.folder / "var"),
        transaction.atomic(),
    ):
        for role in ("annotator", "researcher", "reviewer", "admin"):
            made.person(role)
        yield made
        transaction.set_rollback(True)


@pytest.fixture(scope="module")
def toy(world: World) -> Release:
    """The toy release over six images, for all tests of a file."""
    make_images()
    return toy_release()


@pytest.fixture(scope="module")
def corpus(world: World) -> Iterator[World]:
    """The toy corpus and its model in use, for all tests of a file."""
    with override_settings(EMBEDDING_MODEL=""):
        make_corpus(settings)
        yield world


@pytest.fixture
def var_dir(settings: Any, tmp_path: Path) -> Path:
    """A state folder of the test's own."""
    settings.VAR_DIR = tmp_path / "var"
    return settings.VAR_DIR


def make_images() -> list[Image]:
    """Six images with the ids 1 to 6."""
    return Image.objects.bulk_create(
        new_image(number, file_name=f"train/a, b/{number}.jpg", width=10, height=10)
        for number in range(1, 7)
    )


@pytest.fixture
def images(db: None) -> list[Image]:
    """Six images with the ids 1 to 6."""
    return make_images()


@pytest.fixture
def query(db: None) -> Query:
    """A completed query of the test split."""
    return make_query(30, "two storks on a nest ")


def judge_maker() -> Judge:
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


@pytest.fixture
def judge(images: list[Image]) -> Judge:
    """See `judge_maker`."""
    return judge_maker()


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

"""One of everything that addresses name, made once for all tests."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.test import override_settings

from annotator.postgres.guardian import locked
from tests.annotator import sockets
from tests.annotator.beside import database_beside, working_on
from tests.annotator.world import World, make_world
from tests.databases import copy_database
from tests.settings import SESSION_DIR

NAME = "everything"


@pytest.fixture
def sockets_of_requests() -> Iterator[list[str]]:
    """Whom requests ask outside of this process and must not: nobody, when the test is over."""
    sockets.listen()
    yield sockets.asked
    sockets.stop()
    assert sockets.asked == []


@pytest.fixture(scope="session")
def world_made(django_db_setup: None, django_db_blocker: Any) -> bytes:
    """What there is, pickled: the first process that asks makes it, with the database NAME and its
    files, which are only copied. Its lists can be longer.
    """
    folder = SESSION_DIR / NAME
    with locked(SESSION_DIR / "run" / f"{NAME}.lock"), django_db_blocker.unblock():
        if not (folder / "world").exists():
            folder.mkdir()
            copy_database(NAME)
            with override_settings(CANDIDATE_DEPTH=10), working_on(NAME):
                (folder / "world").write_bytes(pickle.dumps(make_world(django_settings, folder)))
    return (folder / "world").read_bytes()


@pytest.fixture(scope="module")
def copied_world(
    world_made: bytes, django_db_blocker: Any, tmp_path_factory: Any
) -> Iterator[Path]:
    """A copy for the tests of a file, which leave it as it is; its VAR_DIR."""
    with django_db_blocker.unblock(), database_beside("copied", NAME) as name, working_on(name):
        yield copied_files(tmp_path_factory.mktemp(NAME))


@pytest.fixture
def world(copied_world: Path, db: None, world_made: bytes, settings: Any) -> World:
    """One of everything, for tests whose changes are rolled back."""
    return opened(world_made, copied_world, settings)


@pytest.fixture
def own_world(
    world_made: bytes, transactional_db: None, settings: Any, tmp_path: Path
) -> Iterator[World]:
    """One of everything, for a test that commits or has others look at the database."""
    with database_beside("own", NAME) as name, working_on(name):
        yield opened(world_made, copied_files(tmp_path), settings)


def copied_files(folder: Path) -> Path:
    """A VAR_DIR with the world's files, in a folder."""
    return Path(shutil.copytree(SESSION_DIR / NAME / "var", folder / "var"))


def opened(world_made: bytes, var_dir: Path, settings: Any) -> World:
    """The world, with the settings that it was made with."""
    world: World = pickle.loads(world_made)
    settings.VAR_DIR = var_dir
    settings.EMBEDDING_MODEL = world.model
    settings.RELEASE_AUDIT_SHARE = 0.5
    return world

"""A backup brings back everything as of one moment, and nothing passes for one that isn't whole.
(One that is killed: test_faults.py.)
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.db.models.functions import Now
from django.test import override_settings

from annotator.backup.archive import BackupDamaged, archive_header, archive_verify
from annotator.backup.contents import folders
from annotator.backup.services import DAILY, RESTORING, backup_is_due, backup_write, daily_backup
from annotator.models import Backup
from annotator.processes import worker
from evaluation.runs.models import Run
from releases.models import Release
from retrieval.corpus.models import Image
from retrieval.corpus.shown import cache_folder
from retrieval.images.storage import stored_paths
from tests import ROOT
from tests.annotator.beside import ask, database_beside, working_on
from tests.annotator.world import IMAGES, World
from tests.databases import cursor_on
from tests.processes import database_url, wait_for
from tests.retrieval.making import coco
from tests.threads import WAITING

#: Its row tells of the backup itself, and changes with its end.
OWN = "annotator_backup"


@contextmanager
def another_place(folder: Path, **settings: Any) -> Iterator[None]:
    """Work on an empty database and in another VAR_DIR, as another machine does."""
    folder.mkdir(exist_ok=True)
    with (
        database_beside("restored") as name,
        working_on(name),
        override_settings(VAR_DIR=folder, **settings),
    ):
        yield


def tables() -> dict[str, str]:
    """The checksum of each table's rows."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname FROM pg_class c WHERE relnamespace = 'public'::regnamespace "
            "AND relkind IN ('r', 'p') AND NOT EXISTS (SELECT FROM pg_depend d "
            "WHERE d.objid = c.oid AND d.deptype = 'e')"
        )
        found = {}
        for (table,) in cursor.fetchall():
            cursor.execute(f"SELECT md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {table} t")
            found[table] = cursor.fetchone()[0]
        return found


def files(var_dir: Path) -> dict[str, str]:
    """The checksum of each file in the folders of a backup."""
    return {
        str(path.relative_to(var_dir)): hashlib.sha256(path.read_bytes()).hexdigest()
        for folder in folders()
        for path in (var_dir / folder).rglob("*")
        if path.is_file()
    }


def backup_of_world(world: World, folder: Path) -> Path:
    Run.objects.create(
        release=world.release, task=Run.Task.FULL, kind=Run.Kind.RANDOM, name="Random order",
        ready_at=Now(),
    )  # fmt: skip
    # The toy images have no files, and one was taken down; the random order has none to have.
    assert len(backup_write(folder / "a.tar").missing) == IMAGES - 1
    return folder / "a.tar"


def test_a_backup_brings_back_every_row_and_file(
    own_world: World, settings: Any, tmp_path: Path, capsys: Any
) -> None:
    backup = backup_of_world(own_world, tmp_path)
    before = {name: sums for name, sums in tables().items() if name != OWN}
    stored = files(Path(settings.VAR_DIR))
    assert {"labeling_judgmentevent", "retrieval_embedding", "releases_release"} <= {
        name for name, sums in before.items() if sums
    }
    call_command("verify_backup", str(backup))
    assert "parts are whole" in capsys.readouterr().out
    restored = tmp_path / "restored"
    with another_place(restored):
        call_command("restore", str(backup), quiet=True)
        after = tables()
        assert {name: after.get(name) for name in before} == before
        assert files(restored) == stored != {}
        assert not (restored / RESTORING).exists()
        for command in ("verify_lists", "check_counts"):
            call_command(command)
        call_command("migrate", check_unapplied=True)
        assert Release.objects.made()
        for release in Release.objects.made():
            call_command("verify_release", str(release.pk))
        with pytest.raises(CommandError, match="The database isn't empty"):
            call_command("restore", str(backup), quiet=True)
        assert tables() == after


def test_what_is_written_meanwhile_is_not_in_it(
    transactional_db: None, settings: Any, tmp_path: Path
) -> None:
    settings.VAR_DIR = tmp_path / "var"
    call_command("import_images", str(coco(tmp_path)), quiet=True)
    count = Image.objects.count()

    def delete(files: int) -> None:
        if files == 1:
            ask(connection.settings_dict["NAME"], "DELETE FROM retrieval_image")

    backup_write(tmp_path / "a.tar", report=delete)
    assert not Image.objects.exists()
    with another_place(tmp_path / "restored"):
        # Of an image that may have been withdrawn then.
        kept = cache_folder() / "01/01-1-abcdef01.jpg"
        kept.parent.mkdir(parents=True)
        kept.touch()
        call_command("restore", str(tmp_path / "a.tar"), quiet=True)
        assert Image.objects.count() == count
        assert not kept.exists()


def test_damage_is_found_and_nothing_of_it_restored(
    transactional_db: None, settings: Any, tmp_path: Path
) -> None:
    settings.VAR_DIR = tmp_path / "var"
    call_command("import_images", str(coco(tmp_path)), quiet=True)
    backup_write(tmp_path / "a.tar")
    whole = (tmp_path / "a.tar").read_bytes()
    sha256 = Image.objects.values_list("sha256", flat=True)[0]
    at = whole.index(stored_paths(sha256)[0].read_bytes()) + 10
    damaged = {
        "is not as it was written": whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :],
        "is cut off": whole[: len(whole) // 2],
        "its checksums are missing": whole[: whole.rindex(b"SHA256SUMS")].ljust(
            -(-whole.rindex(b"SHA256SUMS") // 512) * 512, b"\0"
        ),
        "is no backup": b"not a backup",
    }
    for number, (problem, data) in enumerate(damaged.items()):
        path = tmp_path / f"damaged-{number}.tar"
        path.write_bytes(data)
        with pytest.raises(BackupDamaged, match=problem):
            archive_verify(path)
    restored = tmp_path / "restored"
    with another_place(restored):
        with pytest.raises(CommandError, match=f"{sha256}.source"):
            call_command("restore", str(tmp_path / "damaged-0.tar"), quiet=True)
        assert files(restored) == tables() == {}


@pytest.mark.faults
def test_a_killed_restore_is_done_again(
    transactional_db: None, settings: Any, tmp_path: Path
) -> None:
    settings.VAR_DIR = tmp_path / "var"
    call_command("import_images", str(coco(tmp_path)), quiet=True)
    images, stored = tables()["retrieval_image"], files(settings.VAR_DIR)
    backup_write(tmp_path / "a.tar")
    restored = tmp_path / "restored"
    with another_place(restored):
        name = connection.settings_dict["NAME"]
        variables = {
            "DATABASE_URL": database_url(connection.settings_dict),
            "VAR_DIR": str(restored),
        }
        with cursor_on(name) as cursor:
            # Nobody else can make a table of this name until we are done.
            cursor.execute("BEGIN; CREATE TABLE core_job ()")
            process = subprocess.Popen(
                [sys.executable, "manage.py", "restore", str(tmp_path / "a.tar")],
                cwd=ROOT,
                env=os.environ | variables | {"DJANGO_SETTINGS_MODULE": "annotator.settings"},
            )
            wait_for(lambda: ask(name, WAITING) != [(0,)], what="pg_restore to wait for the name")
            process.send_signal(signal.SIGKILL)
            process.wait()
            cursor.execute("ROLLBACK")
        wait_for(lambda: tables() == {}, what="the transaction to be undone")
        assert (restored / RESTORING).exists()
        assert files(restored) != {}
        call_command("restore", str(tmp_path / "a.tar"), quiet=True)
        assert (tables()["retrieval_image"], files(restored)) == (images, stored)


def test_missing_and_damaged_files_are_named(
    transactional_db: None, settings: Any, tmp_path: Path
) -> None:
    settings.VAR_DIR = tmp_path / "var"
    call_command("import_images", str(coco(tmp_path)), quiet=True)
    first, second = (
        stored_paths(one)[0] for one in Image.objects.values_list("sha256", flat=True)[:2]
    )
    first.unlink()
    second.write_bytes(b"another")
    with pytest.raises(CommandError) as refused:
        call_command("backup", str(tmp_path / "a.tar"), quiet=True)
    assert f"1 missing: images/{first.parent.parent.name}" in str(refused.value)
    assert f"{second.name}" in str(refused.value)
    assert archive_verify(tmp_path / "a.tar")
    assert Backup.objects.get().problem


def test_without_images(transactional_db: None, settings: Any, tmp_path: Path) -> None:
    settings.VAR_DIR = tmp_path / "var"
    call_command("import_images", str(coco(tmp_path)), quiet=True)
    call_command("backup", str(tmp_path / "a.tar"), no_images=True, quiet=True)
    assert not archive_header(tmp_path / "a.tar")["images"]
    with another_place(tmp_path / "restored"):
        call_command("restore", str(tmp_path / "a.tar"), quiet=True)
        assert files(tmp_path / "restored") == {}
        assert Image.objects.exists()


def test_one_a_day_is_made_and_some_are_kept(
    transactional_db: None, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = settings.BACKUP_DIR = tmp_path / "backups"
    settings.BACKUP_KEEP = 3
    folder.mkdir()
    for day in range(1, 8):
        (folder / f"{DAILY}-2026-01-0{day}T000000Z.tar").touch()
    (folder / "mine.tar").touch()
    assert backup_is_due()
    # A worker looks for it again and again, and has a process of its own write it.
    started: list[list[str]] = []
    with monkeypatch.context() as patch:
        patch.setattr(worker, "_backups", [])
        patch.setattr(subprocess, "Popen", lambda command, **_: started.append(command))
        worker.backup_start()
    [[_, _, program, *arguments]] = started
    assert program == "annotator"
    call_command(*arguments)
    assert len(list(folder.glob(f"{DAILY}*"))) == 3
    assert archive_verify(Backup.objects.get().file)
    assert (folder / "mine.tar").exists()
    assert not backup_is_due()
    assert daily_backup() is None
    Backup.objects.update(started_at=Now() - timedelta(days=1))
    assert backup_is_due()
    Backup.objects.update(finished_at=None, started_at=Now() - timedelta(minutes=10))
    assert not backup_is_due()


def test_admins_see_the_last_one(admin: Any, clients: Any) -> None:
    page = clients["admin"].get("/manage/").content.decode()
    assert "There is no backup yet" in page
    Backup.objects.create(file="/b/old.tar", size_bytes=2048, finished_at=Now())
    Backup.objects.create(file="/b/new.tar", problem="No space left on device")
    page = clients["admin"].get("/manage/").content.decode()
    assert "/b/old.tar" in page
    assert "No space left on device" in page
    assert "/b/old.tar" not in clients["reviewer"].get("/manage/").content.decode()


def test_of_a_newer_version(transactional_db: None, settings: Any, tmp_path: Path) -> None:
    settings.VAR_DIR = tmp_path / "var"
    name = connection.settings_dict["NAME"]
    newer = "INSERT INTO django_migrations (app, name, applied) VALUES ('core', '0999_new', now())"
    ask(name, newer)
    try:
        backup_write(tmp_path / "a.tar")
    finally:
        ask(name, "DELETE FROM django_migrations WHERE name = '0999_new'")
    with another_place(tmp_path / "restored"):
        with pytest.raises(CommandError, match=r"doesn't know core\.0999_new"):
            call_command("restore", str(tmp_path / "a.tar"), quiet=True)
        assert tables() == {}

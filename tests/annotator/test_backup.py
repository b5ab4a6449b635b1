"""A backup brings back everything as of one moment, and nothing passes for one that isn't whole."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.db.models.functions import Now

from annotator.backup.archive import BackupDamaged, archive_header, archive_verify
from annotator.backup.contents import FOLDERS
from annotator.backup.daily import backup_is_due, daily_backup
from annotator.backup.services import DAILY, RESTORING, backup_write
from annotator.models import Backup
from benchmark.releases.models import Release
from benchmark.runs.models import Run
from benchmark.species.models import SpeciesRun
from core import storage
from retrieval.corpus.models import Image
from retrieval.embedding.models import EmbeddingModel
from retrieval.images.storage import stored_paths
from tests.annotator.world import IMAGES, make_world
from tests.processes import ROOT, database_url, killed, wait_for
from tests.retrieval.making import coco

#: Its row tells of the backup itself, and changes with its end.
OWN = "annotator_backup"


@contextmanager
def other_database() -> Iterator[dict[str, Any]]:
    """An empty database beside the tests' own: Django's settings of it."""
    name = f"restored_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
    known = connection.settings_dict
    with closing(psycopg2.connect(host=known["HOST"], user=known["USER"], dbname="postgres")) as to:
        to.autocommit = True
        with to.cursor() as cursor:
            cursor.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            cursor.execute(f"CREATE DATABASE {name}")
            yield known | {"NAME": name}
            cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")


def connected(database: dict[str, Any]) -> Any:
    return psycopg2.connect(host=database["HOST"], user=database["USER"], dbname=database["NAME"])


def manage(
    database: dict[str, Any], var_dir: Path, *arguments: str, model: str = "demo", **more: str
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=os.environ
        | {
            "DATABASE_URL": database_url(database),
            "VAR_DIR": str(var_dir),
            "EMBEDDING_MODEL": model,
            "DJANGO_SETTINGS_MODULE": "annotator.settings",
            **more,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def done(process: subprocess.Popen[str]) -> str:
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return out


def tables(database: dict[str, Any]) -> dict[str, str]:
    """The checksum of each table's rows."""
    with closing(connected(database)) as own, own.cursor() as cursor:
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
        for folder in FOLDERS
        for path in (var_dir / folder).rglob("*")
        if path.is_file()
    }


def backup_of_world(settings: Any, folder: Path) -> Path:
    world = make_world(settings, folder)
    Run.objects.create(
        release=world.release, task=Run.Task.FULL, kind=Run.Kind.RANDOM, name="Random order",
        ready_at=Now(),
    )  # fmt: skip
    species_run = SpeciesRun.objects.create(
        embedding_model=EmbeddingModel.objects.earliest("pk"), scope="all", naming="sci", images=1
    )
    with storage.writing(species_run.path) as file:
        file.write(b"answers")
    # The toy images have no files, and one was taken down; the random order has none to have.
    assert len(backup_write(folder / "a.tar").missing) == IMAGES - 1
    return folder / "a.tar"


def test_a_backup_brings_back_every_row_and_file(
    transactional_db: None, settings: Any, tmp_path: Path, capsys: Any
) -> None:
    backup = backup_of_world(settings, tmp_path)
    before = {name: sums for name, sums in tables(connection.settings_dict).items() if name != OWN}
    assert {"labeling_judgmentevent", "retrieval_embedding", "benchmark_release"} <= {
        name for name, sums in before.items() if sums
    }
    call_command("verify_backup", str(backup))
    assert "parts are whole" in capsys.readouterr().out
    restored = tmp_path / "restored"
    with other_database() as database:
        assert "Restored the state of" in done(manage(database, restored, "restore", str(backup)))
        after = tables(database)
        assert {name: after.get(name) for name in before} == before
        assert files(restored) == files(Path(settings.VAR_DIR)) != {}
        assert any(name.startswith("species_runs/") for name in files(restored))
        assert not (restored / RESTORING).exists()
        model = settings.EMBEDDING_MODEL
        checks = [("verify_lists",), ("check_counts",), ("migrate", "--check")]
        checks += [("verify_release", str(one.pk)) for one in Release.objects.made()]
        assert len(checks) > 3
        code = "from django.core.management import call_command\n"
        code += "".join(f"call_command(*{one})\n" for one in checks)
        done(manage(database, restored, "shell", "-c", code, model=model))
        again = manage(database, restored, "restore", str(backup))
        assert "The database isn't empty" in again.communicate()[1]
        assert tables(database) == after


def test_what_is_written_meanwhile_is_not_in_it(
    transactional_db: None, settings: Any, tmp_path: Path
) -> None:
    settings.VAR_DIR = tmp_path / "var"
    call_command("import_images", str(coco(tmp_path)), quiet=True)
    count = Image.objects.count()

    def delete(files: int) -> None:
        if files == 1:
            with closing(connected(connection.settings_dict)) as other, other.cursor() as cursor:
                cursor.execute("DELETE FROM retrieval_image")
                other.commit()

    backup_write(tmp_path / "a.tar", report=delete)
    assert not Image.objects.exists()
    with other_database() as database:
        done(manage(database, tmp_path / "restored", "restore", str(tmp_path / "a.tar")))
        with closing(connected(database)) as other, other.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM retrieval_image")
            assert cursor.fetchone() == (count,)


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
    restored = tmp_path / "restored"
    with other_database() as database:
        for number, (problem, data) in enumerate(damaged.items()):
            path = tmp_path / f"damaged-{number}.tar"
            path.write_bytes(data)
            with pytest.raises(BackupDamaged, match=problem):
                archive_verify(path)
        out = manage(database, restored, "restore", str(tmp_path / "damaged-0.tar"))
        assert f"{sha256}.source" in out.communicate()[1]
        assert files(restored) == {}
        assert tables(database) == {}


def test_a_killed_backup_leaves_none(transactional_db: None, settings: Any, tmp_path: Path) -> None:
    settings.VAR_DIR = tmp_path / "var"
    call_command("import_images", str(coco(tmp_path)), quiet=True)
    source = stored_paths(Image.objects.values_list("sha256", flat=True)[0])[0]
    kept = source.rename(tmp_path / "kept")
    # Who opens it waits for the other side.
    os.mkfifo(source)
    target = tmp_path / "backups" / "a.tar"
    process = manage(connection.settings_dict, settings.VAR_DIR, "backup", str(target), "--quiet")
    wait_for(lambda: list(target.parent.glob(".a.tar.*")), what="the backup to begin")
    killed(process)
    assert not target.exists()
    source.unlink()
    kept.rename(source)
    backup_write(target)
    assert archive_verify(target)
    assert [path.name for path in target.parent.iterdir()] == ["a.tar"]
    assert [one.finished_at is None for one in Backup.objects.order_by("pk")] == [True, False]


def test_a_killed_restore_is_done_again(
    transactional_db: None, settings: Any, tmp_path: Path
) -> None:
    settings.VAR_DIR = tmp_path / "var"
    call_command("import_images", str(coco(tmp_path)), quiet=True)
    backup_write(tmp_path / "a.tar")
    restored = tmp_path / "restored"
    with other_database() as database:
        with closing(connected(database)) as other, other.cursor() as cursor:
            # Nobody else can make a table of this name until we are done.
            cursor.execute("CREATE TABLE core_job ()")
            process = manage(database, restored, "restore", str(tmp_path / "a.tar"))
            waits = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = %s"

            def waiting() -> bool:
                with closing(connected(database)) as third, third.cursor() as looking:
                    looking.execute(waits, [database["NAME"]])
                    return looking.fetchone() is not None

            wait_for(waiting, what="pg_restore to wait for the name")
            process.send_signal(signal.SIGKILL)
            process.communicate()
            other.rollback()
        wait_for(lambda: tables(database) == {}, what="the transaction to be undone")
        assert (restored / RESTORING).exists()
        assert files(restored) != {}
        done(manage(database, restored, "restore", str(tmp_path / "a.tar")))
        assert (
            tables(database)["retrieval_image"]
            == tables(connection.settings_dict)["retrieval_image"]
        )
        assert files(restored) == files(Path(settings.VAR_DIR))


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
    with other_database() as database:
        done(manage(database, tmp_path / "restored", "restore", str(tmp_path / "a.tar")))
        assert files(tmp_path / "restored") == {}
        assert tables(database)["retrieval_image"]


def test_one_a_day_is_made_by_a_worker_and_some_are_kept(
    start_worker: Any, settings: Any, tmp_path: Path
) -> None:
    folder = settings.BACKUP_DIR = tmp_path / "backups"
    folder.mkdir()
    for day in range(1, 8):
        (folder / f"{DAILY}-2026-01-0{day}T000000Z.tar").touch()
    (folder / "mine.tar").touch()
    assert backup_is_due()
    start_worker(BACKUP_DIR=str(folder), BACKUP_KEEP="3")
    wait_for(lambda: Backup.objects.exclude(finished_at=None).exists(), what="the daily backup")
    wait_for(lambda: len(list(folder.glob(f"{DAILY}*"))) == 3, what="old ones to go")
    newest = Path(Backup.objects.get().file)
    assert archive_verify(newest)
    assert (folder / "mine.tar").exists()
    assert not backup_is_due()
    assert daily_backup() is None
    Backup.objects.update(started_at=Now() - timedelta(days=1))
    assert backup_is_due()
    Backup.objects.update(finished_at=None, started_at=Now() - timedelta(minutes=10))
    assert not backup_is_due()


def test_admins_see_the_last_one(transactional_db: None, admin: Any, clients: Any) -> None:
    page = clients["admin"].get("/corpus/").content.decode()
    assert "None was made yet" in page
    Backup.objects.create(file="/b/old.tar", size_bytes=2048, finished_at=Now())
    Backup.objects.create(file="/b/new.tar", problem="No space left on device")
    page = clients["admin"].get("/corpus/").content.decode()
    assert "/b/old.tar" in page
    assert "No space left on device" in page
    assert "/b/old.tar" not in clients["reviewer"].get("/corpus/").content.decode()


def test_of_a_newer_version(transactional_db: None, settings: Any, tmp_path: Path) -> None:
    settings.VAR_DIR = tmp_path / "var"
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO django_migrations (app, name, applied) VALUES ('core', '0999_new', now())"
        )
    try:
        backup_write(tmp_path / "a.tar")
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM django_migrations WHERE name = '0999_new'")
    with other_database() as database:
        out = manage(database, tmp_path / "restored", "restore", str(tmp_path / "a.tar"))
        assert "doesn't know core.0999_new" in out.communicate()[1]
        assert tables(database) == {}

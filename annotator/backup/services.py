"""Backups: the database and the files that it names, as of one moment, in one file."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from glob import escape
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.db import Error, connection
from django.db.migrations.loader import MigrationLoader
from django.db.models import Q
from django.db.models.functions import Now

from annotator.backup.archive import (
    DATABASE,
    HEADER,
    SUMS,
    BackupDamaged,
    archive_header,
    archive_verify,
    archive_writer,
    members,
)
from annotator.backup.contents import Named, folders, named_files
from annotator.environment import MODEL_FILE
from annotator.models import Backup
from annotator.postgres.programs import program
from annotator.upgrades import TOO_OLD, is_too_old
from core import __version__, storage
from core.errors import Conflict
from core.files import is_below, whole_file
from core.locks import lock_key, try_session_lock
from core.sql import repeatable_read
from retrieval.corpus.shown import cache_folder

DUMP_OPTIONS: Final = ("--format=custom", "--compress=gzip:1", "--no-owner", "--no-privileges")
RESTORE_OPTIONS: Final = (
    *("--exit-on-error", "--single-transaction", "--no-owner", "--no-privileges"),
    # Which only the owner of an extension may set.
    "--no-comments",
)
DAILY: Final = "inquire-annotator"
"""What the names of daily backups begin with."""
EVERY: Final = timedelta(days=1)
RETRY: Final = timedelta(hours=1)
"""After a daily backup that failed or was killed."""
RESTORING: Final = "restoring"
"""The file below VAR_DIR that says that a restore has begun and not ended."""

Report = Callable[[int], None]


class BackupRunning(Conflict):
    """Another backup of this database is being written."""


class RestoreRefused(Exception):
    """A backup can't be restored here; the text says why and what to do."""


@dataclass(slots=True)
class Contents:
    """What a backup holds."""

    files: int = 0
    size_bytes: int = 0
    missing: list[str] = field(default_factory=list)
    """Files that the database names and that are not there."""
    damaged: list[str] = field(default_factory=list)
    """Files whose SHA-256 is not the one in the database."""

    @property
    def problem(self) -> str:
        """A sentence on what is missing or damaged, or an empty one."""
        found = (("missing", self.missing), ("damaged", self.damaged))
        return " ".join(
            f"{len(names)} {what}: {', '.join(names[:10])}{' …' if names[10:] else '.'}"
            for what, names in found
            if names
        )


def backup_write(
    path: Path | str,
    *,
    images: bool = True,
    daily: bool = False,
    report: Report = lambda files: None,
) -> Contents:
    """Write a backup to `path`, which may be s3://bucket/prefix/name, where it appears whole or not
    at all, while everything goes on.

    The files are those that the database names at the moment of the dump, without `images` none of
    copied images. What is missing or damaged is listed, and the rest written. Raises BackupRunning,
    ProgramFailed where pg_dump fails, and OSError.
    """
    place, name = storage.storage_of(path)
    with try_session_lock(lock_key("backup")) as held:
        if not held:
            raise BackupRunning("Another backup is being written.")
        _remove_killed()
        if isinstance(place, storage.Disk):
            path = Path(place.path(name))
        backup = Backup.objects.create(file=str(path), daily=daily, images=images)
        rows = Backup.objects.filter(pk=backup.pk)
        try:
            contents = _write(path, named_files(images=images), images=images, report=report)
        except BaseException as error:
            with suppress(Error):
                rows.update(problem=str(error).strip() or type(error).__name__)
            raise
        rows.update(
            finished_at=Now(), size_bytes=contents.size_bytes, problem=contents.problem[:2000]
        )
    return contents


def _remove_killed() -> None:
    """Delete what killed backups of any name have left, while no other is being written."""
    killed = Backup.objects.filter(finished_at=None, problem="")
    for path in map(Path, killed.values_list("file", flat=True)):
        # Of one in a bucket nothing lies here.
        for draft in path.parent.glob(f".{escape(path.name[:100])}.????????"):
            draft.unlink(missing_ok=True)


def dump_write(path: Path) -> None:
    """Write a backup of the database alone, whatever version it is of. Raises as `backup_write`."""
    _write(path, (), images=False, report=lambda files: None)


def _write(path: Path | str, files: Iterable[Named], *, images: bool, report: Report) -> Contents:
    contents = Contents()
    place, name = storage.storage_of(path)
    with place.writing(name) as file, repeatable_read():
        with archive_writer(file, _header(images=images)) as archive:
            for one in files:
                member = storage.name_of(one.path)
                try:
                    with storage.reading(one.path) as source:
                        found = archive.add_file(member, source)
                except FileNotFoundError:
                    contents.missing += [member] if one.needed else []
                    continue
                if one.sha256 and found != one.sha256:
                    contents.damaged.append(member)
                contents.files += 1
                report(contents.files)
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_export_snapshot()")
                moment = cursor.fetchone()[0]
            options = (*DUMP_OPTIONS, f"--snapshot={moment}")
            with program("pg_dump", *options, stdout=subprocess.PIPE) as dump:
                assert dump.stdout is not None
                archive.add_database(dump.stdout)
        contents.size_bytes = file.tell()
    return contents


def _header(*, images: bool) -> dict[str, Any]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('server_version'), clock_timestamp()")
        server, moment = cursor.fetchone()
    applied = MigrationLoader(connection).applied_migrations or ()
    return {
        "software": __version__,
        "postgresql": server,
        "moment": moment.astimezone(UTC).isoformat(timespec="seconds"),
        "images": images,
        "migrations": sorted(".".join(key) for key in applied),
    }


def backup_restore(path: Path | str, *, report: Report = lambda files: None) -> dict[str, Any]:
    """Bring a backup's files into VAR_DIR, or the bucket of STORAGE_URL, and its database into the
    empty one of the settings; returns what the backup says of itself.

    Everything is checked first. The database comes last and whole or not at all; a restore that was
    cut short is done again. Raises BackupDamaged, RestoreRefused, ProgramFailed, OSError.
    """
    header = archive_header(path)
    _check_place(header)
    archive_verify(path)
    marker = Path(settings.VAR_DIR) / RESTORING
    marker.touch()
    # The files of images that the database of an earlier moment knows as withdrawn.
    shutil.rmtree(cache_folder(), ignore_errors=True)
    reader = members(path)
    count = 0
    for member in reader:
        if member.name.startswith(DATABASE):
            with program("pg_restore", *RESTORE_OPTIONS, "-d", stdin=subprocess.PIPE) as restoring:
                assert restoring.stdin is not None
                shutil.copyfileobj(member.file, restoring.stdin)
                for piece in reader:
                    if not piece.name.startswith(DATABASE):
                        break
                    shutil.copyfileobj(piece.file, restoring.stdin)
        elif member.name not in (HEADER, SUMS):
            writing = whole_file if member.name == MODEL_FILE else storage.writing
            with writing(_target(member.name), durable=False) as file:
                shutil.copyfileobj(member.file, file)
            count += 1
            report(count)
    os.sync()
    marker.unlink()
    return header


def _target(name: str) -> Path:
    if not is_below(name) or name.partition("/")[0] not in (*folders(), MODEL_FILE):
        raise BackupDamaged(
            f"The backup holds {name!r}, which has no place here. Does EXTRAS lack an extra?"
        )
    return Path(settings.VAR_DIR) / name


def _check_place(header: dict[str, Any]) -> None:
    """Refuse to restore over anything, and what this program is too old or too new for."""
    if is_too_old(name.partition(".")[0] for name in header["migrations"]):
        raise RestoreRefused(f"The backup {TOO_OLD}.")
    loader = MigrationLoader(None)
    known = {".".join(key) for key in loader.disk_migrations or ()}
    newer = [
        name
        for name in header["migrations"]
        if name not in known and name.partition(".")[0] in loader.migrated_apps
    ]
    if newer:
        raise RestoreRefused(
            f"The backup was made by version {header['software']}, and this is {__version__}, "
            f"which doesn't know {newer[-1]}. Install that version or a later one."
        )
    if connection.introspection.table_names():
        raise RestoreRefused(
            "The database isn't empty, and a backup is restored into an empty one: name another "
            "folder by VAR_DIR or another database by DATABASE_URL."
        )
    var_dir = Path(settings.VAR_DIR)
    filled = [name for name in folders() if any(storage.names_below(var_dir / name))]
    if header["images"] and filled and not (var_dir / RESTORING).exists():
        raise RestoreRefused(
            f"{storage.shown(var_dir / filled[0])} isn't empty: name another folder by VAR_DIR, or "
            "another prefix by STORAGE_URL."
        )


def file_name(prefix: str) -> str:
    """The name of a backup that begins now, by which the files sort by age."""
    return f"{prefix}-{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}.tar"


def prune(folder: Path | str, prefix: str, *, keep: int) -> None:
    """Delete all but the last `keep` backups that `file_name` has named in a folder or bucket."""
    place = storage.storage_at(folder)
    named = re.compile(rf"{prefix}-\d{{4}}-\d\d-\d\dT\d{{6}}Z\.tar")
    _, names = place.listdir("")
    for old in sorted(filter(named.fullmatch, names))[:-keep]:
        place.delete(old)


def backup_is_due() -> bool:
    """Whether BACKUP_DIR is set and no daily backup was made within a day, or tried just now."""
    if not settings.BACKUP_DIR:
        return False
    made = Q(finished_at__isnull=False, started_at__gt=Now() - EVERY)
    tried = Q(finished_at=None, started_at__gt=Now() - RETRY)
    return not Backup.objects.filter(made | tried, daily=True).exists()


def daily_backup() -> Contents | None:
    """Write the backup of today into BACKUP_DIR and delete old ones; None where none is due.

    Raises as `backup_write`.
    """
    if not backup_is_due():
        return None
    return backup_to_folder()


def backup_folder() -> str:
    """Where backups go that name no file: BACKUP_DIR, or a folder below VAR_DIR."""
    return settings.BACKUP_DIR or f"{settings.VAR_DIR}/backups"


def backup_to_folder() -> Contents:
    """Write a backup into `backup_folder` and delete old ones. Raises as `backup_write`."""
    folder = backup_folder()
    if not settings.BACKUP_DIR:
        Path(folder).mkdir(exist_ok=True)
    contents = backup_write(f"{folder}/{file_name(DAILY)}", daily=True)
    prune(folder, DAILY, keep=settings.BACKUP_KEEP)
    return contents

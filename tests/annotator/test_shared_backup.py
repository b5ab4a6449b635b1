"""Backups of, into and out of buckets, and files that move from one storage to another."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from annotator.backup.archive import archive_verify
from annotator.backup.contents import folders
from annotator.backup.services import DAILY, daily_backup
from annotator.models import Backup
from core import storage
from core.storage import Disk, storage_at
from retrieval.corpus.models import Image
from retrieval.images.storage import stored_paths
from tests.annotator.test_backup import OWN, another_place, backup_of_world, files, tables
from tests.annotator.world import IMAGES, World
from tests.retrieval.buckets import client
from tests.retrieval.making import coco

pytestmark = pytest.mark.django_db(transaction=True)


def objects(url: str) -> dict[str, bytes]:
    """The content of each object below a prefix, by its name there."""
    found = storage_at(url)
    held = {}
    for name in found.names(""):
        with found.reading(name) as file:
            held[name] = file.read()
    return held


def shared(url: str) -> dict[str, bytes]:
    """Those in the folders of a backup."""
    return {n: data for n, data in objects(url).items() if n.partition("/")[0] in folders()}


def test_a_backup_goes_from_a_bucket_into_another(
    in_bucket: Any, own_world: World, settings: Any, tmp_path: Path
) -> None:
    # The world was made with files on the disk.
    with pytest.raises(CommandError, match=f"Missing: {IMAGES - 1}, damaged: 0"):
        call_command("migrate_storage", "--from=files", f"--to={settings.STORAGE_URL}", "--quiet")
    for folder in folders():
        shutil.rmtree(settings.VAR_DIR / folder, ignore_errors=True)
    backup_of_world(own_world, tmp_path)
    before = {name: sums for name, sums in tables().items() if name != OWN}
    assert files(Path(settings.VAR_DIR)) == {}
    settings.BACKUP_DIR = "s3://other/backups"
    settings.BACKUP_KEEP = 2
    for day in (1, 2):
        with storage_at(settings.BACKUP_DIR).writing(f"{DAILY}-2026-01-0{day}T000000Z.tar"):
            pass
    assert daily_backup() is not None
    kept = sorted(objects(settings.BACKUP_DIR))
    assert kept[0] == f"{DAILY}-2026-01-02T000000Z.tar"
    last = f"{settings.BACKUP_DIR}/{kept[1]}"
    assert len(kept) == 2
    assert Backup.objects.latest("pk").file == last
    assert archive_verify(last)
    call_command("verify_backup", last)
    with another_place(tmp_path / "two"):
        with pytest.raises(CommandError, match="s3://state/here/releases isn't empty"):
            call_command("restore", last, quiet=True)
        assert tables() == {}
    elsewhere = {"STORAGE_URL": "s3://state/restored", "STORAGES": {**settings.STORAGES}}
    with another_place(tmp_path / "two", **elsewhere):
        call_command("restore", last, quiet=True)
        after = tables()
        assert {name: after.get(name) for name in before} == before
        assert files(tmp_path / "two") == {}
    assert shared("s3://state/restored") == shared("s3://state/here") != {}


def test_files_move_into_a_bucket_and_back_and_damage_is_found(
    in_bucket: Any, settings: Any, tmp_path: Path, capsys: Any
) -> None:
    settings.VAR_DIR = tmp_path / "var"
    bucket = settings.STORAGE_URL
    settings.STORAGE_URL = ""
    settings.STORAGES = {**settings.STORAGES, "default": {"BACKEND": "core.storage.Disk"}}
    call_command("import_images", str(coco(tmp_path)), quiet=True)
    (settings.VAR_DIR / "images" / "not named").touch()
    before = files(settings.VAR_DIR)

    def migrate(source: str, target: str) -> str:
        capsys.readouterr()
        call_command("migrate_storage", f"--from={source}", f"--to={target}", "--quiet")
        return str(capsys.readouterr().out)

    count = len(before) - 1
    assert migrate("files", bucket) == f"Copied: {count}, there already: 0\n"
    assert migrate("files", bucket) == f"Copied: 0, there already: {count}\n"
    held = objects(bucket)
    assert set(held) == before.keys() - {"images/not named"}
    assert migrate(bucket, "s3://other/moved") == f"Copied: {count}, there already: 0\n"
    assert objects("s3://other/moved") == held
    # One is damaged, one is lost: the others come to another machine.
    first, second = Image.objects.order_by("pk").values_list("sha256", flat=True)[:2]
    damaged, lost = (
        stored_paths(sha256)[0].relative_to(settings.VAR_DIR) for sha256 in (first, second)
    )
    s3 = client(in_bucket["S3_ENDPOINT_URL"])
    turned = held[str(damaged)][::-1]
    s3.put_object(Bucket="state", Key=f"here/{damaged}", Body=turned)
    s3.delete_object(Bucket="state", Key=f"here/{lost}")
    whole = Disk(settings.VAR_DIR)
    settings.VAR_DIR = tmp_path / "back"
    with pytest.raises(CommandError, match="Missing: 1, damaged: 1"):
        migrate(bucket, "files")
    out = capsys.readouterr().out
    assert {
        f"missing: {lost}",
        f"damaged: {damaged}",
        f"Copied: {count - 2}, there already: 0",
    } == {*out.splitlines()}
    assert not storage.exists(settings.VAR_DIR / damaged)
    # From where they are whole they are copied once more.
    settings.VAR_DIR = Path(whole.location)
    assert migrate("files", bucket) == f"Copied: 2, there already: {count - 2}\n"
    assert objects(bucket) == held
    settings.VAR_DIR = tmp_path / "back"
    assert migrate(bucket, "files") == f"Copied: 2, there already: {count - 2}\n"
    assert {name: before[name] for name in files(settings.VAR_DIR)} == files(settings.VAR_DIR)
    for places in (("files", "files"), ("files", "/srv"), (bucket, f"{bucket}/")):
        with pytest.raises(CommandError, match="Name two places"):
            migrate(*places)

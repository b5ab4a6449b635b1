"""A release's open files go to the Hugging Face Hub, and come back from there."""

from __future__ import annotations

import hashlib
import io
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from huggingface_hub import _upload_pipeline, constants
from huggingface_hub.utils import _http, _xet

from core.errors import Conflict
from releases.hub import publication_of, release_publish
from releases.making.services import release_export
from releases.models import Release
from releases.snapshot.snapshot import Snapshot
from tests.releases.conftest import World, judge_maker, make_images
from tests.releases.hub_stand_in import Hub, serving
from tests.releases.toy import make_query

pytestmark = pytest.mark.django_db

NAME = "birds/storks"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    monkeypatch.setenv("HF_TOKEN", "hf_token")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_XET_CACHE", str(tmp_path / "xet"))
    # A session knows what it has stored, and another test has another Hub.
    monkeypatch.setattr(_xet, "_GLOBAL_XET_HOLDER", _xet.XetSessionHolder())
    # Nothing waits before it is tried again.
    impatient = SimpleNamespace(**{**vars(time), "sleep": lambda seconds: None})
    monkeypatch.setattr(_http, "time", impatient)
    with serving() as served:
        file = f"{served.address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "ENDPOINT", served.address)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", file)
        yield served


@pytest.fixture(scope="module")
def made(world: World) -> int:
    """A release whose test labels are hidden."""
    make_images()
    judge, annotator = judge_maker(), world.person("annotator")
    val = make_query(30, "two storks on a nest", split="val")
    test = make_query(31, "a stork that yawns")
    for query, images, relevant in ((val, (1, 2, 3, 4), (1, 4)), (test, (3, 4, 5, 6), (3, 5))):
        for image in images:
            judge(query, image, annotator, "relevant" if image in relevant else "not_relevant")
    return release_export(name="Storks", directory=world.folder / "out", new=True).pk


@pytest.fixture
def release(made: int) -> Release:
    return Release.objects.get(pk=made)


def run(*arguments: str) -> str:
    output = io.StringIO()
    call_command(*arguments, stdout=output, stderr=output)
    return output.getvalue()


def publish(*options: str) -> str:
    return run("publish_release", "Storks", "--to", NAME, *options)


def entries(release: Release, access: str) -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in release.file_list if entry["access"] == access}


def lines(data: bytes) -> set[bytes]:
    return {line.strip(b" ,") for line in data.splitlines()}


def test_the_open_files_are_published_and_come_back_as_the_same_benchmark(
    world: World, release: Release, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, hidden = entries(release, "open"), entries(release, "labels")
    assert {"judgments.csv", "trec/qrels_test.txt", "snapshot/pairs.parquet"} < set(hidden)
    dry = publish("--dry-run")
    assert hub.requests == []
    assert f"{shown['DATASHEET.md']['size']:>15,}  DATASHEET.md\n" in dry
    for name in hidden:
        assert f"Withheld, as it holds hidden labels of the test split: {name}\n" in dry

    said = publish()
    assert f"{hub.address}/datasets/{NAME} (private): {len(shown) + 1} files sent, 0 there" in said
    assert f"Withheld, with hidden labels of the test split: {len(hidden)} files." in said
    files = {name: data for name, data in hub.files[NAME].items() if name != ".gitattributes"}
    card = files.pop("README.md").decode()
    assert {name: hashlib.sha256(data).hexdigest() for name, data in files.items()} == {
        name: entry["sha256"] for name, entry in shown.items()
    }
    assert card.startswith('---\npretty_name: "Storks v1"\nlicense: other\n')
    assert card.endswith(files["DATASHEET.md"].decode())
    # Neither a file of theirs nor one of their lines went over the wire.
    open_lines = {line for data in files.values() for line in lines(data)}
    secrets = set()
    for name in hidden:
        data = (release.directory / name).read_bytes()
        secrets |= {data} if name.endswith(".parquet") else lines(data) - open_lines
    assert any(secret.startswith(b"31,3,") for secret in secrets)
    assert [secret for secret in secrets if any(secret in body for body in hub.received)] == []

    # What was published is read as it lies there, also by `datasets`.
    folder = tmp_path / "copy"
    for name, data in hub.files[NAME].items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    import datasets

    for setting in ("HF_DATASETS_OFFLINE", "HF_HUB_OFFLINE"):
        monkeypatch.setattr(datasets.config, setting, True)
    datasets.disable_progress_bars()
    read = datasets.load_dataset(str(folder), "queries", cache_dir=str(tmp_path / "cache"))
    assert {split: part["query_id"][:] for split, part in read.items()} == {
        "validation": [30],
        "test": [31],
    }
    read = datasets.load_dataset(str(folder), "qrels", cache_dir=str(tmp_path / "cache"))
    assert {split: len(part) for split, part in read.items()} == {"validation": 4}

    run("import_benchmark", f"hf:{NAME}@v1", "--images", "none")
    assert any(f"/{NAME}/revision/v1" in request for request in hub.requests)
    assert not any("/huggingface/" in request for request in hub.requests if "/resolve/" in request)
    imported = Release.objects.get(name="storks")
    assert imported.origin == Release.Origin.IMPORTED
    before, after = Snapshot(release.snapshot_directory).open, Snapshot(imported.snapshot_directory)
    texts = [{number: (one.text, one.split) for number, one in snapshot.queries.items()}
             for snapshot in (before, after)]  # fmt: skip
    assert texts[0] == texts[1]
    pairs = [{(one.query_id, one.image_id, one.relevant) for one in snapshot.pairs()}
             for snapshot in (before, after)]  # fmt: skip
    assert pairs[0] == pairs[1]
    assert len(pairs[0]) == 4
    assert not list(world.folder.glob("var/.hub-*"))


def test_what_was_cut_short_goes_on_and_nothing_is_sent_twice(
    release: Release, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of 20 files.
    monkeypatch.setattr(_upload_pipeline, "INITIAL_COMMIT_SIZE_INDEX", 0)
    hub.steps_left = 1
    with pytest.raises(CommandError, match=r"can't be reached, or broke off: .*\. Run the command"):
        publish()
    assert len(hub.committed) == 20
    hub.steps_left = 100
    count = len(entries(release, "open")) + 1
    assert f"{count - 20} files sent, 20 there already, 0 removed" in publish()
    assert sorted(hub.committed) == sorted(set(hub.files[NAME]) - {".gitattributes"})
    assert f"0 files sent, {count} there already, 0 removed" in publish()
    # What an earlier version had goes, what changed is sent.
    hub.files[NAME]["huggingface/images/data/images-00007-of-00008.parquet"] = b"of v0"
    hub.files[NAME]["DATASHEET.md"] = b"of v0"
    assert f"1 file sent, {count - 1} there already, 1 removed" in publish()
    assert len(hub.committed) == count + 1 == len(hub.files[NAME])


@pytest.mark.filterwarnings("ignore:Use .content:DeprecationWarning")
def test_without_hf_xet_large_files_arent_sent_twice_either(
    release: Release, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    hub.steps_left = 3
    with pytest.raises(CommandError, match=r"can't be reached, or broke off: .*\. Run the command"):
        publish()
    assert (len(hub.large), hub.committed) == (3, [])
    first = list(hub.large.values())
    hub.steps_left = 100
    assert " 0 there already" in publish()
    assert [hub.received.count(data) for data in first] == [1, 1, 1]
    assert set(hub.files[NAME]) == {".gitattributes", "README.md", *entries(release, "open")}


def test_who_sees_a_repository_that_is_there_doesnt_change(release: Release, hub: Hub) -> None:
    hub.private[NAME] = False
    hub.files[NAME] = {"theirs.csv": b"1"}
    with pytest.raises(CommandError, match=f"{NAME} is public: --public"):
        publish()
    with pytest.raises(CommandError, match=rf"{NAME} holds theirs\.csv, and no release"):
        publish("--public")
    assert hub.committed == []
    hub.private[NAME], hub.files[NAME] = True, {}
    assert " (private): " in publish("--public")
    assert hub.private[NAME] is True


def test_the_folder_for_mteb_is_published_by_itself(release: Release, hub: Hub) -> None:
    with pytest.raises(CommandError, match="no files for mteb: make a version with --include-imag"):
        publish("--layout", "mteb")
    for name, access in (("README.md", "open"), ("qrels/val.parquet", "open"),
                         ("qrels/test.parquet", "labels")):  # fmt: skip
        path = release.directory / "mteb" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\n---\n{name}")
        size, sha256 = path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest()
        release.file_list.append({"name": f"mteb/{name}", "size": size, "sha256": sha256,
                                  "access": access, "format": "mteb"})  # fmt: skip
    publication = publication_of(release, "mteb")
    assert publication.withheld == ["mteb/qrels/test.parquet"]
    release_publish(publication=publication, repository=NAME, public=True)
    assert hub.private == {NAME: False}
    assert set(hub.files[NAME]) == {".gitattributes", "DATASHEET.md", "README.md",
                                    "qrels/val.parquet"}  # fmt: skip
    assert hub.files[NAME]["README.md"] == b"---\n---\nREADME.md"
    lost = replace(publication, files={"x": {"name": "trec/gone.txt", "size": 1, "sha256": ""}})
    with pytest.raises(Conflict, match=r"Storks v1 has lost its file trec/gone\.txt"):
        release_publish(publication=lost, repository=NAME, public=True)


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (401, f"doesn't know you, or has no {NAME}: set HF_TOKEN, or log in by “hf auth login”."),
        (403, f"Your token isn't allowed to do that with {NAME} on http"),
        (404, f"has no data set {NAME}, or your token may not see it."),
        (400, "answered with status 400: "),
    ],
)
def test_what_the_hub_refuses_is_one_sentence(
    release: Release, hub: Hub, status: int, sentence: str
) -> None:
    hub.status = status
    for command in (publish, lambda: run("import_benchmark", f"hf:{NAME}")):
        with pytest.raises(CommandError) as caught:
            command()
        assert sentence in str(caught.value)
        assert "\n" not in str(caught.value)


def test_without_a_hub_and_with_a_name_that_is_none_the_commands_say_so(
    release: Release, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("storks", "a/b/c", "a/..", "a b/c"):
        for command in (("import_benchmark", f"hf:{name}"),
                        ("publish_release", "Storks", "--dry-run", "--to", name)):  # fmt: skip
            with pytest.raises(CommandError, match=f"“{name}” is no name of a data set"):
                run(*command)
    with pytest.raises(CommandError, match="without --background"):
        run("import_benchmark", f"hf:{NAME}", "--background")
    assert hub.requests == []
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    for command in (publish, lambda: run("import_benchmark", f"hf:{NAME}")):
        with pytest.raises(CommandError, match=r"http://127\.0\.0\.1:9 can't be reached, or broke"):
            command()

"""Uploaded folders of any kind: which folder is read, what the preview says, and the switch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from django.test import Client

from core.jobs.models import Job
from core.jobs.services import job_slice_run
from retrieval.corpus.models import Image, Species
from retrieval.images.storage import content_hash
from tests.retrieval.making import image_row, jpeg
from tests.retrieval.test_uploads import begin, imported, looked, send, zipped

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]


def files(*paths: str) -> dict[str, bytes]:
    return {path: jpeg(size=(20 + number, 30)) for number, path in enumerate(paths)}


def previewed(client: Client, sent: Mapping[str, bytes]) -> tuple[str, dict[str, Any]]:
    address = begin(client)
    for path, data in sent.items():
        send(client, address, path, data)
    looked(client, address)
    job = Job.objects.filter(kind="preview").latest("pk")
    assert job.state == "done", job.error
    return address, job.result


def names(result: Mapping[str, Any], kind: str) -> dict[str, int]:
    return {one["name"]: one["images"] for one in result["names"][kind]}


@pytest.mark.parametrize(
    ("sent", "dataset", "species", "folders", "taxa"),
    [
        # The folder that was chosen names the data set, and those below it the images.
        (files("animals/birds/1.jpg", "animals/cats/2.jpg"), "animals", {}, {"birds", "cats"}, {}),
        (files("animals/birds/1.jpg"), "animals", {}, {"birds"}, {}),
        (files("birds/1.jpg", "birds/2.jpg"), "upload", {}, {"birds"}, {}),
        # A ZIP file is mostly called by its folder, which a number may follow.
        ({"mine.zip": zipped(files("mine/birds/1.jpg"))}, "mine", {}, {"birds"}, {}),
        ({"mine (1).zip": zipped(files("mine/a/b/1.jpg"))}, "a", {}, {"a/b"}, {}),
        ({"mine.zip": zipped(files("animals/birds/1.jpg"))}, "animals", {}, {"animals/birds"}, {}),
        # A species' folder is read, though it is alone (row 50).
        (files("photos/Rana temporaria/2023/a.jpg"), "photos", {"Rana temporaria"}, {"2023"}, {}),
        (files("Rana temporaria/2023/a.jpg"), "upload", {"Rana temporaria"}, {"2023"}, {}),
        (files("Turdus/2023/a.jpg"), "Turdus", {}, {"2023"}, {"Turdus"}),
        # Backslashes of Windows (row 51).
        (
            {"mine.zip": zipped(files(r"mine\Rana temporaria\1.jpg", r"mine\x\2.jpg"))},
            "mine", {"Rana temporaria"}, {"x"}, {},
        ),
        # Two parts of Takeout are one folder (row 57).
        (
            {
                f"takeout-2023-{part}.zip": zipped(
                    files(f"Takeout/Google Photos/2023/{part}.jpg") | {
                        f"Takeout/Google Photos/2023/{part}.jpg.json": b"{}",
                        "Takeout/Google Photos/2023/metadata.json": b"{}",
                    }
                )
                for part in ("001", "002")
            },
            "Google Photos", {}, {"Google Photos/2023"}, {},
        ),
        # The layout of imagefolder (row 56).
        (
            files("data/train/Bufo bufo/1.jpg", "data/test/Bufo bufo/1.jpg"),
            "data", {"Bufo bufo"}, {"train", "test"}, {},
        ),
        (files("1.jpg", "2.jpg") | {"1.jpg.json": b"{}"}, "upload", {}, {}, {}),
    ],
)  # fmt: skip
def test_what_a_single_folder_says(
    clients: dict[str, Client],
    sent: Mapping[str, bytes],
    dataset: str,
    species: set[str],
    folders: set[str],
    taxa: set[str],
) -> None:
    _, result = previewed(clients["admin"], sent)
    assert result["dataset"] == dataset
    for kind, wanted in (("species", species), ("folders", folders), ("taxa", taxa)):
        assert set(names(result, kind)) == set(wanted), kind


def test_a_tree_by_subject_and_the_switch(clients: dict[str, Client]) -> None:
    client = clients["admin"]
    subjects = [f"{kind}/{name}" for kind in ("animals", "things") for name in "abcdefgh"]
    paths = [f"mine/{subject}/{number}.jpg" for subject in subjects for number in (1, 2)]
    tree = files(*paths, "mine/Käfer & Co./1.jpg", "mine/Turdus/1.jpg", "mine/turdus merula/1.jpg")
    address, result = previewed(client, {"mine.zip": zipped(tree)})
    assert (result["images"], result["refused_count"]) == (35, 0)
    numbers = {name: result[name] for name in ("species", "folder_names", "taxon_texts")}
    assert numbers == {"species": 1, "folder_names": 17, "taxon_texts": 1}
    assert (len(result["names"]["folders"]), names(result, "folders")["animals/b"]) == (12, 2)
    assert names(result, "species") == {"Turdus merula": 1}
    page = client.get(address).content.decode()
    assert "<dt>Images without a species</dt><dd>34</dd>" in page
    assert "<h3>Folder names (17)</h3>" in page
    assert "These are the first 12." in page
    for kind in ("species", "folders", "taxa"):
        for one in result["names"][kind]:
            assert f"{address}images/{one['thumbnail']}/?" in page
            assert client.get(f"{address}images/{one['thumbnail']}/").status_code == 200

    answer = client.post(address, {"action": "look", "folders_are_species": "on"})
    assert (answer.status_code, answer["Location"]) == (302, address)
    job_slice_run(job_id=Job.objects.filter(kind="preview").latest("pk").pk)
    page = client.get(address).content.decode()
    assert 'name="folders_are_species" checked' in page
    assert "<dt>Images</dt><dd>1</dd>" in page
    assert page.count("is not a species name") == 1
    assert '<td class="number" data-label="How often">18 images</td>' in page
    assert "<strong>folder</strong>: … is not a species name, and its images are left out." in page

    client.post(address, {"action": "look"})
    job = imported_again(client, address)
    assert job.result["added"] == 35
    assert job.result | numbers == job.result
    assert "<dt>Other taxa</dt><dd>1</dd>" in client.get(f"/jobs/{job.pk}/").content.decode()
    folders = set(Image.objects.values_list("folder", flat=True))
    assert folders == {*subjects, "Käfer & Co.", ""}
    assert Species.objects.count() == 1

    # The same again changes nothing.
    Job.objects.all().delete()
    again, _ = previewed(client, {"mine.zip": zipped(tree)})
    job = imported_again(client, again)
    assert (job.result["added"], job.result["updated"], job.result["unchanged"]) == (0, 0, 35)


def imported_again(client: Client, address: str) -> Job:
    for job in Job.objects.filter(kind="preview", state="queued"):
        job_slice_run(job_id=job.pk)
    return imported(client, address, "mine")


def test_without_an_image_there_is_no_import(clients: dict[str, Client]) -> None:
    client = clients["admin"]
    broken = {f"mine/frogs {number}/a.jpg": b"no image" for number in range(5)}
    address, result = previewed(client, broken)
    assert [(one["count"], len(one["examples"])) for one in result["reasons"]] == [(5, 3)]
    page = client.get(address).content.decode()
    assert '<button class="button primary" data-import disabled' in page
    assert page.count("not an image of a known format") == 1
    refused = client.post(address, {"dataset": "mine"})
    assert "There is no image to import in this upload." in refused.content.decode()
    assert not Job.objects.filter(kind="import").exists()


def test_other_images_at_the_same_paths_are_told_and_get_a_name_of_their_own(
    clients: dict[str, Client],
) -> None:
    client = clients["admin"]
    for path in ("1.jpg", "2.jpg"):
        image_row(int(path[0]), dataset="upload", source_id=path, sha256=content_hash(jpeg("red")))
    red, blue = jpeg("red"), jpeg("blue")
    for sent, replaced, dataset in (
        ({"1.jpg": blue, "3.jpg": blue}, 1, "upload 2"),
        ({"1.jpg": red, "2.jpg": blue}, 1, "upload"),
        ({"1.jpg": red, "3.jpg": blue}, 0, "upload"),
    ):
        address, result = previewed(client, sent)
        assert (result["replaced"], result["dataset"]) == (replaced, dataset)
        page = client.get(address).content.decode()
        told = f"The data set “upload” has other images at {replaced} of these paths."
        assert (told in page) == bool(replaced)

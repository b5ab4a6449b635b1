"""Images uploaded in the browser: pieces, archives, tables, preview, import, first steps."""

from __future__ import annotations

import io
import json
import os
import shutil
import time
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event
from typing import Any
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from annotator.processes.worker import attend
from core import storage
from core.jobs.models import Job
from core.jobs.services import Slice, job_slice_run
from retrieval.corpus.models import Image, ImageTakedown, Species
from retrieval.images.storage import content_hash
from retrieval.importing.summary import VALUE
from retrieval.uploads.pieces import pieces_gather
from retrieval.uploads.preview import SAMPLE
from retrieval.uploads.services import uploads_sweep
from tests.processes import wait_for
from tests.retrieval.making import encoded, image_row, jpeg, scene

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(store: Path, admin: Any, clients: dict[str, Client]) -> Client:
    return clients["admin"]


def begin(client: Client) -> str:
    answer = client.post("/import/")
    assert answer.status_code == 201
    return str(answer.json()["address"])


def send(client: Client, address: str, path: str, data: bytes, *, at: int = 0, **more: Any) -> Any:
    parameters = {"path": path, "at": at, "size": more.get("size", len(data))}
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    return client.post(
        f"{address}files/?{query}", data, content_type="application/octet-stream"
    )  # fmt: skip


def zipped(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def looked(client: Client, address: str) -> str:
    """The page of the preview once the job that unpacks and looks has ended."""
    assert client.post(f"{address}unpack/").status_code == 204
    job = Job.objects.filter(kind="preview").latest("pk")
    job_slice_run(job_id=job.pk)
    return client.get(address).content.decode()


def imported(client: Client, address: str, dataset: str) -> Job:
    looked(client, address)
    answer = client.post(address, {"dataset": dataset})
    assert answer.status_code == 302, answer.content.decode()
    job = Job.objects.get(kind="import")
    assert answer["Location"] == f"/jobs/{job.pk}/"
    assert job_slice_run(job_id=job.pk) is Slice.FINISHED
    job.refresh_from_db()
    return job


def uploads(settings: Any) -> list[Path]:
    return list((Path(settings.VAR_DIR) / "uploads").glob("*"))


def test_a_zip_from_its_pieces_to_the_corpus(client: Client, settings: Any) -> None:
    data = zipped(
        {
            "park/Rana temporaria/one.jpg": jpeg(size=(40, 30)),
            "park/Rana temporaria/broken.jpg": b"no image",
            "park/Bufo bufo/two.jpg": jpeg(size=(30, 40)),
            "park/not a species/three.jpg": jpeg(size=(20, 20)),
            "__MACOSX/park/._one.jpg": b"litter",
            "park/.DS_Store": b"litter",
        }
    )
    address = begin(client)
    half = len(data) // 2
    assert send(client, address, "park.ZIP", data[:half], size=len(data)).status_code == 204
    # A piece that doesn't follow is refused; one that comes again is none the worse.
    wrong = send(client, address, "park.ZIP", data[half:], at=half + 1, size=len(data))
    assert (wrong.status_code, wrong.json()["detail"]) == (
        400, f"at {half} bytes are there; the next piece begins there"
    )  # fmt: skip
    assert send(client, address, "park.ZIP", data[:half], size=len(data)).status_code == 204
    last = send(client, address, "park.ZIP", data[half:], at=half, size=len(data))
    assert last.status_code == 204

    assert "isn&#x27;t complete" in client.get(address).content.decode()
    assert "isn&#x27;t complete" in client.post(address, {"dataset": "x"}).content.decode()
    # What a job of a killed worker has unpacked is unpacked again.
    folder = uploads(settings)[0] / "files" / "park" / "Bufo bufo"
    folder.mkdir(parents=True)
    (folder / "two.jpg").write_bytes(b"half")
    for _ in range(2):
        assert client.post(f"{address}unpack/").status_code == 204
    look = Job.objects.get()
    page = client.get(address).content.decode()
    assert f'data-job="{look.pk}"' in page
    assert "The first images" not in page
    page = looked(client, address)
    look.refresh_from_db()
    assert (look.state, look.done, look.total) == ("done", 10, 10)
    assert "<dt>Images</dt><dd>3</dd>" in page
    assert "<dt>Refused</dt><dd>1</dd>" in page
    assert "<dt>Species</dt><dd>2</dd>" in page
    assert "<dt>Images without a species</dt><dd>1</dd>" in page
    assert "Rana temporaria/one.jpg" in page
    assert "not an image of a known format" in page
    assert "<bdi>not a species</bdi>" in page
    assert "litter" not in page
    images = [client.get(f"{address}images/{number}/") for number in range(4)]
    assert [one.status_code for one in images] == [200, 200, 200, 404]
    assert [f"{address}images/{number}/" in page for number in range(4)] == [1, 1, 1, 0]
    assert (images[0]["Content-Type"], images[0].content[:2]) == ("image/jpeg", b"\xff\xd8")
    assert Image.objects.count() == 0
    assert "Give a name" in client.post(address, {"dataset": " "}).content.decode()

    job = imported(client, address, "My park")
    assert (job.state, job.done, job.failed, job.total) == ("done", 3, 1, 4)
    nothing = {"updated": 0, "unchanged": 0, "left_out": 0, "renamed": 0, "copies": 0}
    names = {"species": 2, "folder_names": 1, "taxon_texts": 0, "without_species": 1}
    assert job.result == nothing | names | {"added": 3, "refused": 1}
    assert set(Image.objects.values_list("dataset", "file_name", "folder")) == {
        ("My park", "Rana temporaria/one.jpg", ""),
        ("My park", "Bufo bufo/two.jpg", ""),
        ("My park", "not a species/three.jpg", "not a species"),
    }
    report = client.get(f"/jobs/{job.pk}/").content.decode()
    assert "Rana temporaria/broken.jpg" in report
    assert "<dt>Folder names</dt><dd>1</dd>" in report
    assert "<dt>Unchanged</dt><dd>0</dd>" in report
    assert uploads(settings) == []
    assert client.get(address).status_code == 404


def test_a_table_beside_its_images_and_the_same_once_more(client: Client) -> None:
    rows = [
        "file_name,scientific_name,common_name,date,latitude,longitude,license,observer",
        "a/1.jpg,Rana temporaria,Grass frog,2021-05-01,52.5,13.4,CC BY 4.0,17",
        "a/2.jpg,Rana temporaria,,,,,,",
        "a/3.jpg,Rana temporaria,,once,91,0,CC0,18",
        "a/1.jpg,Bufo bufo,,,,,,",
        "a/4.jpg,frog,,,,,,",
    ]
    for turn in range(2):
        address = begin(client)
        for number in (1, 2, 3, 4):
            send(client, address, f"trip/a/{number}.jpg", jpeg(size=(20 + number, 30)))
        send(client, address, "trip/list.csv", "\n".join(rows).encode())
        page = looked(client, address)
        assert 'value="trip/list"' in page
        assert "52.5000° N, 13.4000° E" in page
        assert f"in the corpus</dt><dd>{4 if turn else 0}</dd>" in page
        for problem in (
            '<td class="number" data-label="How often">1 value</td>',
            "<strong>latitude</strong>: must be from -90 to 90, not 91.0</td>",
            "list.csv: line 4",
            "<strong>file_name</strong>: an earlier row has the same file</td>",
        ):
            assert problem in page, problem
        Job.objects.all().delete()
        job = imported(client, address, "trip")
        assert job.result == {
            "added": 0 if turn else 4, "updated": 0, "unchanged": 4 if turn else 0, "refused": 1,
            "left_out": 2, "renamed": 0, "copies": 0,
            "species": 1, "folder_names": 0, "taxon_texts": 1, "without_species": 1,
        }  # fmt: skip
        assert "left out: it must be a date" in client.get(f"/jobs/{job.pk}/").content.decode()
    image = Image.objects.get(file_name="a/3.jpg")
    assert (image.observed_at, image.latitude, image.longitude) == (None, None, None)
    assert (image.license, image.observer) == ("CC0", "18")
    image = Image.objects.get(file_name="a/4.jpg")
    assert (image.species, image.taxon_text) == (None, "frog")
    image = Image.objects.get(file_name="a/1.jpg")
    assert (image.latitude, image.license, image.observer) == (52.5, "CC BY 4.0", "17")
    assert image.observed_at is not None
    assert Species.objects.get(scientific_name="Rana temporaria").common_name == "Grass frog"


def test_names_of_files_are_kept_as_they_are(client: Client) -> None:
    """A Mac writes an accented letter as two; blanks in a row are a name too."""
    mac, blanks = unicodedata.normalize("NFD", "a/Frösche.jpg"), "a/two  blanks.jpg"
    for written, there in ((mac, mac), (mac, unicodedata.normalize("NFC", mac)), (blanks, blanks)):
        Image.objects.all().delete()
        address = begin(client)
        send(client, address, f"trip/{there}", jpeg(size=(21, 30)))
        table = f"file_name,scientific_name\n{written},Rana temporaria\n"
        send(client, address, "trip/list.csv", table.encode())
        job = imported(client, address, "trip")
        assert job.result["added"] == 1, (written, there)
        other = written != there
        assert job.result["renamed"] == other
        errors = job.item_errors.values_list("message", flat=True)
        assert ["another Unicode form" in one for one in errors] == [True] * other
        Job.objects.all().delete()


def test_a_coco_file_with_its_images(client: Client) -> None:
    content = {
        "images": [{"id": 7, "file_name": "train/7.jpg", "license": None}],
        "categories": [{"id": 1, "name": "Rana temporaria"}],
        "annotations": [{"id": 1, "image_id": 7, "category_id": 1}],
    }
    address = begin(client)
    data = zipped({"train.json": json.dumps(content).encode(), "train/7.jpg": jpeg(size=(40, 30))})
    send(client, address, "corpus.zip", data)
    imported(client, address, "corpus")
    assert list(Image.objects.values_list("pk", flat=True)) == [7]


def test_the_only_list_of_images_is_taken_beside_other_tables(client: Client) -> None:
    """The layout of iNat24 has captions beside its train.json."""
    content = {
        "images": [{"id": 7, "file_name": "train/7.jpg", "license": None}],
        "categories": [{"id": 1, "name": "Rana temporaria"}],
        "annotations": [{"id": 1, "image_id": 7, "category_id": 1}],
    }
    files = {
        "train.json": json.dumps({"info": {"about": "x" * 100_000}} | content).encode(),
        "captions.csv": b"image_id,file_name,caption\n7,train/7.jpg,A frog.\n",
        "train/7.jpg": jpeg(size=(40, 30)),
    }
    address = begin(client)
    send(client, address, "corpus.zip", zipped(files))
    imported(client, address, "corpus")
    assert list(Image.objects.values_list("pk", flat=True)) == [7]


#: Names of files that no import reads, whatever lists them.
BAD_NAMES = ("/etc/passwd", "../x.jpg", "https://example.org/x.jpg", "a/none.jpg", "a/b", "a" * 501)


def bad_files() -> dict[str, bytes]:
    """Files that no import takes, by their names, and good ones among them."""
    photo = jpeg(size=(40, 30))
    heic = b"\0\0\0\x18ftypheic" + bytes(100)
    return {
        "good.jpg": photo,
        "heic named.jpg": heic,
        "photo.heic": heic,
        "photo.jxl": b"\xff\n" + bytes(100),
        "notes.txt": b"no image",
        "empty.jpg": b"",
        "large.jpg": jpeg(size=(200, 100)),
        "cut.jpg": encoded(scene(1, 90), "JPEG")[:-300],
        "taken down.jpg": jpeg("red", size=(40, 30)),
        "named as text.txt": jpeg("gold", size=(40, 30)),
    }


def as_folder() -> dict[str, bytes]:
    files = {f"Rana temporaria/{name}": data for name, data in bad_files().items()}
    return files | {"no species/1.jpg": jpeg(), "lonely.jpg": jpeg()}


def as_table() -> dict[str, bytes]:
    rows = [f"{name},Rana temporaria" for name in (*BAD_NAMES, *bad_files(), "good.jpg")]
    rows += ["other.jpg,frog", "named as text.txt,"]
    table = "\n".join(["file_name,scientific_name", *rows])
    return bad_files() | {"list.csv": table.encode(), "other.jpg": jpeg()}


def as_coco() -> dict[str, bytes]:
    names = [*BAD_NAMES, *bad_files()]
    images: list[Any] = [{"id": number, "file_name": name} for number, name in enumerate(names)]
    images += [{"id": 0, "file_name": "good.jpg"}, {"file_name": "good.jpg"}, {"id": 99}, 7]
    images.append({"id": 100, "file_name": "good.jpg", "width": 7, "height": 7, "date": "once"})
    annotations = [{"image_id": 1, "category_id": 9}, {"image_id": 6, "category_id": 1}]
    content = {
        "images": images,
        "categories": [{"id": 1, "name": "Rana temporaria"}, {"id": 2}],
        "annotations": annotations,
    }
    return bad_files() | {"train.json": json.dumps(content).encode()}


@pytest.mark.parametrize("layout", [as_folder, as_table, as_coco])
def test_a_preview_refuses_what_the_import_refuses(
    client: Client, admin: Any, layout: Callable[[], dict[str, bytes]], settings: Any
) -> None:
    settings.IMAGE_MAX_PIXELS = 10_000
    down = bad_files()["taken down.jpg"]
    gone = image_row(10**6, dataset="before")
    ImageTakedown.objects.create(
        image=gone, sha256=content_hash(down), reason="a person", taken_down_by=admin
    )
    address = begin(client)
    send(client, address, "a.zip", zipped(layout()))
    job = imported(client, address, "x")
    preview = Job.objects.get(kind="preview").result
    assert preview["images"] == job.result["added"] == Image.objects.filter(dataset="x").count()
    for count, result in (("refused_count", "refused"), ("left_out_count", "left_out")):
        assert preview[count] == job.result[result], count
    previewed, found = Counter[str](), Counter[str]()
    for one in preview["reasons"]:
        previewed[VALUE.sub("…", one["reason"])] += one["count"]
    for message in job.item_errors.values_list("message", flat=True):
        found[VALUE.sub("…", message.removeprefix("left out: it "))] += 1
    assert previewed == found
    assert {"was taken down, and isn't brought back", "The file is empty."} <= {*previewed}


def test_a_preview_decodes_the_first_images_alone(client: Client) -> None:
    photo = jpeg(size=(40, 30))
    names = [f"Rana temporaria/{number:02}.jpg" for number in range(SAMPLE + 2)]
    address = begin(client)
    cut = encoded(scene(1), "JPEG")[:-300]
    send(client, address, "a.zip", zipped(dict.fromkeys(names, photo) | {names[-1]: cut}))
    page = looked(client, address)
    assert f"<dt>Images</dt><dd>{len(names)}</dd>" in page
    job = imported(client, address, "x")
    assert (job.result["added"], job.result["refused"]) == (len(names) - 1, 1)


def overlapping() -> bytes:
    """An archive whose second file is the bytes of the first once more."""
    data = zipped({"a.jpg": b"x" * 50, "b.jpg": b"x" * 50})
    second = data.index(b"PK\x03\x04", 4)
    directory = data.rindex(b"PK\x01\x02")
    at = directory + 42  # where its entry says that the file begins
    assert int.from_bytes(data[at : at + 4], "little") == second
    return data[:at] + bytes(4) + data[at + 4 :]


@pytest.mark.parametrize(
    "name", ["/etc/hostname", "../../owner", "a" * 400, "/nowhere", "../../../../secret_key"]
)
def test_nothing_beside_the_upload_is_looked_for(client: Client, name: str, settings: Any) -> None:
    content = {
        "images": [{"id": 7, "file_name": name}],
        "categories": [{"id": 1, "name": "Rana temporaria"}],
        "annotations": [{"id": 1, "image_id": 7, "category_id": 1}],
    }
    address = begin(client)
    send(client, address, "train.json", json.dumps(content).encode())
    page = looked(client, address)
    assert "The first images" in page
    assert f"{address}images/" not in page
    assert str(settings.VAR_DIR) not in page
    assert Job.objects.get(kind="preview").result["refused_count"] == 1
    assert "There is no image to import" in client.post(address, {"dataset": "x"}).content.decode()
    assert not Job.objects.filter(kind="import").exists()


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "Nothing was uploaded"),
        ({"a.zip": overlapping()}, "Files in it overlap"),
        ({"a.zip": b"no archive"}, "can&#x27;t be unpacked"),
        ({"a.zip": zipped({"../out.jpg": b"x"})}, "leads out of its folder"),
        ({"a.zip": zipped({"/etc/x.jpg": b"x"})}, "leads out of its folder"),
        (
            {"a.zip": zipped({"1.jpg": jpeg("red")}), "b.zip": zipped({"1.jpg": jpeg("blue")})},
            "“1.jpg” is another image in a.zip",
        ),
        ({"one.csv": b"file_name\nx", "two.csv": b"x"}, "several tables (one.csv, two.csv)"),
        ({"one.csv": b"Nr;Wert", "two.csv": b"x"}, "several tables (one.csv, two.csv)"),
        (
            dict.fromkeys(("one.csv", "two.csv"), b"file_name,scientific_name\n"),
            "several tables (one.csv, two.csv)",
        ),
        ({"one.csv": b"Nr;Wert\n1;2"}, "Which column names the images"),
        ({"one.csv": b""}, "The table is empty"),
        ({"one.csv": b"file_name,scientific_name\n\0,b"}, "holds NUL bytes"),
        ({"one.xlsx": b"no archive"}, "The spreadsheet can&#x27;t be read"),
        ({"one.json": b"{}"}, "no list “images”"),
        ({"lonely.jpg": b"x"}, "There is no image to import"),
        ({"Rana temporaria/notes.xmp": b"x"}, "There is no image in this folder"),
    ],
)
def test_what_can_not_be_imported_says_why(
    client: Client, files: dict[str, bytes], message: str, settings: Any
) -> None:
    address = begin(client)
    for name, data in files.items():
        assert send(client, address, name, data).status_code == 204
    page = looked(client, address)
    assert message in page
    assert str(settings.VAR_DIR) not in page
    assert '<button class="button primary">Import</button>' not in page
    assert client.post(address, {"dataset": "x"}).status_code == 200
    assert not Job.objects.filter(kind="import").exists()
    assert not list(Path(settings.VAR_DIR).parent.glob("out.jpg"))


def test_a_file_that_there_is_no_room_for(
    client: Client, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    address = begin(client)
    room = settings.DISK_MIN_FREE_BYTES + 1_000_000
    monkeypatch.setattr("retrieval.uploads.pieces.free_bytes", lambda: room)
    refused = send(client, address, "big.jpg", b"x", size=2_000_000)
    assert (refused.status_code, refused.json()["detail"]) == (
        409, "The server's disk has no room for this file."
    )  # fmt: skip
    settings.UPLOAD_MAX_BYTES = 1_999
    refused = send(client, address, "big.jpg", b"x", size=2_000)
    assert (refused.status_code, refused.json()["detail"]) == (
        409, "A file may have at most 1,999 bytes."
    )  # fmt: skip


def test_archives_of_an_upload_share_its_bounds(client: Client, settings: Any) -> None:
    photo = jpeg(size=(40, 30))
    archive = zipped({f"Rana temporaria/{number}.jpg": photo for number in range(3)})
    other = zipped({f"Bufo bufo/{number}.jpg": photo for number in range(3)})
    for most, refused in ((6 * len(photo), False), (5 * len(photo), True)):
        settings.UPLOAD_MAX_BYTES = 2**38
        address = begin(client)
        send(client, address, "a.zip", archive)
        send(client, address, "b.zip", other)
        settings.UPLOAD_MAX_BYTES = most
        page = looked(client, address)
        assert (f"More than {most:,} bytes come out of it" in page) is refused
        assert ("The first images" in page) is not refused


def test_a_bomb_is_refused_by_what_comes_out(client: Client, settings: Any) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("Rana temporaria/bomb.jpg", b"\0" * 100_000_000)
    address = begin(client)
    send(client, address, "bomb.zip", out.getvalue())
    assert "64 times as large" in looked(client, address)
    [folder] = uploads(settings)
    size = (folder / "files" / "Rana temporaria" / "bomb.jpg").stat().st_size
    assert size < 32_000_000


@pytest.mark.parametrize("bucket", [False, True])
def test_an_interrupted_upload_tells_what_is_there(
    client: Client, bucket: bool, request: pytest.FixtureRequest, settings: Any
) -> None:
    """Small files come several in a request, large ones in pieces; a piece that began a file anew
    counts from its beginning.
    """
    if bucket:
        request.getfixturevalue("in_bucket")
    address, photo = begin(client), jpeg(size=(40, 30))
    form = {
        "path": ["trip/Rana temporaria/ä.jpg", "trip/Bufo bufo/1.jpg"],
        "file": [SimpleUploadedFile(f"{name}.jpg", photo) for name in "ab"],
    }
    assert client.post(f"{address}files/", form).status_code == 204
    large = bytes(range(200))
    for at, end in ((0, 120), (0, 50), (50, 70)):
        send(client, address, "trip/Bufo bufo/large.tif", large[at:end], at=at, size=200)
    there = {
        "trip/Rana temporaria/ä.jpg": len(photo),
        "trip/Bufo bufo/1.jpg": len(photo),
        "trip/Bufo bufo/large.tif": 70,
    }
    assert client.get(f"{address}files/").json() == {"files": there}
    # One of a form is refused by its path; those before it stay.
    form["path"] = ["trip/2.jpg", "../3.jpg"]
    form["file"] = [SimpleUploadedFile(f"{name}.jpg", photo) for name in "ab"]
    refused = client.post(f"{address}files/", form)
    assert (refused.status_code, refused.json()["detail"][:4]) == (400, "path")
    form["path"] = ["only-one.jpg"]
    assert client.post(f"{address}files/", form).status_code == 400
    send(client, address, "trip/Bufo bufo/large.tif", large[70:], at=70, size=200)
    there |= {"trip/Bufo bufo/large.tif": 200, "trip/2.jpg": len(photo)}
    assert client.get(f"{address}files/").json() == {"files": there}
    assert client.get(f"/import/{uuid4()}/files/").status_code == 404
    [folder] = uploads(settings)
    if bucket:
        pieces_gather(folder)
    assert (folder / "files/trip/Bufo bufo/large.tif").read_bytes() == large


@pytest.mark.parametrize(
    ("tables", "sent", "bucket"),
    [
        ({"trip/list.csv": b"file_name,scientific_name\na/1.jpg,frog"}, "list.csv", True),
        ({"trip/list.csv": b"\xff\xfe"}, "new.csv", False),
        ({"trip/list.csv": b"file_name", "trip/list.json": b"{}"}, "new.CSV", False),
        ({}, "new.csv", True),
    ],
)
def test_a_table_is_sent_again_alone(
    client: Client, tables: dict[str, bytes], sent: str, bucket: bool,
    request: pytest.FixtureRequest, settings: Any,
) -> None:  # fmt: skip
    """In place of one that is wrong, of another name, of several or of none, all in a ZIP."""
    if bucket:
        request.getfixturevalue("in_bucket")
    address = begin(client)
    photos = {f"trip/a/{number}.jpg": jpeg(size=(20 + number, 30)) for number in (1, 2)}
    archive = zipped(photos | tables)
    send(client, address, "trip.zip", archive)
    looked(client, address)
    for species in ("frog", "Bufo bufo"):
        rows = f"file_name,scientific_name\na/1.jpg,Rana temporaria\na/2.jpg,{species}"
        answer = client.post(f"{address}table/", {"table": SimpleUploadedFile(sent, rows.encode())})
        assert answer["Location"] == address
        refused = client.post(
            f"{address}table/", {"table": SimpleUploadedFile(sent, b"")}, follow=True
        )
        assert "A job is at work on this upload" in refused.content.decode()
        assert "Send the table again" not in refused.content.decode()
        job = Job.objects.filter(kind="preview").latest("pk")
        job_slice_run(job_id=job.pk)
        page = client.get(address).content.decode()
        assert "Send the table again" in page
    assert "<dt>Images</dt><dd>2</dd>" in page
    assert "<dt>Refused</dt><dd>0</dd>" in page
    if bucket:
        # Another machine has none of what the first unpacked.
        shutil.rmtree(uploads(settings)[0] / "files")
        (uploads(settings)[0] / "gathered").unlink()
    client.post(address, {"dataset": "trip"})
    job = Job.objects.get(kind="import")
    assert job_slice_run(job_id=job.pk) is Slice.FINISHED
    assert set(Image.objects.values_list("file_name", "species__scientific_name")) == {
        ("a/1.jpg", "Rana temporaria"),
        ("a/2.jpg", "Bufo bufo"),
    }


def test_only_a_table_is_taken_as_one(
    client: Client, clients: dict[str, Client], settings: Any
) -> None:
    address = begin(client)
    for name, said in (("a.jpg", "is no table"), (".csv", "is no table"), ("", "Choose a table")):
        form = {"table": SimpleUploadedFile(name, b"x")} if name else {}
        page = client.post(f"{address}table/", form, follow=True).content.decode()
        assert said in page
    assert clients["reviewer"].post(f"{address}table/").status_code == 403
    form = {"table": SimpleUploadedFile("a.csv", b"x")}
    assert client.post(f"/import/{uuid4()}/table/", form).status_code == 404
    assert not list(uploads(settings)[0].rglob("*.csv"))


def test_an_upload_has_a_bound_of_files_and_folders(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retrieval.uploads.pieces.MOST_FILES", 5)
    address = begin(client)
    sent = [
        send(client, address, f"a/b/{name}.jpg", b"x").status_code for name in (1, 1, 2, 3, 4, 1)
    ]
    assert sent == [204, 204, 204, 204, 409, 204]


@pytest.mark.parametrize("path", ["../x.jpg", "/x.jpg", "", "a/.b/x.jpg", ".x", "a" * 501])
def test_paths_stay_below_the_upload(client: Client, path: str) -> None:
    assert send(client, begin(client), path, b"x").status_code == 400


def test_an_upload_is_its_persons_alone_and_ends_after_a_day(
    client: Client, clients: dict[str, Client], settings: Any
) -> None:
    address = begin(client)
    for role in ("annotator", "reviewer"):
        assert clients[role].get("/import/").status_code == 403
        assert clients[role].post("/import/").status_code == 403
        assert clients[role].get(address).status_code == 403
        assert send(clients[role], address, "x.jpg", b"x").status_code == 403
        assert clients[role].post(f"{address}unpack/").status_code == 403
    assert client.get(f"/import/{uuid4()}/").status_code == 404
    assert client.post(f"/import/{uuid4()}/unpack/").status_code == 404
    assert send(client, f"/import/{uuid4()}/", "x.jpg", b"x").status_code == 404
    assert client.post(f"{address}files/?path=x.jpg").status_code == 400
    [folder] = uploads(settings)
    (folder / "owner").write_text("0")
    assert client.get(address).status_code == 404
    leave(folder)
    begin(client)
    assert folder not in uploads(settings)
    assert len(uploads(settings)) == 1


def leave(folder: Path) -> None:
    """Make an upload older than a day."""
    old = time.time() - 25 * 3600
    os.utime(folder, (old, old))


def test_uploads_that_are_used_stay(client: Client, settings: Any) -> None:
    address = begin(client)
    [folder] = uploads(settings)
    leave(folder)
    send(client, address, "Rana temporaria/1.jpg", jpeg(size=(40, 30)))
    uploads_sweep()
    assert uploads(settings) == [folder]
    assert client.post(f"{address}unpack/").status_code == 204
    leave(folder)
    uploads_sweep()
    assert uploads(settings) == [folder]
    Job.objects.all().delete()
    uploads_sweep()
    assert uploads(settings) == []


@pytest.mark.django_db(transaction=True)
def test_a_worker_removes_unused_uploads(client: Client, settings: Any) -> None:
    begin(client)
    [folder] = uploads(settings)
    leave(folder)
    stop = Event()
    stop.set()
    attend("worker:1", stop)
    wait_for(lambda: not folder.exists(), what="the sweep")


def test_what_another_machine_began_goes_too(
    in_bucket: dict[str, str], clients: dict[str, Client], settings: Any, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    settings.VAR_DIR = tmp_path / "one"
    settings.VAR_DIR.mkdir()
    send(clients["admin"], begin(clients["admin"]), "a.zip", b"x")
    settings.VAR_DIR = tmp_path / "two"
    settings.VAR_DIR.mkdir()
    for lifetime, count in ((3600, 3), (-3600, 0)):
        monkeypatch.setattr("retrieval.uploads.services.LIFETIME", lifetime)
        uploads_sweep()
        assert len(list(storage.names_below(settings.VAR_DIR / "uploads"))) == count


def test_an_import_whose_files_are_gone_says_so(client: Client, settings: Any) -> None:
    address = begin(client)
    send(client, address, "Rana temporaria/1.jpg", jpeg(size=(40, 30)))
    looked(client, address)
    client.post(address, {"dataset": "x"})
    job = Job.objects.get(kind="import")
    for path in sorted(uploads(settings)[0].rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    assert job_slice_run(job_id=job.pk) is Slice.FAILED
    job.refresh_from_db()
    assert "Upload them again" in job.error


def test_what_is_broken_is_answered_and_an_import_asked_twice_begins_once(client: Client) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/1.jpg", bytes(range(256)) * 400)
    corrupt = bytearray(packed.getvalue())
    corrupt[37:77] = b"\xff" * 40
    own = zipped({"x.zip": b"a" * 50_000, "Rana temporaria/1.jpg": jpeg(size=(40, 30))})
    for data, problem in ((bytes(corrupt), "be unpacked"), (own, "file of its own name")):
        address = begin(client)
        send(client, address, "x.zip", data)
        assert problem in looked(client, address)

    address = begin(client)
    assert send(client, address, "a", b"x").status_code == 204
    assert send(client, address, "b/c", b"x").status_code == 204
    for path in ("a/b.jpg", "b", "é" * 200 + ".jpg"):
        assert send(client, address, path, b"x").status_code == 400, path

    address = begin(client)
    send(client, address, "Rana temporaria/1.jpg", jpeg(size=(40, 30)))
    looked(client, address)
    answers = [client.post(address, {"dataset": "x"}) for _ in range(2)]
    assert {one["Location"] for one in answers} == {f"/jobs/{Job.objects.get(kind='import').pk}/"}


def test_pieces_reach_any_machine_and_another_imports_them(
    in_bucket: dict[str, str], clients: dict[str, Client], settings: Any, tmp_path: Path
) -> None:
    client = clients["admin"]

    def on(name: str) -> None:
        settings.VAR_DIR = tmp_path / name
        settings.VAR_DIR.mkdir(exist_ok=True)

    on("one")
    address = begin(client)
    data = zipped({"Rana temporaria/one.jpg": jpeg(size=(40, 30))})
    third = len(data) // 3
    pieces = [data[:third], data[third : 2 * third], data[2 * third :]]
    # The second comes first, and the first twice.
    for name, number in (("one", 1), ("two", 0), ("one", 0), ("two", 2)):
        on(name)
        sent = send(client, address, "a.zip", pieces[number], at=number * third, size=len(data))
        assert sent.status_code == 204
    assert send(client, address, "Bufo bufo/two.jpg", jpeg(size=(30, 40))).status_code == 204
    too_long = send(client, address, "a.jpg", b"123", size=2)
    assert (too_long.status_code, send(client, address, ".hidden", b"").status_code) == (400, 400)
    on("three")
    assert "<dd>2</dd>" in looked(client, address)
    on("four")
    for number in range(2):
        assert client.get(f"{address}images/{number}/").status_code == 200
    assert not (settings.VAR_DIR / "uploads").exists()
    on("one")
    assert client.post(address, {"dataset": "Mine"}).status_code == 302
    on("five")
    job = Job.objects.get(kind="import")
    assert job_slice_run(job_id=job.pk) is Slice.FINISHED
    job.refresh_from_db()
    assert (job.state, job.done, job.failed) == ("done", 2, 0)
    assert Image.objects.filter(dataset="Mine").count() == 2
    assert list(storage.names_below(settings.VAR_DIR / "uploads")) == []
    on("one")
    assert client.get(address).status_code == 404


def test_a_file_that_lacks_a_piece_isnt_imported(
    in_bucket: dict[str, str], clients: dict[str, Client], settings: Any, tmp_path: Path
) -> None:
    settings.VAR_DIR = tmp_path
    address = begin(clients["admin"])
    send(clients["admin"], address, "a.zip", b"end", at=5, size=8)
    page = looked(clients["admin"], address)
    assert "0 bytes are there" in page
    assert "Upload the files again" in page

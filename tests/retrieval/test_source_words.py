"""What every import keeps of licenses and obscured locations, and names of what it doesn't read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from core.licenses import license_of
from releases.making.images import released_images
from retrieval.corpus.models import Image
from retrieval.importing.services import import_images
from tests.conftest import api_of, client_of
from tests.retrieval.making import coco, coco_image, jpeg

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]

LONG = "You may use the images " + "with permission, " * 20
BY = "https://creativecommons.org/licenses/by/4.0/"
#: License and address in a source; license, address and the source's words of the image.
LICENSES = [
    ("CC BY-NC 4.0", "", "CC BY-NC 4.0", "", "CC BY-NC 4.0"),
    ("", BY, "", BY, BY),
    ("not in the public domain", "", "not in the public domain", "", "not in the public domain"),
    (LONG.strip(), BY, "", "", f"{LONG.strip()} {BY}"),
    ("x" * 3000, "", "", "", "x" * 2000),
    ("", "", "", "", ""),
]


def table(folder: Path, header: str, *rows: str) -> Path:
    folder.mkdir(exist_ok=True)
    for number, row in enumerate(rows):
        (folder / row.partition(",")[0]).write_bytes(jpeg((number, 80, 80)))
    path = folder / "list.csv"
    path.write_text("\n".join([header, *rows]))
    return path


def kept(*fields: str) -> list[tuple[Any, ...]]:
    return list(Image.objects.order_by("source_id").values_list(*fields))


def test_a_table_and_a_coco_file_keep_the_license_in_its_own_words(tmp_path: Path) -> None:
    rows = [f'{n}.jpg,Rana arvalis,"{name}",{url}' for n, (name, url, *_) in enumerate(LICENSES)]
    path = table(tmp_path / "t", "file_name,scientific_name,license,license_url", *rows)
    report = import_images(path=path)
    assert [one.field for one in report.refused] == ["license", "license"]
    assert "is no license" in report.refused[0].reason
    fields = ("license", "license_url", "license_text")
    wanted = [tuple(expected) for _, _, *expected in LICENSES]
    assert kept(*fields) == wanted
    assert license_of(*wanted[3][:2]).refusal

    Image.objects.all().delete()
    licenses = [{"id": n, "name": name, "url": url} for n, (name, url, *_) in enumerate(LICENSES)]
    (tmp_path / "c").mkdir()
    images = [coco_image(n, file_name="train/1.jpg", license=n) for n in range(len(LICENSES))]
    # As `curate` writes it; files that it wrote before hold no such key.
    images[0]["license_text"] = "CC_BY_NC_4_0"
    import_images(path=coco(tmp_path / "c", licenses=licenses, images=images, annotations=[]))
    assert kept(*fields) == [(*wanted[0][:2], "CC_BY_NC_4_0"), *wanted[1:]]

    # Without a list of licenses an image may hold its own.
    own = [coco_image(1, license="CC0", license_url=""), coco_image(2, license=3)]
    import_images(path=coco(tmp_path / "c", licenses=[], images=own, annotations=[]), dataset="own")
    of_own = Image.objects.filter(dataset="own").order_by("pk")
    assert list(of_own.values_list("license", "license_text")) == [("CC0", "CC0"), ("", "")]


def test_the_source_s_words_are_shown_where_they_differ(tmp_path: Path, admin: Any) -> None:
    rows = ['1.jpg,Rana arvalis,CC0,"CC0, says the owner\'s mail"', "2.jpg,Rana arvalis,CC0,CC0"]
    import_images(path=table(tmp_path, "file_name,scientific_name,license,license_text", *rows))
    words = "License in the source’s words"
    one, two = Image.objects.order_by("source_id")
    client, api = client_of(admin), api_of(admin)
    page = client.get(f"/images/{one.pk}/").content.decode()
    assert words in page
    assert "CC0, says the owner&#x27;s mail" in page
    assert words not in client.get(f"/images/{two.pk}/").content.decode()
    texts = [api.get(f"/api/images/{pk}/").json()["license_text"] for pk in (one.pk, two.pk)]
    assert texts == ["CC0, says the owner's mail", ""]


def test_an_obscured_rhinoceros_is_no_exact_dot(tmp_path: Path, admin: Any, capsys: Any) -> None:
    header = "file_name,scientific_name,latitude,longitude,coordinates_obscured"
    path = table(tmp_path / "a", header, "a.jpg,Rhinoceros unicornis,26.6,93.3,true")
    assert import_images(path=path).unused == []
    rest = "a.jpg,Rhinoceros unicornis,26.6,93.3,true,28500,8,2024-01-01,false,Sal forest,+91 361"
    more = "public_positional_accuracy,positional_accuracy,captured,captive_cultivated,kind,phone"
    call_command("import_images", table(tmp_path / "b", f"{header},{more}", rest), quiet=True)
    assert "not used: phone" in capsys.readouterr().out
    assert kept("coordinates_obscured", "location_uncertainty") == [(True, None), (True, 28500)]

    page = client_of(admin).get(f"/images/{Image.objects.earliest('pk').pk}/").content.decode()
    assert "obscured: the source may have blurred it" in page
    assert "About where image" in page
    # In releases it has the uncertainty of a cell.
    images = released_images([image.pk for image in Image.objects.all()])
    assert [image.location_uncertainty for image in images] == [31_500, 31_500]


def test_a_coco_file_reads_usual_names_and_tells_the_others(tmp_path: Path) -> None:
    images = [
        {"id": 1, "file_name": "train/1.jpg", "datetime": "2021-05-30 10:00:00", "lat": 1.5,
         "lon": 2.5, "geoprivacy": "obscured", "seq_id": "s"},
        {"id": 2, "file_name": "train/2.jpg", "observed_on": "2021-05-31", "decimalLatitude": 1.5,
         "decimalLongitude": 2.5, "coordinateUncertaintyInMeters": 20, "coco_url": "x"},
    ]  # fmt: skip
    boxes = [{"id": 1, "image_id": 1, "category_id": 10, "bbox": [0, 0, 1, 1]}]
    report = import_images(path=coco(tmp_path, images=images, annotations=boxes))
    assert report.unused == ["coco_url", "seq_id", "annotations: bbox"]
    one, two = Image.objects.order_by("pk")
    assert [str(image.observed_at)[:16] for image in (one, two)] == [
        "2021-05-30 10:00",
        "2021-05-31 00:00",
    ]
    assert (one.latitude, one.longitude, one.coordinates_obscured) == (1.5, 2.5, True)
    assert (two.latitude, two.location_uncertainty, two.coordinates_obscured) == (1.5, 20, False)

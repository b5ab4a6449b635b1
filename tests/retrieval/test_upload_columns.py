"""The mapping of an uploaded table's columns: shown, changed, remembered, and imported."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from core.jobs.models import Job
from core.jobs.services import job_slice_run
from retrieval.corpus.models import Image
from tests.retrieval.making import jpeg
from tests.retrieval.spreadsheets import xlsx
from tests.retrieval.test_uploads import begin, imported, looked, send

pytestmark = pytest.mark.django_db

HEADER = ("Datei", "Art", "Datum", "Lebensraum", "Mail", "Name (roh)")
ROWS = [
    ("1.jpg", "Rana temporaria", "03.04.2024", "Moor", "a@example.org", "x"),
    ("2", "Bufo bufo", "05.04.2024", "Wald", "", "y"),
]


@pytest.fixture
def client(store: Path, admin: Any, clients: dict[str, Client]) -> Client:
    return clients["admin"]


def uploaded(client: Client, rows: list[tuple[str, ...]] = ROWS) -> str:
    address = begin(client)
    for number in (1, 2):
        send(client, address, f"trip/{number}.jpg", jpeg(size=(20 + number, 30)))
    send(client, address, "trip/liste.xlsx", xlsx({"Bilder": [list(HEADER), *map(list, rows)]}))
    return address


def chosen(page: str) -> dict[str, str]:
    """The uses that the form of a preview has selected, by headers."""
    rows = re.findall(r'<label for="column-\d+">(.*?)</label>.*?<select(.*?)</select>', page)
    options = (re.search(r'value="([^"]*)" selected', select) for _, select in rows)
    return {
        header: option[1] if option else ""
        for (header, _), option in zip(rows, options, strict=True)
    }


def test_columns_are_shown_changed_and_remembered(client: Client) -> None:
    address = uploaded(client)
    page = looked(client, address)
    assert chosen(page) == {
        "Datei": "file_name", "Art": "scientific_name", "Datum": "date",
        "Lebensraum": "kept:text", "Mail": "", "Name (roh)": "",
    }  # fmt: skip
    assert "<strong>liste.xlsx</strong>, sheet “Bilder”: 2 rows, 6 columns." in page
    assert "<span>Moor</span>" in page
    assert "What comes first in “Datum”, the day or the month?" in page
    assert "Not used: <code>Mail</code>, <code>Name (roh)</code>" in page
    # Nothing comes in before the question is answered.
    assert "data-import disabled" in page
    assert "the day or the month?" in client.post(address, {"dataset": "x"}).content.decode()
    assert not Job.objects.filter(kind="import").exists()

    form = {
        "action": "look", "day_first": "yes", "column-0": "file_name", "column-2": "date",
        "column-1": "scientific_name", "column-3": "", "column-4": "kept:text", "column-5": "none",
    }  # fmt: skip
    assert client.post(address, form).status_code == 302
    page = looked(client, address)
    assert "data-import disabled" not in page
    assert chosen(page)["Mail"] == "kept:text"
    assert chosen(page)["Lebensraum"] == chosen(page)["Name (roh)"] == ""
    assert '<option value="yes" selected>' in page
    assert "In dates the day comes first, as chosen" in page
    assert client.post(address, {"dataset": "trip"}).status_code == 302
    job = Job.objects.get(kind="import")
    job_slice_run(job_id=job.pk)
    job.refresh_from_db()
    assert (job.result["added"], job.result["left_out"]) == (2, 0)
    assert job.params["choices"]["day_first"] is True
    assert list(Image.objects.order_by("pk").values_list("custom_fields", flat=True)) == [
        {"Mail": "a@example.org"}, {},
    ]  # fmt: skip
    assert [str(one.observed_at.date()) for one in Image.objects.order_by("pk")] == [
        "2024-04-03", "2024-04-05",
    ]  # fmt: skip

    # The next table with these headers is read so, but the order of its days and months.
    address = uploaded(client, [*ROWS, ("3.jpg", "Bufo bufo", "31.04.2024", "", "", "")])
    page = looked(client, address)
    assert "as in the last import of a table with these headers" in page
    assert chosen(page)["Mail"] == "kept:text"
    assert "<strong>Datei</strong>: there is no such file" in page
    assert "3.jpg: row 4" in page


def test_a_table_can_be_downloaded_and_is_read_as_it_is(client: Client) -> None:
    answer = client.get("/import/template.csv")
    text = answer.content.decode("utf-8-sig")
    [row] = csv.DictReader(io.StringIO(text))
    assert row["file_name"] == "birds/0001.jpg"
    address = begin(client)
    send(client, address, "a/birds/0001.jpg", jpeg(size=(40, 30)))
    send(client, address, "a/images.csv", answer.content)
    page = looked(client, address)
    assert "Not used" not in page
    assert "What will be left out" not in page
    imported(client, address, "a")
    image = Image.objects.get()
    assert (image.latitude, image.elevation, image.license) == (52.5163, 34, "CC BY 4.0")


def test_what_is_not_used_is_named(client: Client) -> None:
    """In the preview columns, and tables beside the one that is read; in the import columns."""
    address = begin(client)
    for name, data in {
        "t/1.jpg": jpeg(size=(20, 30)),
        "t/~$liste.xlsx": b"left by a program",
        "t/orte.csv": b"Nr;Ort\n7;Moor\n",
        "t/liste.tsv": b"Datei\tArt\tTelefon\n1.jpg\tBufo bufo\t123\n",
    }.items():
        send(client, address, name, data)
    page = looked(client, address)
    assert "<h2>Tables that aren't read</h2><p>orte.csv</p>" in page
    assert "Not used: <code>Telefon</code>" in page
    job = imported(client, address, "t")
    assert job.result["unused"] == ["Telefon"]
    report = client.get(f"/jobs/{job.pk}/").content.decode()
    assert "Not used: <code>Telefon</code>" in report
    assert "Unused</dt>" not in report

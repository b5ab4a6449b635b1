"""Tables of images as people keep them: files, encodings, columns, and what of them is stored."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError, call_command

from retrieval.corpus.models import CustomField, Image, Species
from retrieval.importing.choices import GUESSED, ImportChoices
from retrieval.importing.records import Effect, ImportRefused, Refusal
from retrieval.importing.services import ImportReport, import_images, look_through
from retrieval.importing.table import TableSource
from retrieval.importing.table_choice import table_among
from tests.retrieval.making import jpeg
from tests.retrieval.spreadsheets import Rows, ods, sheet_xml, xlsx, xlsx_of_parts, zipped

pytestmark = pytest.mark.django_db

GERMAN = (
    "Dateiname;Art;Datum;Breite;Länge;Höhe (m);Lizenz;Fotograf;Käfer?;Lebensraum;E-Mail;Anzahl",
    "bilder/Käfer.jpg;Rana temporaria;27.09.2024 14:05;52,5;13,4° E;32 m;CC BY 4.0;A. Groß;ja;"
    "Moor;a@example.org;1.200",
    "IMG_2;Bufo bufo;03.04.2024;-33,9;151,2;1,2 km;;;nein;Wald, feucht;;3",
)


def filed(folder: Path, files: Mapping[str, bytes]) -> Path:
    """The folder with these files, and distinct photos where they have no content."""
    for number, (name, data) in enumerate(files.items()):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data or jpeg(size=(20 + number, 30)))
    return folder


def opened(path: Path, choices: ImportChoices = GUESSED) -> TableSource:
    source, _, batches = look_through(path, choices)
    assert isinstance(source, TableSource)
    list(batches)
    return source


def uses(source: TableSource) -> dict[str, str]:
    return {one.header: one.field or one.kind for one in source.columns}


@pytest.mark.parametrize(
    ("encoding", "delimiter"),
    [
        ("utf-8", ";"), ("utf-8-sig", "\t"), ("utf-16", "\t"), ("utf-16", "|"), ("cp1252", ";"),
    ],
)  # fmt: skip
def test_a_german_table(tmp_path: Path, store: Path, encoding: str, delimiter: str) -> None:
    filed(tmp_path, {"bilder/Käfer.jpg": b"", "bilder/img_2.JPG": b""})
    lines = ["Kartierung 2024" + ";" * 11, "", *GERMAN, ";" * 11]
    text = "\r\n".join(lines).replace(";", delimiter)
    (tmp_path / "liste.csv").write_bytes(text.encode(encoding))
    source = opened(tmp_path / "liste.csv")
    names = {"cp1252": "Windows-1252"} | dict.fromkeys(("utf-8", "utf-8-sig"), "UTF-8")
    assert source.described()["notes"] == [
        names.get(encoding, "UTF-16"),
        "fields separated by " + {";": "semicolons", "\t": "tabs", "|": "vertical bars"}[delimiter],
    ]
    assert uses(source) == {
        "Dateiname": "file_name", "Art": "scientific_name", "Datum": "date", "Breite": "latitude",
        "Länge": "longitude", "Höhe (m)": "elevation", "Lizenz": "license",
        "Fotograf": "rights_holder", "Käfer?": "yes_no", "Lebensraum": "text", "E-Mail": "",
        "Anzahl": "number",
    }  # fmt: skip
    assert source.unused == ["E-Mail"]
    report = import_images(path=tmp_path / "liste.csv")
    assert (report.added, report.refused_count, report.left_out_count) == (2, 0, 1), report.refused
    [loss] = report.refused
    assert (loss.record, loss.field) == ("line 4", "Anzahl")
    assert "may be 1.2 or 1200" in loss.reason
    assert report.unused == ["E-Mail"]
    beetle, frog = Image.objects.order_by("file_name")
    assert (beetle.file_name, frog.file_name) == ("bilder/Käfer.jpg", "bilder/img_2.JPG")
    assert beetle.observed_at == datetime(2024, 9, 27, 14, 5, tzinfo=UTC)
    assert frog.observed_at == datetime(2024, 4, 3, tzinfo=UTC)
    assert (beetle.latitude, beetle.longitude, beetle.elevation) == (52.5, 13.4, 32)
    assert (frog.latitude, frog.longitude, frog.elevation) == (-33.9, 151.2, 1200)
    assert (beetle.rights_holder, beetle.species.scientific_name) == ("A. Groß", "Rana temporaria")
    assert beetle.custom_fields == {"Käfer?": True, "Lebensraum": "Moor"}
    assert frog.custom_fields == {"Käfer?": False, "Lebensraum": "Wald, feucht", "Anzahl": 3}
    assert dict(CustomField.objects.values_list("name", "kind")) == {
        "Käfer?": "yes_no", "Lebensraum": "text", "Anzahl": "number",
    }  # fmt: skip
    assert not CustomField.objects.filter(shown_to_annotators=True).exists()
    again = import_images(path=tmp_path / "liste.csv")
    assert (again.added, again.updated, again.skipped) == (0, 0, 2)


def excel(rows: Rows) -> bytes:
    hidden: Rows = [["Datei", "Art"], ["old.jpg", "Rana temporaria"]]
    return xlsx(
        {"Alt": hidden, "Legende": [["Kürzel", "Text"], ["a", "b"]], "Bilder": rows}, ["Alt"]
    )


def open_document(rows: Rows) -> bytes:
    return ods({"Legende": [["Kürzel", "Text"], ["a", "b"]], "Bilder": rows})


@pytest.mark.parametrize(("make", "name"), [(excel, "a.xlsx"), (open_document, "a.ods")])
def test_spreadsheets(
    tmp_path: Path, store: Path, make: Callable[[Rows], bytes], name: str
) -> None:
    rows: Rows = [
        ["Kartierung 2024"],
        [],
        ["Datei", "Art", "Aufnahmedatum", "Uhrzeit", "Höhe", "Nr", "geprüft", "Formel"],
        ["1.jpg", "Rana temporaria", date(2024, 9, 27), "14:05", 32.5, 1.234, True, "a"],
        [
            "2.jpg",
            "Rana temporaria",
            datetime.fromisoformat("2024-09-27T06:30"),
            None,
            1000,
            2,
            False,
            "b",
        ],
        ["3.jpg", "Rana temporaria", "27.09.2024 12:00", None, "#N/A", None, None, None],
        [],
    ]
    filed(tmp_path, {"1.jpg": b"", "2.jpg": b"", "3.jpg": b"", name: make(rows)})
    source = opened(tmp_path / name)
    assert source.described()["notes"][0] == "sheet “Bilder”"
    assert "“Legende”" in source.described()["notes"][1]
    assert source.count() == 3
    report = import_images(path=tmp_path / name)
    assert (report.added, report.left_out_count) == (3, 0), report.refused
    first, second, third = Image.objects.order_by("file_name")
    assert first.observed_at == datetime(2024, 9, 27, 14, 5, tzinfo=UTC)
    assert second.observed_at == datetime(2024, 9, 27, 6, 30, tzinfo=UTC)
    assert third.observed_at == datetime(2024, 9, 27, 12, tzinfo=UTC)
    assert [one.elevation for one in (first, second, third)] == [32.5, 1000, None]
    assert first.custom_fields == {"Nr": 1.234, "geprüft": True, "Formel": "a"}
    assert second.custom_fields == {"Nr": 2, "geprüft": False, "Formel": "b"}


def bombs() -> dict[str, bytes]:
    """Files that no spreadsheet program makes."""
    far = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
    vast = sheet_xml('<row r="1"><c r="A1"><v>1</v></c></row>' + far)
    content = "content.xml"
    growing = xlsx_of_parts(
        ["a"], {"xl/worksheets/sheet1.xml": sheet_xml("", "<!--" + " " * 3 * 10**7)}
    )
    whole = xlsx({"a": [["Datei"], ["1.jpg"]]})
    return {
        "vast.xlsx": xlsx_of_parts(["a"], {"xl/worksheets/sheet1.xml": vast}),
        "growing.xlsx": growing,
        "cut.xlsx": whole[:-100],
        "text.xlsx": b"Datei;Art\n1.jpg;Rana temporaria\n",
        "other.ods": zipped({content: "<nothing/>"}),
        "other.parquet": b"PAR1 or not",
        "empty.xlsx": xlsx({"a": []}),
        "zeros.csv": b"file_name,scientific_name\n\0\0,b\n",
        "open.csv": b'file_name,scientific_name\n"a.jpg,b\n',
        "vast.csv": b"file_name,scientific_name\na.jpg," + b"b" * (1 << 24) + b"b\n",
        "blank.csv": b"\n\n",
        "list.jsonl": b"[1]\n",
    }


def test_what_is_no_table_is_refused_in_words(tmp_path: Path) -> None:
    filed(tmp_path, bombs())
    said = {}
    for name in bombs():
        with pytest.raises(ImportRefused) as refused:
            opened(tmp_path / name)
        said[name] = refused.value.reason
    assert said["vast.xlsx"].startswith("It claims more cells than can be read.")
    assert "becomes more than 64 times as large" in said["growing.xlsx"]
    assert "can't be unpacked" in said["cut.xlsx"]
    assert "can't be read" in said["other.ods"]
    assert "can't be read" in said["other.parquet"]
    assert "holds NUL bytes" in said["zeros.csv"]
    assert "unexpected end of data" in said["open.csv"]
    assert "a field has more than 16,777,216 letters" in said["vast.csv"]
    assert "line 1 isn't a JSON object" in said["list.jsonl"]
    assert said["empty.xlsx"] == said["blank.csv"] == "The table is empty."


def test_odd_tables_are_read(tmp_path: Path, store: Path) -> None:
    """A cell beyond csv's own limit, damaged UTF-8 that is none, columns without end, rows of
    another length, formulas without a value.
    """
    wide = ",".join(f"c{n}" for n in range(1200))
    cases = {
        "long.csv": f"file_name,scientific_name,notes\n1.jpg,Rana temporaria,{'x' * 200_000}\n",
        "wide.csv": f"file_name,scientific_name,{wide}\n1.jpg,Rana temporaria,{wide}\n",
        "ragged.csv": "file_name,scientific_name,a\n1.jpg,Rana temporaria,,\n2.jpg\n3.jpg,a,b,c\n",
        "sep.csv": "sep=;\nDatei;Art\n1.jpg;Rana temporaria\n",
        "one.txt": "Foto\n1.jpg\n",
        "title.csv": "A list, of 2024, by me\nDatei;Art\n1.jpg;Rana temporaria\n",
        "notes.csv": 'file,species,notes\n1.jpg,Rana temporaria,"a;b;c;d"\n',
        "twice.csv": "file_name,scientific_name,a,a,\n1.jpg,Rana temporaria,x,y,z\n",
    }
    filed(tmp_path, {"1.jpg": b"", **{name: text.encode() for name, text in cases.items()}})
    found = dict[str, tuple[int, int, int]]()
    for name in cases:
        report = import_images(path=tmp_path / name)
        assert report.added == 1, name
        image = Image.objects.latest("pk")
        found[name] = report.refused_count, report.left_out_count, len(image.custom_fields)
    assert found == {
        "long.csv": (0, 1, 0), "wide.csv": (0, 0, 100), "ragged.csv": (2, 0, 0),
        "sep.csv": (0, 0, 0), "one.txt": (0, 0, 0), "title.csv": (0, 0, 0), "notes.csv": (0, 0, 1),
        "twice.csv": (0, 0, 3),
    }  # fmt: skip
    assert image.custom_fields == {"a": "x", "a (2)": "y", "Column 5": "z"}
    formulas = xlsx({"a": [["Datei", "Art"], ["1.jpg", "=HYPERLINK(1)"], ["=A2", "Bufo bufo"]]})
    filed(tmp_path, {"formulas.xlsx": formulas})
    report = import_images(path=tmp_path / "formulas.xlsx")
    assert [one.reason for one in report.refused] == ["is missing"]


def test_files_are_found_however_they_are_written(tmp_path: Path, store: Path) -> None:
    names = ("a/IMG_0001.JPG", "a/b.jpg", "c/b.jpg", "c/Ä.png", "obs-1234567_2.jpg", "x.jpg")
    filed(tmp_path, dict.fromkeys(names, b"") | {"x.xmp": b"x"})
    cells = {
        "img_0001": "a/IMG_0001.JPG",
        "C:\\Fotos\\IMG_0001.jpg": "a/IMG_0001.JPG",
        "A/B.JPG": "a/b.jpg",
        "c\\b": "c/b.jpg",
        "b.jpg": None,  # there are two
        "ä.PNG": "c/Ä.png",
        "x": "x.jpg",
        "1234567": "obs-1234567_2.jpg",
        "../x.jpg": "x.jpg",
        "/etc/passwd": None,
        "": None,
    }
    for cell, name in cells.items():
        filed(tmp_path, {"t.csv": f"file,Art\n{cell},Rana temporaria\n".encode()})
        report = import_images(path=tmp_path / "t.csv", dataset=f"of {cell}")
        assert report.added == (name is not None), cell
        if name:
            image = Image.objects.get(dataset=f"of {cell}")
            assert (image.file_name, image.source_id) == (name, name)


def test_what_is_open_is_asked(tmp_path: Path, store: Path) -> None:
    header, row = "Datei;Art;Datum;Aufnahmedatum;gesehen", "1.jpg;Rana temporaria;{};{};{}"
    filed(tmp_path, {"1.jpg": b"", "2.jpg": b"", "t.csv": b"x"})
    path = tmp_path / "t.csv"

    def written(*dates: str, header: str = header) -> Path:
        path.write_text("\n".join([header, *(row.format(*one.split()) for one in dates)]))
        return path

    source = opened(written("27.09.2024 27.09.2024 03.04.2024"))
    assert uses(source)["gesehen"] == "text"
    assert uses(opened(path, ImportChoices(day_first=False)))["gesehen"] == "date"
    source = opened(path, ImportChoices(custom_fields={"gesehen": "date"}))
    assert [one.text.partition("?")[0] for one in source.questions] == [
        "“Datum” and “Aufnahmedatum” are all read as “Date”. Which one is it",
        "What comes first in “gesehen”, the day or the month",
    ]
    assert "1 of its dates, such as 03.04.2024, can be read both ways" in source.questions[1].text
    with pytest.raises(ImportRefused, match=r"Which one is it\? Call that one date\."):
        import_images(path=path)
    choices = ImportChoices(
        columns={"Datum": "date", "Aufnahmedatum": ""}, custom_fields={"gesehen": "date"},
        day_first=True,
    )  # fmt: skip
    source = opened(path, choices)
    assert (source.questions, source.unused) == ([], ["Aufnahmedatum"])
    assert [one.note for one in source.columns if one.note] == [
        "In dates the day comes first, as some show", "In dates the day comes first, as chosen",
    ]  # fmt: skip
    import_images(path=path, choices=choices)
    assert Image.objects.get().custom_fields == {"gesehen": "2024-04-03"}
    # What a person chose is what a later reading finds, whatever it would guess.
    assert opened(path, ImportChoices.from_json(source.choices.as_json())).choices == source.choices

    both = ImportChoices(columns={"Datum": "date", "Aufnahmedatum": "date"}, day_first=True)
    assert (
        "“Datum” and “Aufnahmedatum” are all read as “Date”" in opened(path, both).questions[0].text
    )

    # The dates themselves tell, or a choice where they contradict each other.
    for dates, day_first, day in (
        (("09/27/2024 x 1", "03/04/2024 x 2"), None, 4),
        (("27/09/2024 x 1", "03/04/2024 x 2"), False, 3),
        (("27/09/2024 x 1", "09/27/2024 x 2", "03/04/2024 x 2"), False, 4),
    ):
        written(*dates, header="Datei;Art;Datum;Ort;Nr")
        records = list(opened(path, ImportChoices(day_first=day_first)).images())
        assert records == [] or records[0].observed_at
        path.write_text(path.read_text().replace("1.jpg", "2.jpg", 1))
        *_, last = opened(path, ImportChoices(day_first=day_first)).images()
        assert last.observed_at
        if len(dates) == 2:
            assert last.observed_at.day == day
    written("03/04/2024 x 1", header="Datei;Art;Datum;Ort;Nr")
    with pytest.raises(CommandError, match=r"--day-first or --month-first"):
        call_command("import_images", str(path))
    call_command("import_images", str(path), "--month-first", "--dataset", "m", "--quiet")
    assert Image.objects.get(dataset="m").observed_at == datetime(2024, 3, 4, tzinfo=UTC)


def test_the_column_of_the_files_is_found_by_its_values(tmp_path: Path) -> None:
    filed(tmp_path, {"b/1.jpg": b"", "b/2.jpg": b""})
    for header, names in (
        ("Nr;Beleg", ["Beleg"]),
        ("Bild;Beleg", ["Beleg"]),  # a vague header whose values are no files
        ("Foto;Bild", ["Bild"]),
        ("Datei;Beleg", ["Datei"]),
    ):
        path = tmp_path / "t.csv"
        path.write_text(f"{header};Art\nx;1;Rana temporaria\ny;2.jpg;Rana temporaria\n")
        assert [k for k, v in uses(opened(path)).items() if v == "file_name"] == names, header
    path.write_text("Nr;Art\nx;Rana temporaria\n")
    [question] = opened(path).questions
    assert question.about == "file_name"
    assert list(opened(path, ImportChoices(columns={"Nr": "file_name"})).questions) == []


def test_custom_fields_keep_their_kinds(tmp_path: Path, store: Path) -> None:
    CustomField.objects.create(name="count", kind="number")
    table = "file,count,mail,notes\n1.jpg,many,,a\n2.jpg,3,x@example.org,b\n"
    filed(tmp_path, {"1.jpg": b"", "2.jpg": b"", "t.csv": table.encode()})
    source = opened(tmp_path / "t.csv")
    notes = {one.header: one.note for one in source.columns}
    assert notes["count"] == "The field of this name is of this kind already"
    assert notes["mail"] == "May be private"
    assert uses(source) == {"file": "file_name", "count": "number", "mail": "", "notes": "text"}
    report = import_images(path=tmp_path / "t.csv")
    assert (report.added, report.left_out_count) == (2, 1)
    first, second = Image.objects.order_by("file_name").values_list("custom_fields", flat=True)
    assert (first, second) == ({"notes": "a"}, {"count": 3, "notes": "b"})
    kept = ImportChoices(custom_fields={"mail": "text"}, columns={"notes": ""})
    report = import_images(path=tmp_path / "t.csv", choices=kept)
    assert (report.updated, report.unused) == (2, ["notes"])
    assert Image.objects.get(file_name="2.jpg").custom_fields == {
        "count": 3, "mail": "x@example.org",
    }  # fmt: skip


def test_taxa_of_tables(tmp_path: Path, store: Path) -> None:
    table = (
        "file;wissenschaftlicher Name;deutscher Name\n"
        "1.jpg;Rana temporaria;Grasfrosch\n2.jpg;-;Unbekannt\n3.jpg;;\n"
    )
    filed(tmp_path, {**{f"{n}.jpg": b"" for n in (1, 2, 3)}, "t.csv": table.encode()})
    assert import_images(path=tmp_path / "t.csv").added == 3
    species = Species.objects.get()
    assert species.names.get(language="de").name == "Grasfrosch"
    found = Image.objects.order_by("file_name").values_list("species", "taxon_text")
    assert list(found) == [(species.pk, ""), (None, "Unbekannt"), (None, "")]


def metadata(name: str, rows: list[dict[str, Any]]) -> bytes:
    """A table of Hugging Face's imagefolder."""
    if name.endswith(".jsonl"):
        return "\n".join(json.dumps(row) for row in rows).encode()
    if name.endswith(".parquet"):
        sink = pa.BufferOutputStream()
        table = pa.Table.from_pylist(rows)
        pixels = pa.array([{"bytes": b"x", "path": "x"}] * len(rows))
        pq.write_table(table.append_column("image", pixels), sink)
        return sink.getvalue().to_pybytes()
    lines = [list(rows[0]), *([str(value) for value in row.values()] for row in rows)]
    return "\n".join(",".join(line) for line in lines).encode()


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_an_imagefolder(tmp_path: Path, store: Path, ending: str) -> None:
    def rows(*names: str) -> list[dict[str, Any]]:
        return [{"file_name": one, "text": f"about {one}", "size": 1.5} for one in names]

    name = f"metadata.{ending}"
    filed(
        tmp_path, {"one/1.jpg": b"", "one/2.jpg": b"", f"one/{name}": metadata(name, rows("1.jpg"))}
    )
    assert import_images(path=tmp_path / "one" / name).added == 1
    photos = ("train/a/1.jpg", "test/1.jpg", "test/2.jpg")
    filed(tmp_path / "all", dict.fromkeys(photos, b""))
    filed(tmp_path / "all", {f"train/{name}": metadata(name, rows("a/1.jpg", "no.jpg"))})
    filed(tmp_path / "all", {f"test/{name}": metadata(name, rows("1.jpg", "2.jpg"))})
    report = import_images(path=tmp_path / "all")
    assert (report.dataset, report.added, report.refused_count) == ("all", 3, 1)
    assert set(
        Image.objects.filter(dataset="all").values_list("source_id", "file_name", "folder")
    ) == {(photo, photo, photo.split("/")[0]) for photo in photos}
    image = Image.objects.get(dataset="all", file_name="train/a/1.jpg")
    assert image.custom_fields == {"text": "about a/1.jpg", "size": 1.5}


OBSERVATIONS = (
    "id,observed_on,observed_on_string,user_id,user_login,license,image_url,latitude,longitude,"
    "positional_accuracy,public_positional_accuracy,coordinates_obscured,private_latitude,"
    "scientific_name,common_name,taxon_species_name,habitat\n"
    "7654321,2024-05-06,yesterday,17,ann,CC-BY-NC,https://static.example.org/photos/9988776/"
    "medium.jpg,26.6,93.3,12,28500,true,26.55,Rhinoceros unicornis,Indian Rhinoceros,"
    "Rhinoceros unicornis,wet\n"
)


def test_observations_of_inaturalist(tmp_path: Path, store: Path) -> None:
    filed(tmp_path, {"observations.csv": OBSERVATIONS.encode()})
    with pytest.raises(ImportRefused, match=r"“image_url” holds web addresses.*`curate`"):
        import_images(path=tmp_path / "observations.csv")
    for names in (("7654321.jpg",), ("obs 7654321 (1).jpg", "b/7654321_2.jpg"), ("9988776.jpeg",)):
        folder = tmp_path / names[0]
        filed(folder, dict.fromkeys(names, b"") | {"observations.csv": OBSERVATIONS.encode()})
        assert opened(folder / "observations.csv").count() == len(names)
        report = import_images(path=folder / "observations.csv")
        assert (report.added, report.refused_count) == (len(names), 0)
        image = Image.objects.filter(dataset=report.dataset).latest("pk")
        assert image.observed_at == datetime(2024, 5, 6, tzinfo=UTC)
        assert (image.observer, image.location_uncertainty) == ("ann", 28500)
        assert image.coordinates_obscured
        assert image.custom_fields["habitat"] == "wet"
        # What may say that the location is blurred is read, and is no custom field.
        assert not {"coordinates_obscured", "private_latitude"} & {*image.custom_fields}
    links = "file_name,scientific_name\nhttps://example.org/1.jpg,Rana temporaria\n"
    filed(tmp_path, {"links.csv": links.encode()})
    with pytest.raises(ImportRefused, match="“file_name” holds web addresses"):
        import_images(path=tmp_path / "links.csv")


def test_the_table_of_a_folder(tmp_path: Path) -> None:
    filed(
        tmp_path,
        {
            "1.jpg": b"",
            "notes.txt": b"Seen on a walk.",
            "sites.csv": b"Nr;Ort\n7;Moor\n",
            "new.tsv": b"Datei\tArt\n1.jpg\tRana temporaria\n",
            "broken.ods": b"x",
        },
    )
    assert table_among(sorted(tmp_path.iterdir())) == tmp_path / "new.tsv"
    assert table_among([tmp_path / "sites.csv", tmp_path / "notes.txt"]) is None
    filed(tmp_path, {"old.csv": b"Datei;Art\ngone.jpg;Rana temporaria\n"})
    with pytest.raises(ImportRefused, match=r"several tables \(new.tsv, old.csv\)"):
        table_among(sorted(tmp_path.iterdir()))
    filed(tmp_path, {"list.csv": b"file_name,scientific_name\n1.jpg,Rana temporaria\n"})
    assert table_among(sorted(tmp_path.iterdir())) == tmp_path / "list.csv"


def test_losses_are_counted_by_column_and_reason() -> None:
    report = ImportReport(dataset="")
    for number in range(5):
        reason = f"left out: it must be a number, not '{number} x'"
        report.refuse(Refusal("t.csv", f"line {number}", "Höhe", reason, Effect.FIELD))
    report.refuse(Refusal("t.csv", "line 9", "", "has 2 fields where the header has 3"))
    listed = [
        (one["field"], one["reason"], one["count"], one["examples"])
        for one in report.reasons.listed()
    ]
    three = [f"t.csv: line {number}" for number in range(3)]
    assert listed == [
        ("Höhe", "left out: it must be a number, not …", 5, three),
        ("", "has 2 fields where the header has 3", 1, ["t.csv: line 9"]),
    ]
